"""What the dashboard can show: the runs below its paths, and their profiles, read in the background."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import msgspec

from deepscope.dashboard.background import Background
from deepscope.dashboard.memory_moments import MemoryMoments, read_moments
from deepscope.dashboard.page_answer import Choice
from deepscope.errors import DeepScopeError, NoTraceError, OptionError, TraceError, in_words
from deepscope.printable import without_secrets
from deepscope.processes import Progress
from deepscope.ranks.rank_summary import RankSummary
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import Detail, Profile, View
from deepscope.records.memory import SnapshotReport
from deepscope.store.ascend.folders import tables_of
from deepscope.store.companion_files import join_files_beside, snapshot_beside
from deepscope.store.files import TraceFile
from deepscope.store.load import LoadRequest
from deepscope.store.runs import WINDOW_MARK, FoundRun, FoundTrace, Recognizer, find_traces, runs_of
from deepscope.store.selection import TraceSelection, select_from, skipped_sentence, without
from deepscope.store.worker_process import Loader, read_snapshot_apart
from deepscope.trace.kineto.remote import is_url

if TYPE_CHECKING:
    from deepscope.dashboard.timeline.index import TimelineIndex

LOOK_SECONDS = 2.0
REMOTE_LOOK_SECONDS = 30.0
"""How long what was found below the paths holds; in a remote store each look costs requests."""
PROFILES = 8
"""Kept in memory; the rest comes from the cache again."""
MOMENTS = 2
"""Traces whose blocks of memory are kept, and snapshots of memory."""
RUNS = 2
"""Runs whose ranks are kept side by side."""
TIMELINES = 3
"""Kept in memory: they are as large as their traces."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RanksOfRun:
    """The ranks of a run, and what is found of them side by side."""

    summaries: list[RankSummary]
    report: RanksReport


@dataclass(eq=False)
class _Listing:
    """What was found below the paths that are shown. A listing takes as long as a remote store does, so the library's
    own lock is not held meanwhile."""

    recognizers: dict[str, Recognizer]
    runs: list[FoundRun] = field(default_factory=list)
    looked_at: float = float("-inf")
    looking: Lock = field(default_factory=Lock)


