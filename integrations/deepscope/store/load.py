"""From a path to a Profile, from the cache or from the traces, ranks merged; or to the analysis of each trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial as partially
from typing import TYPE_CHECKING, Literal

import msgspec

from deepscope.analysis.peaks import given_peaks, peaks_of
from deepscope.analysis.verdict import judge
from deepscope.errors import DeepScopeError, OptionError, TraceError, in_words
from deepscope.processes import Progress
from deepscope.quantities import ranges
from deepscope.records import DETAILS, PHASES, WHOLE, Detail, Profile, View
from deepscope.records.merging import decoded
from deepscope.records.ranks import encoded_profile, merge_profiles
from deepscope.store.cache import can_keep, load_kept, save
from deepscope.store.companion_files import join_files_beside
from deepscope.store.files import TraceFile, single_file
from deepscope.store.selection import TraceSelection, read_newest, select, select_from
from deepscope.store.single_trace import ReadRequest, kept_answers, open_attribution, read_profile

if TYPE_CHECKING:
    from deepscope.analysis.analysis import Analysis


REPEATS = 5
"""Runs of a folder that are looked at."""


def load_repeats(
    path: str | os.PathLike[str],
    load: Callable[[TraceSelection], Profile],
    *,
    rank: int | None = None,
    stage: str | None = None,
    limit: int = REPEATS,
) -> list[Profile]:
    """The newest run at `path` and, of the `limit` newest runs there, those that ran the same code alike.

    These are runs of the same program, arguments, texts, stage, device and number of ranks. A run whose texts are not
    known has no repeats.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        load: loads the profile of a selection.
        rank: only this rank.
        stage: this stage in place of the training stage.
        limit: how many runs are looked at.

    Raises:
        TraceError, OptionError: as `load_profile`, of the newest run; another that cannot be read is no repeat.
    """
    newest = read_newest(os.fspath(path), load, rank=rank, stage=stage)
    newest.answer.trace.warnings.extend(newest.skipped)
    found = newest.found
    profiles = [newest.answer]
    code = _code(newest.answer)
    runs = list(dict.fromkeys(one.run for one in found))
    for run in runs[1:limit] if code else ():
        with suppress(DeepScopeError):
            profile = load(select_from([one for one in found if one.run == run], rank=rank, stage=stage))
            if _code(profile) == code:
                profiles.append(profile)
    return profiles


def _code(profile: Profile) -> tuple[object, ...]:
    """What runs share that can be taken for repeats; empty where it is not known."""
    texts = sorted((path, file.sha256) for path, file in profile.files.items() if file.sha256)
    info = profile.trace
    if not texts:
        return ()
    return info.program, info.arguments, info.stage, profile.metric, info.device, len(info.ranks), tuple(texts)


FAILURES_TOLD = 8
"""Ranks that could not be read, each with its reason; of the rest only the numbers."""


def load_profile(
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    phase: str = "",
    module: str = "",
    details: Collection[Detail] = (),
    rank: int | None = None,
    stage: str | None = None,
    partial: bool = False,
    peaks: str = "",
    cache: bool = True,
    scheduler: str = "",
    progress: Progress | None = None,
) -> Profile:
    """The profile of a trace, or of the newest run in a folder with all its ranks merged.

    Of several ranks, those that cannot be read are left out; of a folder, traces that cannot be read are skipped for
    older ones. `trace.warnings` names both.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        step: only this `ProfilerStep#N`.
        phase: only what was launched in this phase: `data`, `forward`, `backward`, `optimizer` or `other`.
        module: only what ran in modules whose path this pattern matches (`encoder.layers.*`), and within them.
        details: tables to be worked out besides: `shapes`, `stacks` (`Profile.operators_in_detail`).
        rank: only this rank.
        stage: this stage of the run in place of the training stage.
        partial: of a trace that ends early, read what is whole.
        peaks: what the device can do at best, where DeepScope does not know: `"fp32=67,bf16=989,bandwidth=3.35"`, in
            10^12 operations and bytes a second.
        cache: keep the profile in the user's cache folder and take it from there.
        scheduler: the address of a Dask scheduler, whose workers then read the ranks; a single trace is read here.
        progress: called with bytes done and bytes in all, over all files.

    Raises:
        NoTraceError: nothing is there, or no trace.
        NotATraceError: the file is empty or no trace.
        TruncatedTraceError: it ends early, and `partial` is not set.
        TraceError: it cannot be read; of several ranks, none can.
        OptionError: it has no such step, rank, stage, phase or module; the message says which it has. Or `peaks`
            cannot be read, or the scheduler cannot be used.
    """
    view = View(step=step, phase=phase, module=module, details=tuple(sorted(set(details))))
    _check_view(view)
    given_peaks(peaks)  # what cannot be read is told before a long read

    read = partially(
        load_selection, view=view, rank=rank, stage=stage, partial=partial, peaks=peaks, cache=cache,
        scheduler=scheduler, progress=progress,
    )  # fmt: skip
    newest = read_newest(os.fspath(path), read, rank=rank, stage=stage)
    newest.answer.trace.warnings.extend(newest.skipped)
    return newest.answer


def load_selection(
    selection: TraceSelection,
    view: View = WHOLE,
    *,
    rank: int | None = None,
    stage: str | None = None,
    partial: bool = False,
    peaks: str = "",
    cache: bool = True,
    scheduler: str = "",
    progress: Progress | None = None,
) -> Profile:
    """The profile of traces that were selected already, for the same `rank` and `stage`; all else as `load_profile`."""
    _check_view(view)
    if len(selection.files) == 1:
        profiles = [_alone(selection.files[0], view, partial=partial, cache=cache, progress=progress)]
        _check(profiles, view, rank=rank, stage=stage)
        return _judged(profiles, selection, peaks)
    from deepscope.store.several_traces import read_traces  # for several ranks alone

    requests = [ReadRequest(file, "profile", view, partial, cache) for file in selection.files]
    read = read_traces(requests, scheduler=scheduler, progress=progress)
    return _merged(read, selection, view, peaks, rank=rank, stage=stage)


def keep_profile(path: str) -> None:
    """Reads a trace, so that the cache has its profile; nothing where the cache keeps none.

    Raises:
        TraceError: as `load_profile`.
    """
    file = single_file(path)
    if file is not None and can_keep():
        _alone(file, WHOLE, partial=False, cache=True, progress=None, workers=0)


MERGED_AT_ONCE = 32
"""Ranks; merging a thousand takes seconds."""


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True, tag="load"):
    """What to load: the arguments of `load_profile`, or of `load_selection` where the traces are selected."""

    answer: Literal["profile", "ranks"] = "profile"
    """What is wanted: a `Profile`, or the `ReadRanks` of `read_selected`."""
    path: str
    selection: TraceSelection | None = None
    view: View = WHOLE
    rank: int | None = None
    stage: str | None = None
    partial: bool = False
    peaks: str = ""


def cached_profile(request: LoadRequest) -> Profile | None:
    """The profile if the cache has every part of it; None if some trace has to be read, or so many ranks merged that it
    would hold up the caller.

    Raises:
        TraceError, OptionError: as `load_profile`.
    """
    selection = request.selection or select(request.path, rank=request.rank, stage=request.stage)
    if len(selection.files) > MERGED_AT_ONCE:
        return None
    bodies = kept_answers(selection.files, "profile", request.view, partial=request.partial)
    if bodies is None:
        return None
    return _merged(bodies, selection, request.view, request.peaks, rank=request.rank, stage=request.stage)


def _judged(profiles: Sequence[Profile], selection: TraceSelection, peaks: str) -> Profile:
    """The profiles of a selection merged, with what is found of ranks side by side and of the whole run, and with a
    verdict for each line by the device's peaks."""
    profile = merge_profiles(profiles)
    if len(profiles) > 1:
        from deepscope.ranks.side_by_side import add_what_ranks_tell  # for several ranks alone

        add_what_ranks_tell(profile, profiles)
    profile.trace.also_recorded = list(selection.also_recorded)
    join_files_beside(profile, selection.files)
    judge(profile, peaks_of(profile.trace.device, peaks))
    return profile


