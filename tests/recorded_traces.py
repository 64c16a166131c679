"""The recorded traces that tests read: the repository's own, and those of many devices where they lie beside it.

The own ones carry every kind of test. The shared ones add to it: tests of them are thorough (`--all`) but where a
test asks for them always.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from deepscope.records import Detail, Profile

_TESTS = Path(__file__).resolve().parent
_SHARED = _TESTS.parents[1] / "shared" / "traces"

SHARED_TRACES: Path | None = _SHARED if _SHARED.is_dir() else None
"""The folder with traces of many devices, or None where it is absent."""

NO_SHARED_TRACES = f"no recorded traces at {_SHARED}"
"""Why a test of them is skipped there."""

LARGEST = 1_200_000
"""Packed bytes of a shared trace. Larger ones tell no more than the others: conservation alone is tried with them."""

REPEATED = re.compile(r"param-worker[1-7]_|torchrec-.*_2405[0-2]\.|megatron_kineto_1\.|4layers1_|event_sync_trace-2\.")
"""Other ranks and repetitions of a shared trace, for tests of several ranks and for conservation."""

PROFILES = "PYTEST_DEEPSCOPE_PROFILES"
"""The environment's word for the folder of profiles that all workers of a session share: conftest.py."""

OWN_TRACES = _TESTS / "data" / "traces"
"""The repository's own; tests/data/traces/README.md says how they were made."""

needs_shared_traces = pytest.mark.shared_traces
"""Marks a test of the shared traces: conftest.py skips it where they are absent, and without `--all` leaves it out."""


def own_paths() -> list[Path]:
    """The repository's own traces, by name."""
    return sorted(OWN_TRACES.glob("*.json.gz"))


def shared_paths() -> list[Path]:
    """The traces of many devices, by name; empty where the folder is absent."""
    return sorted(SHARED_TRACES.glob("*.json.gz")) if SHARED_TRACES else []


def trace_name(path: Path) -> str:
    """What a trace is called in tables and tests."""
    return path.name.removesuffix(".json.gz")


def each(paths: list[Path], *, always: bool = False) -> list[object]:
    """Parameters of a test of shared traces alone; where the folder is absent, one that is skipped and says so."""
    marks = [pytest.mark.shared_traces(always=always)]
    found = [pytest.param(path, id=trace_name(path)[:60], marks=marks) for path in paths]
    return found or [pytest.param(_SHARED, id="shared", marks=marks)]


def each_own_trace() -> list[object]:
    """Parameters of a test, one for each of the repository's own traces."""
    return [pytest.param(path, id=trace_name(path)) for path in own_paths()]


def each_trace(*, always: bool = False) -> list[object]:
    """Parameters of a test, one for each trace: the own ones; the shared ones with `--all`, or all of them `always`."""
    shared = [
        path for path in shared_paths() if always or (path.stat().st_size <= LARGEST and not REPEATED.search(path.name))
    ]
    return [*each_own_trace(), *(each(shared, always=always) if shared else [])]


@lru_cache(maxsize=2)
def profile_of(path: Path, details: tuple[Detail, ...] = ()) -> Profile:
    """The trace's profile, of which a session makes one, whichever of its processes asks first."""
    from deepscope.store.load import load_profile

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEEPSCOPE_CACHE_DIR", os.environ[PROFILES])
        return load_profile(str(path), details=details)
