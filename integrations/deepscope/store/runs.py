"""Finding the traces of a run: files in a folder, grouped into runs, stages, windows and ranks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import glob, has_magic
from math import inf

from deepscope.errors import NoTraceError, OptionError
from deepscope.store.ascend.folders import cluster_folder, rank_folders, tables_of
from deepscope.store.files import TraceFile, list_files, single_file
from deepscope.store.identity import ASCEND, SAME_RUN_NS, FoundTrace, Recognizer, RunKey
from deepscope.trace.kineto.remote import is_url

STAGES = ("fit", "", "validate", "test", "predict", "sanity_check")
"""In the order in which they are shown when none is asked for; "" is a recording outside Lightning."""

WINDOW_MARK = "~"
"""In a choice, between a run's id and the number of one of its windows; without, it is the newest."""
NAMED_LOOK_LIMIT = 512
LOOK_LIMIT = 4096
REMOTE_LOOK_LIMIT = 64
"""How many of the newest files' heads are read at first; as long as there are further ranks of the newest run among
them, as many again."""


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


@dataclass(frozen=True, slots=True)
class FoundRun:
    """The traces of one run."""

    id: str
    traces: tuple[FoundTrace, ...]
    """The newest first; of a window alone if one is chosen."""
    window: int | None = None
    """The chosen one."""

    @property
    def base(self) -> str:
        """The run's own id, whatever window of it is chosen."""
        return self.id.partition(WINDOW_MARK)[0]

    @property
    def windows(self) -> list[int]:
        """Recorded windows of the stage that is shown when none is asked for."""
        stage = self.stages[0]
        found = {one.identity.window for one in self.traces if one.identity.stage == stage}
        return sorted(number for number in found if number is not None)

    @property
    def program(self) -> str:
        """What ran, where a trace tells it."""
        return next((one.identity.program for one in self.traces if one.identity.program), "")

    def at_window(self, word: str) -> FoundRun | None:
        """One window of it; None where it has none of this number."""
        if not (word.isascii() and word.isdigit()):
            return None
        chosen = tuple(one for one in self.traces if one.identity.window == int(word))
        return FoundRun(f"{self.id}{WINDOW_MARK}{int(word)}", chosen, int(word)) if chosen else None

    @property
    def newest(self) -> FoundTrace:
        """Its newest trace, which tells when it was."""
        return self.traces[0]

    @property
    def stages(self) -> list[str]:
        """Recorded stages, the one first that is shown when none is asked for."""
        return _stages_of(self.traces)

    @property
    def has_tables(self) -> bool:
        """Whether Ascend's profiler wrote its traces, with tables beside them that tell of communication."""
        return any(cluster_folder(one.file.path) for one in self.traces)

    @property
    def ranks(self) -> list[int]:
        """Ranks that its traces name."""
        return sorted({one.identity.rank for one in self.traces if one.identity.rank is not None})


def runs_of(found: Iterable[FoundTrace]) -> list[FoundRun]:
    """Traces by their runs, the newest first."""
    groups: dict[RunKey, list[FoundTrace]] = {}
    for one in sorted(found, key=lambda one: one.newest_first):
        groups.setdefault(one.run, []).append(one)
    return [FoundRun(_id_of(key), tuple(traces)) for key, traces in groups.items()]


def _id_of(run: RunKey) -> str:
    """An address's word for a run: short, and the same for the same run at every time."""
    return hashlib.blake2b(f"{run.folder}\0{run.word}".encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


def _stages_of(traces: Sequence[FoundTrace]) -> list[str]:
    """The one first that is shown when none is asked for."""
    found = {one.identity.stage for one in traces}
    return [name for name in STAGES if name in found] + sorted(found - set(STAGES))


def find_traces(path: str, recognizer: Recognizer | None = None) -> list[FoundTrace]:
    """All traces at `path` (a file, a folder, an fsspec URL), newest first.

    In a folder these are the files named `*.pt.trace.json[.gz]`, and every other `*.json`, `*.gz` and `*.trace` that
    begins like a trace. In a remote store each look costs a request, so the others count only if none is named so.

    Args:
        path: where to look.
        recognizer: remembers what was found at this path the last time.

    Raises:
        NoTraceError: nothing is at `path`, or no trace is in the folder.
    """
    recognizer = recognizer or Recognizer()
    file = single_file(path)
    if file is not None:
        return recognizer.traces((), named=[file])
    files = sorted(list_files(path), key=lambda file: (-(file.named_ns or file.mtime_ns), file.path))
    named = [file for file in files if file.is_named_trace]
    others = [file for file in files if not file.is_named_trace]
    if is_url(path):
        found = _looked_into(recognizer, named or others, [], REMOTE_LOOK_LIMIT)
    else:
        found = _looked_into(recognizer, named, others[:LOOK_LIMIT], NAMED_LOOK_LIMIT)
    if not found:
        if rank_folders(files):
            raise NoTraceError(
                f"{path}: no trace in this folder, but tables of Ascend's profiler: `deepscope ranks` shows them"
            )
        seen = f" ({len(files)} files looked into, none of them a trace)" if files else ""
        raise NoTraceError(
            f"{path}: no trace in this folder{seen}; traces are *.json, *.gz or *.trace with `traceEvents`"
        )
    return found


def _looked_into(
    recognizer: Recognizer, files: Sequence[TraceFile], always: Sequence[TraceFile], at_once: int
) -> list[FoundTrace]:
    """The traces among the newest files, and among `always`: a run of a thousand ranks is found whole, of a run with a
    thousand windows the newest ones."""
    count, ranks = at_once, 0
    while True:
        found = recognizer.traces([*files[:count], *always])
        more = _ranks_of_newest_run(found)
        if more <= ranks or count >= len(files):
            return found
        count, ranks = count + max(at_once, count // 2), more


def _ranks_of_newest_run(found: Sequence[FoundTrace]) -> int:
    return len({one.identity.rank for one in found if one.run == found[0].run}) if found else 0


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
    return select_below(path, find_traces(path), rank=rank, stage=stage)


def select_below(
    path: str, found: Sequence[FoundTrace], *, rank: int | None = None, stage: str | None = None
) -> TraceSelection:
    """The same among traces that were found at `path`, the newest first; at least one.

    Raises:
        OptionError: as `select`.
    """
    selection = select_from(found, rank=rank, stage=stage)
    paths = [file.path for file in selection.files]
    return replace(selection, tables=tables_of(paths, path, is_alone=len({one.run for one in found}) == 1))


def expanded(paths: Iterable[str]) -> list[str]:
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
    chosen = [select_below(path, there, stage=stage) for path, there in found.items()]
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


def select_from(found: Sequence[FoundTrace], *, rank: int | None = None, stage: str | None = None) -> TraceSelection:
    """The same without the tables beside the traces.

    Raises:
        OptionError: as `select`.
    """
    is_single = len(found) == 1
    run = _same_run(found)
    stages = _stages_of(run)
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
