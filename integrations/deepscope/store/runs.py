"""The traces in a folder or a store, found and grouped into runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deepscope.errors import NoTraceError
from deepscope.store.ascend.folders import cluster_folder, rank_folders
from deepscope.store.files import TraceFile, list_files, single_file
from deepscope.store.trace_identity import Identity, identify_all
from deepscope.trace.kineto.remote import is_url

ASCEND = "ascend"
"""The word of runs on Ascend devices: a folder a rank."""
SAME_RUN_NS = 600 * 10**9
"""Ranks without a run id belong together when they were recorded within ten minutes."""
_RANK_FOLDER = re.compile(r"([/\\]rank[-_]?)\d+[/\\]$", re.IGNORECASE)
"""The end of a path where each rank has a folder of its own."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What traces of one run share."""

    folder: str
    word: str


@dataclass(frozen=True, slots=True)
class FoundTrace:
    """A trace with what its name and head say."""

    file: TraceFile
    identity: Identity
    run: RunKey

    @property
    def time_ns(self) -> int:
        """When it was recorded, since the epoch: as the trace says, else its name, else when the file was written."""
        return self.identity.recorded_ns or self.file.named_ns or self.file.mtime_ns

    @property
    def is_lost(self) -> bool:
        """Whether it has its place in a run and is no trace that could be read."""
        return not self.identity.looks_like_trace

    @property
    def written_ns(self) -> int:
        """When it was written, as its name says, else its folder."""
        return self.file.named_ns or self.file.mtime_ns

    @property
    def newest_first(self) -> tuple[int, int, int, str]:
        """The key to sort by: a copy's date says nothing of what is in it, so it only decides between equals."""
        return -self.time_ns, -self.file.named_ns, -self.file.mtime_ns, self.file.path


class Recognizer:
    """Remembers what each file was found to be, by path, size and date."""

    def __init__(self) -> None:
        self._known: dict[TraceFile, Identity | None] = {}

    def traces(self, files: Iterable[TraceFile], *, named: Iterable[TraceFile] = ()) -> list[FoundTrace]:
        """The traces among `files`, by their first bytes, and all of `named`; the newest first.

        A file named like a trace counts as one; its reader says what is wrong with it. So does a file that cannot be a
        trace but has its place among the ranks of a run, by its name and time. What is known of other files is
        forgotten.
        """
        before, taken = self._known, set(named)
        every = list(dict.fromkeys((*taken, *files)))
        unknown = [file for file in every if file not in before or (before[file] is None and file in taken)]
        known = {file: before.get(file) for file in every} | dict(zip(unknown, identify_all(unknown), strict=True))
        found: dict[str, FoundTrace] = {}
        broken: list[FoundTrace] = []
        for file, what in known.items():
            if what is None:
                continue
            one = FoundTrace(file=file, identity=what, run=_run_of(file, what))
            if what.looks_like_trace or file in taken:
                found[file.path] = one
            else:
                broken.append(one)
        for one in _lost_ranks(broken, list(found.values())):
            found[one.file.path] = one
        for one in broken:
            if one.file.path not in found:
                if one.file.is_named_trace:
                    found[one.file.path] = one
                else:
                    known[one.file] = None
        self._known = known
        return sorted(found.values(), key=lambda one: one.newest_first)


def _lost_ranks(broken: Sequence[FoundTrace], found: Sequence[FoundTrace]) -> list[FoundTrace]:
    """Those of the broken files that are ranks of a run: named as its files but for the digits, and of about its time.

    Each has the run, stage and window of the file that is nearest in time, unless that has its rank already.
    """
    ranks: dict[tuple[str, str], list[FoundTrace]] = {}
    for one in found:
        if one.identity.world_size > 1 or one.identity.rank is not None:
            ranks.setdefault((one.file.folder, one.identity.worker_pattern), []).append(one)
    taken = {(one.run, one.identity.stage, one.identity.window, one.identity.rank) for one in found}
    lost = []
    for one in broken:
        beside = ranks.get((one.file.folder, one.identity.worker_pattern), [])
        if one.identity.stage:
            beside = [other for other in beside if other.identity.stage == one.identity.stage]
        nearest = min(beside, key=lambda other: abs(other.written_ns - one.written_ns), default=None)
        if nearest is None or abs(nearest.written_ns - one.written_ns) > SAME_RUN_NS:
            continue
        of_it = nearest.identity
        rank = one.identity.rank
        if rank is None or (nearest.run, of_it.stage, of_it.window, rank) not in taken:
            identity = replace(of_it, looks_like_trace=False, worker=one.identity.worker, rank=rank, recorded_ns=0)
            lost.append(replace(one, identity=identity, run=nearest.run))
    return lost


def _run_of(file: TraceFile, what: Identity) -> RunKey:
    if what.run_id:
        return RunKey("", what.run_id)
    if (cluster := cluster_folder(file.path)) and what.rank is not None:
        return RunKey(cluster, ASCEND)  # a folder a rank
    if what.world_size > 1 or what.rank is not None:
        # A rank's file is named by host and process id: their digits differ between the ranks of a run.
        folder = _RANK_FOLDER.sub(r"\1*/", file.folder) + file.archive
        return RunKey(folder, f"{what.world_size} of {what.worker_pattern}")
    return RunKey(file.folder + file.archive, what.worker)


NAMED_LOOK_LIMIT = 512
LOOK_LIMIT = 4096
REMOTE_LOOK_LIMIT = 64
"""How many of the newest files' heads are read at first; as long as there are further ranks of the newest run among
them, as many again."""


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


STAGES = ("fit", "", "validate", "test", "predict", "sanity_check")
"""In the order in which they are shown when none is asked for; "" is a recording outside Lightning."""
WINDOW_MARK = "~"
"""In a choice, between a run's id and the number of one of its windows; without, it is the newest."""


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
        return stages_of(self.traces)

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


def stages_of(traces: Sequence[FoundTrace]) -> list[str]:
    """The one first that is shown when none is asked for."""
    found = {one.identity.stage for one in traces}
    return [name for name in STAGES if name in found] + sorted(found - set(STAGES))