class Library:
    """Runs and profiles, for many questions at a time.

    Args:
        paths: traces, folders or fsspec URLs.
        partial: of a trace that ends early, read what is whole.
        peaks: as `load_profile` takes them.
    """

    def __init__(self, paths: Sequence[str], *, partial: bool = False, peaks: str = "") -> None:
        self.partial = partial
        self._peaks = peaks
        self._lock = Lock()
        self._profiles: Background[LoadRequest, Profile] = Background(PROFILES)
        self._loaders: set[Loader] = set()
        self._is_closed = False
        self._ranks: Background[LoadRequest, RanksOfRun] = Background(RUNS)
        self._moments: Background[TraceFile, MemoryMoments] = Background(MOMENTS)
        self._timelines: Background[TraceFile, TimelineIndex] = Background(TIMELINES)
        self._snapshots: Background[TraceFile, SnapshotReport] = Background(MOMENTS)
        self._listing = _Listing({})
        self._broken: dict[TraceFile, TraceError] = {}
        """Files that were tried and cannot be read. One that is written again is another `TraceFile`."""
        self.show(paths)

    def show(self, paths: Sequence[str], first: str = "") -> None:
        """Shows these paths from now on.

        Args:
            paths: as for the library itself.
            first: a trace of the run that is meant where none is chosen; else it is the newest.
        """
        with self._lock:
            self.paths = tuple(paths)
            self._first = first
            self._look_seconds = REMOTE_LOOK_SECONDS if any(is_url(path) for path in paths) else LOOK_SECONDS
            known = self._listing.recognizers
            self._listing = _Listing({path: known.get(path) or Recognizer() for path in paths})

    def runs(self) -> list[FoundRun]:
        """The runs below the paths, the newest first.

        Raises:
            NoTraceError: there is none.
        """
        with self._lock:
            listing = self._listing
            if listing.runs and time.monotonic() - listing.looked_at <= self._look_seconds:
                return listing.runs
        # One thread looks at a time; the others go on with what was seen before, if anything was.
        is_mine = listing.looking.acquire(blocking=not listing.runs)
        if not is_mine:
            return listing.runs
        try:
            if time.monotonic() - listing.looked_at > self._look_seconds or not listing.runs:
                runs = _runs_of(listing.recognizers)
                with self._lock:
                    listing.runs, listing.looked_at = runs, time.monotonic()
            return listing.runs
        finally:
            listing.looking.release()

    def run(self, choice: Choice) -> FoundRun:
        """The chosen run, else the one to be shown first: the newest that is not known to be broken.

        Raises:
            NoTraceError: there is none.
            OptionError: it is gone.
        """
        runs = self.runs()
        if not choice.run:
            first = [one for one in runs if any(trace.file.path == self._first for trace in one.traces)]
            ordered = [*first, *runs]
            return next((one for one in ordered if not self.problem(one)), ordered[0])
        name, mark, window = choice.run.partition(WINDOW_MARK)
        for one in runs:
            if one.id == name:
                found = one.at_window(window) if mark else one
                if found is not None:
                    return found
        raise OptionError("run", choice.run, "no such run is here any more")

    def folder_below(self, run: FoundRun) -> str:
        """The folder of a run, from the deepest folder that holds all that is shown; "" for that folder itself."""
        folder = _parts(run.newest.file.folder)
        tops = [_parts(_whole_path(path)) for path in self.paths]
        shared = takewhile(lambda names: len(set(names)) == 1, zip(folder, *tops, strict=False))
        return "/".join(folder[sum(1 for _ in shared) :])

    def selection(self, choice: Choice) -> TraceSelection:
        """The traces that are shown as one: of a run without a chosen rank the newest window that is not broken.

        Raises:
            NoTraceError, OptionError: as `run`; or the run has no such rank or stage.
        """
        traces = self.run(choice).traces
        if choice.rank is None:
            traces = tuple(self._whole(traces, choice.stage))
        selection = select_from(traces, rank=choice.rank, stage=choice.stage)
        paths = [file.path for file in selection.files]
        where = next((path for path in self.paths if _is_below(paths[0], path)), "")
        return replace(selection, tables=tables_of(paths, where, is_alone=len(self.runs()) == 1))

    def profile(self, choice: Choice, details: tuple[Detail, ...] = ()) -> Profile:
        """The profile of what was chosen.

        Raises:
            NotYetError: a trace is still being read; ask again.
            TraceError, OptionError: as `load_profile`.
        """

        def read(selection: TraceSelection) -> Profile:
            request = self._request(choice, selection, details)

            def load(progress: Progress) -> Profile:
                with self._loading(request) as loader:
                    return loader.load(progress)

            profile = self._profiles.get(request, load, _size(selection))
            join_files_beside(profile, selection.files)
            return profile

        return self._readable(choice, read)

    def ranks(self, choice: Choice) -> RanksOfRun:
        """The ranks of the chosen run side by side, whatever rank is chosen.

        Raises:
            NotYetError: they are still being read; ask again.
            TraceError, OptionError: as `read_ranks`.
        """
        whole = msgspec.structs.replace(choice, rank=None)

        def read(selection: TraceSelection) -> RanksOfRun:
            request = self._request(whole, selection)
            path = selection.files[0].path if len(selection.files) == 1 else ""

            def load(progress: Progress) -> RanksOfRun:
                with self._loading(request) as loader:
                    ranks = loader.ranks(progress)
                return RanksOfRun(ranks.summaries, side_by_side(ranks.summaries, ranks.failures, without_secrets(path)))

            return self._ranks.get(request, load, _size(selection))

        return self._readable(whole, read)

    def moments(self, choice: Choice) -> MemoryMoments:
        """The memory of the one trace that `trace_file` is, block by block.

        Raises:
            NotYetError: it is still being read; ask again.
            TraceError, OptionError: as `load_profile`.
        """
        return self._of_trace(choice, self._moments, partial(read_moments, partial=self.partial))

    def snapshot_file(self, choice: Choice) -> TraceFile | None:
        """Torch's memory snapshot beside the one trace that `trace_file` is; None where none lies there.

        Raises:
            NoTraceError, OptionError: as `selection`.
        """
        return snapshot_beside(self.trace_file(choice))

    def snapshot(self, file: TraceFile) -> SnapshotReport:
        """What a snapshot tells.

        Raises:
            NotYetError: it is still being read; ask again.
            TraceError: it cannot be read.
        """
        return self._snapshots.get(file, partial(read_snapshot_apart, file), file.size_bytes)

    def _request(self, choice: Choice, selection: TraceSelection, details: tuple[Detail, ...] = ()) -> LoadRequest:
        return LoadRequest(
            path=selection.files[0].path,
            selection=selection,
            view=View(step=choice.step, phase=choice.phase, module=choice.module, details=details),
            rank=choice.rank,
            stage=choice.stage,
            partial=self.partial,
            peaks=self._peaks,
        )

    def trace_file(self, choice: Choice) -> TraceFile:
        """The one trace whose events are asked for: of the chosen rank, else of the first that is not broken.

        Raises:
            NoTraceError, OptionError: as `selection`.
        """
        files = self.selection(choice).files
        return next((file for file in files if file not in self._broken), files[0])

    def timeline(self, choice: Choice) -> TimelineIndex:
        """The timeline of `trace_file`.

        Raises:
            NotYetError: it is still being made; ask again.
            TraceError, OptionError: as `open_timeline`.
        """
        from deepscope.dashboard.timeline.index import open_timeline

        return self._of_trace(choice, self._timelines, partial(open_timeline, partial=self.partial))

    def newest(self, run: FoundRun) -> FoundTrace:
        """The newest trace of a run that is not known to be broken; else its newest."""
        whole = (one for one in run.traces if not one.is_lost and one.file not in self._broken)
        return next(whole, run.newest)

    def problem(self, run: FoundRun) -> str:
        """Why a run cannot be shown: the reason of its newest trace where all were tried and none can be read."""
        errors = [self._broken.get(one.file) for one in run.traces]
        return errors[0].message(in_words) if errors[0] is not None and all(errors) else ""

    def skipped(self, choice: Choice) -> list[str]:
        """A sentence for each trace that was tried, is newer than what is shown and cannot be read."""
        if not self._broken:
            return []
        shown, files = self.run(choice), set(self.selection(choice).files)
        newest_ns = max(one.time_ns for one in shown.traces if one.file in files)
        newer = [one for run in ([shown] if choice.run else self.runs()) for one in run.traces]
        errors = [self._broken.get(one.file) for one in newer if one.time_ns >= newest_ns and one.file not in files]
        return list(dict.fromkeys(skipped_sentence(error) for error in errors if error is not None))

    def _whole(self, traces: Sequence[FoundTrace], stage: str | None) -> Sequence[FoundTrace]:
        """Without the windows of which every trace is broken; all of them where nothing is left."""
        left = traces
        with suppress(OptionError):  # what is left has no such stage
            while left:
                selection = select_from(left, stage=stage)
                if any(file not in self._broken for file in selection.files):
                    return left
                left = without(left, selection)
        return traces

    def _readable(self, choice: Choice, read: Callable[[TraceSelection], T]) -> T:
        """What is read of the chosen selection; of one that cannot be read the next one's, if there is one."""
        while True:
            selection = self.selection(choice)
            try:
                return read(selection)
            except TraceError as error:
                if not self._mark(selection.files, error):
                    raise

    def _of_trace(self, choice: Choice, kept: Background[TraceFile, T], read: Callable[[TraceFile, Progress], T]) -> T:
        """The same of one trace, as it is kept or read anew."""
        while True:
            file = self.trace_file(choice)
            try:
                return kept.get(file, partial(read, file), file.size_bytes)
            except TraceError as error:
                if not self._mark((file,), error):
                    raise

    def _mark(self, files: Sequence[TraceFile], error: TraceError) -> bool:
        """Notes that none of these can be read; whether that is news."""
        new = [file for file in files if file not in self._broken]
        self._broken |= dict.fromkeys(new, error)
        return bool(new)

    def close(self) -> None:
        """Begins nothing more, and ends what is being read."""
        for background in (self._profiles, self._ranks, self._moments, self._timelines, self._snapshots):
            background.close()
        with self._lock:
            self._is_closed = True
            loaders = list(self._loaders)
        for loader in loaders:
            loader.cancel()

    @contextmanager
    def _loading(self, request: LoadRequest) -> Iterator[Loader]:
        """A loader that `close` can cancel."""
        loader = Loader(request)
        with self._lock:
            self._loaders.add(loader)
            is_closed = self._is_closed
        if is_closed:
            loader.cancel()
        try:
            yield loader
        finally:
            with self._lock:
                self._loaders.discard(loader)


def _is_below(file: str, path: str) -> bool:
    whole = _whole_path(path)
    return file == whole or file.startswith(whole.rstrip("/\\") + ("/" if is_url(path) else os.sep))


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").rstrip("/").split("/")


def _whole_path(path: str) -> str:
    return path if is_url(path) else os.path.abspath(path)  # noqa: PTH100


def _size(selection: TraceSelection) -> int:
    return sum(file.size_bytes for file in selection.files)


def _runs_of(recognizers: Mapping[str, Recognizer]) -> list[FoundRun]:
    found: dict[str, FoundTrace] = {}
    missing: DeepScopeError | None = None
    for path, recognizer in recognizers.items():
        try:
            found |= {one.file.path: one for one in find_traces(path, recognizer)}
        except DeepScopeError as error:  # the others are shown all the same
            missing = missing or error
    if not found:
        raise missing or NoTraceError("no trace is here")
    return runs_of(found.values())