def _merged(
    read: Sequence[bytes | TraceError],
    selection: TraceSelection,
    view: View,
    peaks: str,
    *,
    rank: int | None,
    stage: str | None,
) -> Profile:
    """The ranks that could be read as one; the others are named in its warnings. The first reason if there is none."""
    bodies = [one for one in read if isinstance(one, bytes)]
    failed = [(place, one) for place, one in enumerate(read) if isinstance(one, TraceError)]
    if not bodies:
        raise failed[0][1]
    profiles = [decoded(bodies[0], Profile)] if len(bodies) == 1 else list(map(encoded_profile, bodies))
    _check(profiles, view, rank=rank, stage=stage)
    profile = _judged(profiles, selection, peaks)
    profile.trace.warnings = [*profile.trace.warnings, *_left_out(failed, selection)]
    return profile


def _left_out(failed: Sequence[tuple[int, TraceError]], selection: TraceSelection) -> list[str]:
    """Warnings that name the ranks which could not be read, the first of them with their reasons."""
    notes = []
    for place, error in failed[:FAILURES_TOLD]:
        rank = selection.rank_of(place)
        notes.append(f"{'a rank' if rank is None else f'rank {rank}'} is left out: {error.message(in_words)}")
    if len(failed) > FAILURES_TOLD:
        ranks = [rank for place, _ in failed[FAILURES_TOLD:] if (rank := selection.rank_of(place)) is not None]
        named = f" (ranks {ranges(ranks)})" if ranks else ""
        notes.append(f"{len(failed) - FAILURES_TOLD} more ranks are left out{named}; deepscope ranks names each reason")
    return notes


