"""Finding the traces of a run: files in a folder, grouped into runs, stages, windows and ranks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from deepscope.errors import NoTraceError, OptionError
from deepscope.store.files import TraceFile, is_url, list_files, single_file
from deepscope.store.peek import Peek, peek

__all__ = ["STAGES", "RunKey", "Selection", "find_traces", "newest_folder", "select"]

STAGES = ("fit", "", "validate", "test", "predict", "sanity_check")
"""In the order in which they are shown when none is asked for; "" is a recording outside Lightning."""

PEEK_LIMIT = 512
REMOTE_PEEK_LIMIT = 64
"""The newest files whose heads are read; older ones in the same folders cannot belong to the newest run."""

SAME_RUN_NS = 600 * 10**9
"""Ranks without a run id belong together when they were recorded within ten minutes."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What traces of one run share."""

    folder: str
    word: str


@dataclass(frozen=True, slots=True)
class Found:
    """A trace with what its name and head say."""

    file: TraceFile
    peek: Peek
    run: RunKey


@dataclass(frozen=True, slots=True)
class Selection:
    """The traces to be read as one: a window of a stage of a run, a file a rank."""

    files: tuple[TraceFile, ...]
    """By rank."""
    stage: str
    also_recorded: tuple[str, ...] = ()
    """Other stages of the same run, in the order of `STAGES`."""


def find_traces(path: str) -> list[Found]:
    """All traces at `path` (a file, a folder, an fsspec URL), newest first.

    In a folder, files named `*.pt.trace.json[.gz]` are traces; where there is none, every `*.json[.gz]` that starts
    like one.

    Raises:
        NoTraceError: nothing is at `path`, or no trace is in the folder.
    """
    file = single_file(path)
    if file is not None:
        return [_found(file, peek(file))]
    files = sorted(list_files(path), key=_newest_first)
    limit = REMOTE_PEEK_LIMIT if is_url(path) else PEEK_LIMIT
    named = [file for file in files if file.name.removesuffix(".gz").endswith(".pt.trace.json")]
    found = [_found(file, peek(file)) for file in named[:limit]]
    if not found:
        peeks = ((file, peek(file)) for file in files[:limit])
        found = [_found(file, what) for file, what in peeks if what.looks_like_trace]
    if not found:
        seen = f" ({len(files)} JSON files, none of them a trace)" if files else ""
        raise NoTraceError(
            f"{path}: no trace in this folder{seen}; traces are named *.pt.trace.json or *.pt.trace.json.gz"
        )
    return found


def select(path: str, *, rank: int | None = None, stage: str | None = None) -> Selection:
    """Picks what to show of `path`: its newest run, the training stage first, the newest window, all ranks.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        rank: only this rank.
        stage: this stage in place of the training stage.

    Raises:
        NoTraceError: no trace is there.
        OptionError: the run has no such rank or stage; the message lists those that it has.
    """
    found = find_traces(path)
    is_single = len(found) == 1
    run = _same_run(found)
    stages = [name for name in STAGES if any(one.peek.stage == name for one in run)]
    stages += sorted({one.peek.stage for one in run} - set(stages))
    chosen = stages[0] if stage is None else stage
    if is_single and stages == [""]:
        stages = [chosen]  # only the whole trace tells; load_profile checks it
    if chosen not in stages:
        recorded = ", ".join(name or "(none named)" for name in stages)
        raise OptionError(f"--stage {stage}: this run has no such stage; it has: {recorded}")
    window = _newest_window([one for one in run if is_single or one.peek.stage == chosen])
    if rank is not None:
        window = _of_rank(window, rank)
    return Selection(
        files=tuple(one.file for one in window),
        stage=chosen,
        also_recorded=tuple(name for name in stages if name and name != chosen),
    )


def newest_folder(folders: Iterable[str]) -> str:
    """That of the folders in which the newest trace lies; folders that are not there are passed over.

    Raises:
        NoTraceError: none of them holds a trace.
    """
    names = list(folders)
    newest: dict[str, int] = {}
    for folder in names:
        with suppress(NoTraceError):
            newest[folder] = _time_ns(find_traces(folder)[0].file)
    if not newest:
        looked = ", ".join(f"./{name}" for name in names)
        raise NoTraceError(f"no trace in {looked}; give the PATH of a trace or of a folder")
    return max(newest, key=lambda folder: newest[folder])


def _of_rank(window: list[Found], rank: int) -> list[Found]:
    if len(window) == 1 and window[0].peek.rank is None:
        return window  # only the whole trace tells; load_profile checks it
    chosen = [one for one in window if one.peek.rank == rank]
    if not chosen:
        ranks = ", ".join(str(one.peek.rank) for one in window if one.peek.rank is not None)
        raise OptionError(f"--rank {rank}: no trace of this rank; there are: {ranks or 'none that name a rank'}")
    return chosen


def _found(file: TraceFile, what: Peek) -> Found:
    if what.run_id:
        key = RunKey("", what.run_id)
    elif what.world_size > 1 or what.rank is not None:
        # A rank's file is named by host and process id: their digits differ between the ranks of a run.
        key = RunKey(file.folder, f"{what.world_size} of {what.worker_pattern}")
    else:
        key = RunKey(file.folder, what.worker)
    return Found(file=file, peek=what, run=key)


def _same_run(found: list[Found]) -> list[Found]:
    newest = found[0]
    run = [one for one in found if one.run == newest.run]
    if newest.peek.run_id:
        return run
    # Without a run id an older run may have written under the same names: a stage of it is no part of this one.
    return run if len({one.peek.rank for one in run}) <= 1 else [one for one in run if _near(one, newest)]


def _near(one: Found, newest: Found) -> bool:
    return _time_ns(newest.file) - _time_ns(one.file) <= SAME_RUN_NS


def _newest_window(stage: list[Found]) -> list[Found]:
    """Of each rank the newest trace of the newest window; by rank."""
    windows = {one.peek.window for one in stage if one.peek.window is not None}
    if windows:
        stage = [one for one in stage if one.peek.window == max(windows)]
    newest: dict[int | None, Found] = {}
    for one in sorted(stage, key=lambda one: _newest_first(one.file)):
        newest.setdefault(one.peek.rank, one)
    if len(newest) > 1:
        newest.pop(None, None)  # a file that names no rank cannot be merged with those that do
    return [newest[rank] for rank in sorted(newest, key=lambda rank: -1 if rank is None else rank)]


def _time_ns(file: TraceFile) -> int:
    return file.recorded_ns or file.mtime_ns


def _newest_first(file: TraceFile) -> tuple[int, str]:
    return -_time_ns(file), file.path
