"""Which of the traces at a path are read as one: a window of a stage of a run, a file a rank."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import glob, has_magic
from math import inf
from pathlib import Path
from typing import Generic, TypeVar

from deepscope.errors import NoTraceError, OptionError, TraceError, in_words
from deepscope.store.ascend.folders import tables_of
from deepscope.store.files import TraceFile
from deepscope.store.runs import ASCEND, SAME_RUN_NS, FoundTrace, Recognizer, find_traces, stages_of
from deepscope.trace.kineto.remote import is_url

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TraceSelection:
    """The traces to be read as one: a window of a stage of a run, a file a rank."""

    files: tuple[TraceFile, ...]
    """By rank."""
    stage: str
    also_recorded: tuple[str, ...] = ()
    """Other stages of the same run, in the order of `STAGES`."""
    ranks: tuple[int | None, ...] = ()
    """The rank of each file as its name or head has it; None where they do not say."""
    tables: str = ""
    """Of a run on Ascend devices: the folder in which the tables of its profiler lie."""

    def rank_of(self, place: int) -> int | None:
        """The rank of a file by its place; None where it is not known before the trace is read."""
        return self.ranks[place] if place < len(self.ranks) else None


def select(path: str, *, rank: int | None = None, stage: str | None = None) -> TraceSelection:
    """Picks what to show of `path`: its newest run, the training stage first, the newest window, all ranks.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        rank: only this rank.
        stage: this stage in place of the training stage.

    Raises:
        NoTraceError: no trace is there.
        OptionError: the run has no such rank or stage; the message lists those that it has.
    """
    return select_found_at(path, find_traces(path), rank=rank, stage=stage)


def select_found_at(
    path: str, found: Sequence[FoundTrace], *, rank: int | None = None, stage: str | None = None
) -> TraceSelection:
    """The same among traces that were found at `path`, the newest first; at least one.

    Raises:
        OptionError: as `select`.
    """
    selection = select_from(found, rank=rank, stage=stage)
    paths = [file.path for file in selection.files]
    return replace(selection, tables=tables_of(paths, path, is_alone=len({one.run for one in found}) == 1))


def select_from(found: Sequence[FoundTrace], *, rank: int | None = None, stage: str | None = None) -> TraceSelection:
    """The same without the tables beside the traces.

    Raises:
        OptionError: as `select`.
    """
    is_single = len(found) == 1
    run = _same_run(found)
    stages = stages_of(run)
    chosen = stages[0] if stage is None else stage
    if is_single and stages == [""]:
        stages = [chosen]  # only the whole trace tells; load_profile checks it
    if chosen not in stages:
        recorded = ", ".join(name or "(none named)" for name in stages)
        raise OptionError("stage", stage, f"this run has no such stage; it has: {recorded}")
    window = _newest_window([one for one in run if is_single or one.identity.stage == chosen])
    if rank is not None:
        window = _of_rank(window, rank)
    return TraceSelection(
        files=tuple(one.file for one in window),
        stage=chosen,
        also_recorded=tuple(name for name in stages if name and name != chosen),
        ranks=tuple(one.identity.rank for one in window),
    )


def newest_folder(folders: Iterable[str]) -> str:
    """The folder that holds the newest trace; missing folders are skipped, broken traces count last.

    Raises:
        NoTraceError: none of them holds a trace.
    """
    names = list(folders)
    newest: dict[str, tuple[bool, int]] = {}
    for folder in names:
        with suppress(NoTraceError):
            newest[folder] = max((not one.is_lost, one.time_ns) for one in find_traces(folder))
    if not newest:
        looked = ", ".join(f"./{name}" for name in names)
        raise NoTraceError(f"no trace in {looked}; give the PATH of a trace or of a folder")
    return max(newest, key=lambda folder: newest[folder])


def _of_rank(window: list[FoundTrace], rank: int) -> list[FoundTrace]:
    if len(window) == 1 and window[0].identity.rank is None:
        return window  # only the whole trace tells; load_profile checks it
    chosen = [one for one in window if one.identity.rank == rank]
    if not chosen:
        ranks = ", ".join(str(one.identity.rank) for one in window if one.identity.rank is not None)
        raise OptionError("rank", rank, f"no trace of this rank; there are: {ranks or 'none that name a rank'}")
    return chosen


def _same_run(found: Sequence[FoundTrace]) -> list[FoundTrace]:
    newest = found[0]
    run = [one for one in found if one.run == newest.run]
    if newest.identity.run_id:
        return run
    if newest.is_lost and newest.run.word == ASCEND:  # its folder's name and no date says when it was recorded
        newest = next((one for one in run if not one.is_lost), newest)
    # Without a run id an older run may have written under the same names: a stage of it is no part of this one.
    if len({one.identity.rank for one in run}) <= 1:
        return run
    return [one for one in run if newest.time_ns - one.time_ns <= SAME_RUN_NS]


def _newest_window(stage: list[FoundTrace]) -> list[FoundTrace]:
    """By rank, its newest trace of the newest window."""
    windows = {one.identity.window for one in stage if one.identity.window is not None}
    if windows:
        stage = [one for one in stage if one.identity.window == max(windows)]
    newest: dict[int | None, FoundTrace] = {}
    for one in sorted(stage, key=lambda one: one.newest_first):
        newest.setdefault(one.identity.rank, one)
    lost = [one for one in stage if one.is_lost and one.identity.rank is None]
    if len(newest) > 1:
        newest.pop(None, None)  # a file that names no rank cannot be merged with those that do
        return [newest[rank] for rank in sorted(rank for rank in newest if rank is not None)] + lost
    return list(newest.values())


def expand_patterns(paths: Iterable[str]) -> list[str]:
    """The paths, patterns of local files (`*`, `?`, `[…]`) replaced by what they match; each path once.

    Raises:
        NoTraceError: there is none, or a pattern matches nothing.
    """
    found: list[str] = []
    for path in paths:
        if is_url(path) or not has_magic(path) or os.path.lexists(path):
            found.append(path)
        elif matches := sorted(glob(path, recursive=True)):  # noqa: PTH207 - the pattern may be absolute
            found += matches
        else:
            raise NoTraceError(f"{path}: no file matches this pattern")
    if not found:
        raise NoTraceError("no path is given")
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class SelectedTogether:
    """What is to be read of several paths as of one run."""

    selection: TraceSelection
    tables: list[str]
    """Of the paths with traces of Ascend devices: the folders in which the tables beside these lie."""
    without_trace: dict[str, NoTraceError]
    """Paths at which there is no trace; tables of Ascend's profiler may be there."""


