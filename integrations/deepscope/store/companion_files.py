"""What lies beside traces, read each time that a profile is loaded: it comes after it.

The account of the whole run, what was tried on its program, and snapshots of torch's memory. Remote stores are not
looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from deepscope.records import Profile, WholeRun
from deepscope.records.findings import Try
from deepscope.records.merging import RankRecords, merge
from deepscope.store.files import TraceFile, local_file
from deepscope.trace.format.run_account import (
    account_path,
    decoded_account,
    renamed_when_whole,
    snapshot_path,
    tries_path,
)
from deepscope.trace.kineto.remote import is_url

if TYPE_CHECKING:
    from deepscope.records.memory import SnapshotReport


_TRIES_FORMAT = 1
_MOST_BYTES = 1 << 20
"""A longer file is none of ours."""


class TriesFile(msgspec.Struct, frozen=True):
    """The content of the file that keeps what was tried."""

    tries: list[Try]
    format: int = _TRIES_FORMAT


def join_files_beside(profile: Profile, files: Sequence[TraceFile]) -> bool:
    """Join what lies beside a profile's traces by now; whether that is more, or something else, than before."""
    before = profile.whole_run, profile.tries
    profile.whole_run = _whole_run(files)
    profile.tries = _tries(files)
    return (profile.whole_run, profile.tries) != before


def _whole_run(files: Sequence[TraceFile]) -> WholeRun | None:
    """What the time of the traces' run went to, summed over the ranks; None where a rank has no sound account."""
    found = []
    for file in files:
        one = None if is_url(file.path) else _read_account(Path(file.path))
        if one is None:
            return None
        found.append(one)
    ranks = range(len(found))
    return merge(RankRecords(found, ranks, {rank: rank for rank in ranks})) if found else None


def _read_account(trace: Path) -> WholeRun | None:
    account = decoded_account(_content(account_path(trace)))
    return None if account is None else msgspec.convert(account, WholeRun, from_attributes=True)


def _tries(files: Sequence[TraceFile]) -> list[Try]:
    found: dict[str, Try] = {}
    for file in files:
        if not is_url(file.path):
            found.update((one.remedy, one) for one in read_tries(Path(file.path)))
    return list(found.values())


def read_tries(trace: Path) -> list[Try]:
    """What the file beside a trace tells; nothing where there is none, or none of ours."""
    try:
        kept = msgspec.json.decode(_content(tries_path(trace)), type=TriesFile)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []
    return kept.tries if kept.format == _TRIES_FORMAT else []


def keep_tries(trace: Path, tries: Sequence[Try]) -> None:
    """Write them beside a trace, those that are there already among them; a remedy that was tried again is replaced.

    Raises `OSError` where the folder cannot be written.
    """
    by_remedy = {one.remedy: one for one in [*read_tries(trace), *tries]}
    path = tries_path(trace)
    with renamed_when_whole(path) as part:
        part.write_bytes(msgspec.json.encode(TriesFile(list(by_remedy.values()))) + b"\n")


def _content(path: Path) -> bytes:
    """Of a file of ours; nothing where there is none."""
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST_BYTES)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return b""


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
    from deepscope.trace.memory_snapshots import read_snapshot

    return snapshot_report(read_snapshot(path), path)


def snapshot_beside(trace: TraceFile) -> TraceFile | None:
    """The snapshot that lies beside a trace; remote stores are not looked at."""
    return None if is_url(trace.path) else local_file(str(snapshot_path(Path(trace.path))))
