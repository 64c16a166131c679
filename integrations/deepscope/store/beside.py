"""What lies beside traces, read each time that a profile is loaded: it comes after it.

The account of the whole run, and what was tried on its program. Remote stores are not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from deepscope.errors import NoTraceError
from deepscope.records import Profile, WholeRun
from deepscope.records.findings import Try
from deepscope.records.merging import RankRecords, merge
from deepscope.store.files import TraceFile
from deepscope.store.identity import FoundTrace, Recognizer
from deepscope.store.runs import TraceSelection, find_traces
from deepscope.trace.format.run_account import account_path, decoded_account, renamed_when_whole, tries_path
from deepscope.trace.kineto.remote import is_url

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


_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class AwaitedWindow(TraceSelection):
    """A window, and the ranks that its traces are of."""

    ranks: tuple[int, ...] = ()


def awaited_ranks(
    own: Path, expected: Collection[int], *, timeout_s: float, is_pending: Callable[[Path], bool]
) -> AwaitedWindow:
    """The window that the trace `own` is of, with the traces of all ranks that are in its folder.

    Args:
        own: a whole trace.
        expected: the ranks that are waited for.
        timeout_s: how long; it is extended up to tenfold while `is_pending`.
        is_pending: whether somebody still writes into the folder.

    Raises:
        NoTraceError: `own` is gone.
    """
    recognizer = Recognizer()
    begun = time.monotonic()
    while True:
        window = _window_of(own, recognizer)
        waited_s = time.monotonic() - begun
        is_late = waited_s >= timeout_s * (10 if is_pending(own.parent) else 1)
        if is_late or set(expected) <= {one.identity.rank for one in window}:
            ranks = sorted(window, key=lambda one: -1 if one.identity.rank is None else one.identity.rank)
            return AwaitedWindow(
                files=tuple(one.file for one in ranks),
                stage=ranks[0].identity.stage,
                ranks=tuple(one.identity.rank for one in ranks if one.identity.rank is not None),
            )
        time.sleep(_EVERY_S)


def _window_of(own: Path, recognizer: Recognizer) -> list[FoundTrace]:
    found = find_traces(str(own.parent), recognizer)
    mine = next((one for one in found if Path(one.file.path).name == own.name), None)
    if mine is None:
        raise NoTraceError(f"{own}: the trace is gone")
    is_of_window = [
        one
        for one in found
        if one.run == mine.run
        and (one.identity.stage, one.identity.window) == (mine.identity.stage, mine.identity.window)
    ]
    newest = {one.identity.rank: one for one in reversed(is_of_window)}
    return [*newest.values()]