def select_together(paths: Iterable[str], *, stage: str | None = None) -> SelectedTogether:
    """The traces at several paths as those of one run: of each path what `select` picks there, by rank.

    Raises:
        OptionError: as `select`.
    """
    found: dict[str, list[FoundTrace]] = {}
    without_trace: dict[str, NoTraceError] = {}
    for path in paths:
        try:
            found[path] = find_traces(path)
        except NoTraceError as error:
            without_trace[path] = error
    chosen = [select_found_at(path, there, stage=stage) for path, there in found.items()]
    files = {file for one in chosen for file in one.files}
    traces = list({one.file: one for there in found.values() for one in there if one.file in files}.values())
    traces.sort(key=_by_rank)
    selection = TraceSelection(
        files=tuple(one.file for one in traces),
        stage=chosen[0].stage if chosen else stage or "",
        ranks=tuple(one.identity.rank for one in traces),
    )
    return SelectedTogether(selection, list({one.tables: None for one in chosen if one.tables}), without_trace)


def _by_rank(one: FoundTrace) -> tuple[float, int]:
    """The order of traces given one by one: of those of one rank the newest first, the first of which counts."""
    rank = one.identity.rank
    return (inf, 0) if rank is None else (rank, -one.time_ns)


SKIPPED = "a newer trace is skipped: "
"""What each sentence of `NewestReadable.skipped` begins with."""


@dataclass(frozen=True, slots=True)
class NewestReadable(Generic[T]):
    """What was read, and what was skipped for it."""

    answer: T
    selection: TraceSelection
    found: list[FoundTrace]
    """The traces that were not skipped, the newest first."""
    skipped: list[str]
    """A sentence for each newer selection that cannot be read."""


def read_newest(
    path: str, read: Callable[[TraceSelection], T], *, rank: int | None = None, stage: str | None = None
) -> NewestReadable[T]:
    """Reads the newest selection at a path, or the newest one before it that can be read.

    A killed training leaves empty and cut files: in a folder, older windows and runs are read in their place.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        read: reads a selection.
        rank: only this rank.
        stage: this stage in place of the training stage.

    Raises:
        NoTraceError: no trace is there.
        TraceError: none can be read; the reason of the newest.
        OptionError: the newest run has no such rank or stage; or what `read` raises.
    """
    found = find_traces(path)
    newest: TraceError | None = None
    skipped: list[str] = []
    while found:
        try:
            selection = select_found_at(path, found, rank=rank, stage=stage)
        except OptionError:
            if newest is not None:  # older runs have no such rank or stage
                break
            raise
        try:
            return NewestReadable(read(selection), selection, found, skipped)
        except TraceError as error:
            newest = newest or error
            skipped.append(skipped_sentence(error))
            found = without(found, selection)
    assert newest is not None
    raise newest


def without(found: Sequence[FoundTrace], selection: TraceSelection) -> list[FoundTrace]:
    """The traces that a selection leaves."""
    files = set(selection.files)
    return [one for one in found if one.file not in files]


def skipped_sentence(error: TraceError) -> str:
    """What is said of a trace that is skipped."""
    return f"{SKIPPED}{error.message(in_words)}"


_EVERY_S = 0.2


def awaited_ranks(
    own: Path, expected: Collection[int], *, timeout_s: float, is_pending: Callable[[Path], bool]
) -> TraceSelection:
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
            window.sort(key=lambda one: -1 if one.identity.rank is None else one.identity.rank)
            return TraceSelection(
                files=tuple(one.file for one in window),
                stage=window[0].identity.stage,
                ranks=tuple(one.identity.rank for one in window),
            )
        time.sleep(_EVERY_S)


def _window_of(own: Path, recognizer: Recognizer) -> list[FoundTrace]:
    found = find_traces(str(own.parent), recognizer)
    mine = next((one for one in found if Path(one.file.path).name == own.name), None)
    if mine is None:
        raise NoTraceError(f"{own}: the trace is gone")
    in_run = [one for one in found if one.run == mine.run and one.identity.stage == mine.identity.stage]
    newest = {one.identity.rank: one for one in reversed(in_run) if one.identity.window == mine.identity.window}
    return [*newest.values()]
