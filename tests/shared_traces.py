"""Where the recorded traces of many devices lie, for tests that read them."""

from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "traces"

SHARED_TRACES: Path | None = _FOLDER if _FOLDER.is_dir() else None
"""The folder, or None where it is absent."""

needs_shared_traces = pytest.mark.skipif(SHARED_TRACES is None, reason=f"no recorded traces at {_FOLDER}")


def trace_paths() -> list[Path]:
    """All recorded traces, by name; empty where the folder is absent."""
    return sorted(SHARED_TRACES.glob("*.json.gz")) if SHARED_TRACES else []
