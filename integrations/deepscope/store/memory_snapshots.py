"""Snapshots of torch's memory: at a path that a command was given, and beside traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deepscope.records.snapshots import SnapshotReport
from deepscope.store.files import TraceFile
from deepscope.trace.format.run_account import snapshot_path
from deepscope.trace.kineto.remote import is_url

_ENDINGS = (".pickle", ".pkl", ".pickle.gz", ".pkl.gz")
_PICKLE = b"\x80"
"""How a pickle of protocol 2 or later begins; no trace does."""


def is_snapshot(path: str) -> bool:
    """Whether a path means a snapshot: by its name, else by a local file's first byte."""
    if path.endswith(_ENDINGS):
        return is_url(path) or not Path(path).is_dir()
    if is_url(path):
        return False
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as stream:
            return stream.read(1) == _PICKLE
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return False


def load_snapshot(path: str) -> SnapshotReport:
    """What a snapshot tells.

    Raises:
        NoTraceError: nothing is there.
        NotATraceError: it is no snapshot, it is damaged, or it holds more than plain values.
        TraceError: it cannot be read.
    """
    from deepscope.analysis.snapshots.summary import snapshot_report
    from deepscope.trace.memory_snapshots.read import read_snapshot

    return snapshot_report(read_snapshot(path), path)


def snapshots_beside(files: Sequence[TraceFile]) -> list[Path]:
    """The snapshots that lie beside traces; remote stores are not looked at."""
    found = [snapshot_path(Path(file.path)) for file in files if not is_url(file.path)]
    return [path for path in found if path.is_file()]
