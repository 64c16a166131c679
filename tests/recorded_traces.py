"""The recorded traces that tests read: the repository's own, and those of many devices where they lie beside it."""

from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parent
_SHARED = _TESTS.parents[1] / "shared" / "traces"

SHARED_TRACES: Path | None = _SHARED if _SHARED.is_dir() else None
"""The folder with traces of many devices, or None where it is absent."""

OWN_TRACES = _TESTS / "data" / "traces"
"""The repository's own; tests/data/traces/README.md says how they were made."""

needs_shared_traces = pytest.mark.skipif(SHARED_TRACES is None, reason=f"no recorded traces at {_SHARED}")


def own_paths() -> list[Path]:
    """The repository's own traces, by name."""
    return sorted(OWN_TRACES.glob("*.json.gz"))


def shared_paths() -> list[Path]:
    """The traces of many devices, by name; empty where the folder is absent."""
    return sorted(SHARED_TRACES.glob("*.json.gz")) if SHARED_TRACES else []


def trace_name(path: Path) -> str:
    """What a trace is called in tables and tests."""
    return path.name.removesuffix(".json.gz")


def each(paths: list[Path]) -> list[object]:
    """Parameters of a test, one for each shared trace; where the folder is absent, one that is skipped and says so."""
    marks = [needs_shared_traces, pytest.mark.shared_traces]
    found = [pytest.param(path, id=trace_name(path)[:60], marks=marks) for path in paths]
    return found or [pytest.param(_SHARED, id="shared", marks=marks)]


def each_trace() -> list[object]:
    """Parameters of a test, one for each trace: the repository's own in any clone, the shared ones where they are."""
    return [*(pytest.param(path, id=trace_name(path)) for path in own_paths()), *each(shared_paths())]
