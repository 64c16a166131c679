"""Snapshots of torch's memory: at a path that a command was given, and beside traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from deepscope.processes import Progress
from deepscope.store.files import TraceFile, local_file
from deepscope.trace.format.run_account import snapshot_path
from deepscope.trace.kineto.remote import is_url

if TYPE_CHECKING:
    from deepscope.records.memory import SnapshotReport

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


def snapshot_beside(trace: TraceFile) -> TraceFile | None:
    """The snapshot that lies beside a trace; remote stores are not looked at."""
    return None if is_url(trace.path) else local_file(str(snapshot_path(Path(trace.path))))


def read_aside(file: TraceFile, progress: Progress) -> SnapshotReport:
    """`load_snapshot` in a process of its own, which a file from a stranger may cost its time and memory.

    Raises:
        TraceError: as `load_snapshot`; or the process ended early.
    """
    from deepscope.records.memory import SnapshotReport
    from deepscope.store.pool import columns_answer  # commands that read a trace ask only whether a path is a snapshot
    from deepscope.store.requests import ColumnsRequest

    return columns_answer(ColumnsRequest(file, "snapshot"), progress, msgspec.msgpack.Decoder(SnapshotReport).decode)