def _alone(
    file: TraceFile, view: View, *, partial: bool, cache: bool, progress: Progress | None, workers: int | None = None
) -> Profile:
    if cache and (kept := load_kept(file, view, partial=partial)) is not None:
        return kept
    profile = read_profile(file, view, partial=partial, cache=cache, progress=progress, workers=workers)
    if cache:
        save(file, profile, view, partial=partial)
    return profile


def _check(profiles: Sequence[Profile], view: View, *, rank: int | None, stage: str | None) -> None:
    """A file's name may say less than the trace in it, so what was asked for is checked against the traces too."""
    info = profiles[0].trace
    if rank is not None and info.ranks and rank not in info.ranks:
        raise OptionError("rank", rank, f"no trace of this rank; there are: {', '.join(map(str, info.ranks))}")
    if rank and not info.ranks:
        raise OptionError("rank", rank, f"{info.path} names no rank")
    if stage is not None and info.stage != stage:
        raise OptionError("stage", stage, f"{info.path} was recorded in stage {info.stage or '(none named)'}")
    step = view.step
    if step is not None and all(profile.step is None for profile in profiles):
        numbers = sorted({one.number for profile in profiles for one in profile.steps})
        listed = ", ".join(map(str, numbers)) or "none"
        raise OptionError("step", step, f"no such step; there are: {listed}")
    if view.module and not any(profile.modules for profile in profiles):
        raise OptionError("module", view.module, "no module has such a path; --by module shows those there are")


def _check_view(view: View) -> None:
    if view.phase and view.phase not in PHASES:
        raise OptionError("phase", view.phase, f"no such phase; there are: {', '.join(PHASES)}")
    for one in view.details:
        if one not in DETAILS:
            raise OptionError("details", one, f"no such table; there are: {', '.join(DETAILS)}")


class Traces:
    """The traces that `load_profile` would merge for the same arguments, by rank; analysed one at a time, as asked for.

    Like there, what cannot be read is skipped: single ranks, and newer traces of a folder where none of a window can.

    Raises:
        TraceError: none can be read (while they are gone through).
        OptionError: there is no such rank or stage, or (while they are gone through) no such step.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        step: int | None = None,
        rank: int | None = None,
        stage: str | None = None,
        partial: bool = False,
    ) -> None:
        self._path, self._rank, self._stage = os.fspath(path), rank, stage
        self._count = len(select(self._path, rank=rank, stage=stage).files)
        self._step, self._partial = step, partial
        self.skipped: list[str] = []
        """A sentence for each trace that was skipped, once they were gone through."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Analysis]:
        self.skipped = []
        newest = read_newest(self._path, self._first, rank=self._rank, stage=self._stage)
        first, place = newest.answer
        files = newest.selection.files[place + 1 :]
        self._count = len(newest.selection.files)
        self.skipped = [*newest.skipped, *self.skipped]
        yield first
        del first, newest
        for file in files:
            try:
                analysis = self._analysis(file)
            except TraceError as error:
                self.skipped.append(_rank_left_out(error))
            else:
                yield analysis

    def _first(self, selection: TraceSelection) -> tuple[Analysis, int]:
        """The first trace of a selection that can be read, and its place."""
        errors: list[TraceError] = []
        for place, file in enumerate(selection.files):
            try:
                analysis = self._analysis(file)
            except TraceError as error:
                errors.append(error)
            else:
                self.skipped = [_rank_left_out(error) for error in errors]
                return analysis, place
        raise errors[0]

    def _analysis(self, file: TraceFile) -> Analysis:
        from deepscope.analysis.analysis import analyse

        return analyse(open_attribution(file, partial=self._partial), View(step=self._step))


def _rank_left_out(error: TraceError) -> str:
    return f"a rank is left out: {error.message(in_words)}"


def recorded_rank(analysis: Analysis) -> int:
    """The rank that a trace was recorded on, -1 where it does not say."""
    from deepscope.analysis.tables.trace_info import trace_info

    work, scopes = analysis.attribution.work, analysis.attribution.scopes
    info = trace_info(analysis.attribution.trace, scopes.source, has_device=work.metric == "device")
    return info.ranks[0] if info.ranks else -1
