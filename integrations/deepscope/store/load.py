"""From a path to a Profile: what to read, from the cache or from the trace, ranks merged."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from deepscope.analysis.peaks import given_peaks, peaks_of
from deepscope.analysis.verdict import judge
from deepscope.errors import OptionError
from deepscope.records import DETAILS, PHASES, Detail, Profile, View
from deepscope.records.ranks import merge_profiles
from deepscope.store.files import TraceFile
from deepscope.store.read import Progress, cached_profile, read_profile
from deepscope.store.runs import Selection, select

__all__ = ["Progress", "judged", "load_profile", "load_selection"]


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
    progress: Progress | None = None,
) -> Profile:
    """The profile of a trace, or of the newest run in a folder with all its ranks merged.

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
        progress: called with bytes done and bytes in all, over all files.

    Raises:
        NoTraceError: nothing is there, or no trace.
        NotATraceError: the file is empty or no trace.
        TruncatedTraceError: it ends early, and `partial` is not set.
        TraceError: it cannot be read.
        OptionError: it has no such step, rank, stage, phase or module; the message says which it has. Or `peaks`
            cannot be read.
    """
    _check_view(phase, details)
    given_peaks(peaks)  # what cannot be read is told before a long read
    selection = select(os.fspath(path), rank=rank, stage=stage)
    return load_selection(
        selection,
        step=step,
        phase=phase,
        module=module,
        details=details,
        rank=rank,
        stage=stage,
        partial=partial,
        peaks=peaks,
        cache=cache,
        progress=progress,
    )


def load_selection(
    selection: Selection,
    *,
    step: int | None = None,
    phase: str = "",
    module: str = "",
    details: Iterable[Detail] = (),
    rank: int | None = None,
    stage: str | None = None,
    partial: bool = False,
    peaks: str = "",
    cache: bool = True,
    progress: Progress | None = None,
) -> Profile:
    """The profile of traces that were selected already, for the same `rank` and `stage`; all else as `load_profile`."""
    _check_view(phase, details)
    view = View(step=step, phase=phase, module=module, details=tuple(sorted(set(details))))
    profiles = _load(selection.files, view, partial=partial, cache=cache, progress=progress)
    _check(profiles, view, rank=rank, stage=stage)
    return judged(profiles, selection, peaks)


def judged(profiles: list[Profile], selection: Selection, peaks: str) -> Profile:
    """The profiles of a selection merged, with a verdict for each line by the device's peaks."""
    profile = merge_profiles(profiles)
    profile.trace.also_recorded = list(selection.also_recorded)
    judge(profile, peaks_of(profile.trace.device, peaks))
    return profile


def _load(
    files: tuple[TraceFile, ...], view: View, *, partial: bool, cache: bool, progress: Progress | None
) -> list[Profile]:
    """The profiles of the files: kept ones from the cache, the rest read, at once where that is worth it."""
    account = _Bytes(progress, files)
    found: dict[int, Profile] = {}
    for index, file in enumerate(files):
        kept = cached_profile(file, view, partial=partial, cache=cache)
        if kept is not None:
            found[index] = kept
            account.told(index, file.size_bytes)
    missing = [index for index in range(len(files)) if index not in found]
    if len(missing) > 1:
        from deepscope.store.pool import read_in_processes, workers_for

        unread = [files[index] for index in missing]
        workers = workers_for(unread)
        if workers > 1:
            read = read_in_processes(
                unread,
                view,
                workers=workers,
                partial=partial,
                cache=cache,
                told=lambda place, done: account.told(missing[place], done),
            )
            found |= {index: one for index, one in zip(missing, read, strict=True) if one is not None}
    for index in missing:
        if index not in found:
            found[index] = read_profile(
                files[index], view, partial=partial, cache=cache, progress=account.of_file(index)
            )
            account.told(index, files[index].size_bytes)
    return [found[index] for index in range(len(files))]


class _Bytes:
    """Adds up the progress of several files."""

    def __init__(self, progress: Progress | None, files: tuple[TraceFile, ...]) -> None:
        self._progress = progress
        self._done = [0] * len(files)
        self._total = sum(file.size_bytes for file in files)

    def told(self, index: int, done: int) -> None:
        """So many bytes of a file are done."""
        self._done[index] = done
        if self._progress is not None:
            self._progress(sum(self._done), self._total)

    def of_file(self, index: int) -> Progress | None:
        """The callback for reading one file; None where nobody wants to know."""
        return None if self._progress is None else lambda done, _: self.told(index, done)


def _check(profiles: list[Profile], view: View, *, rank: int | None, stage: str | None) -> None:
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


def _check_view(phase: str, details: Iterable[str]) -> None:
    if phase and phase not in PHASES:
        raise OptionError("phase", phase, f"no such phase; there are: {', '.join(PHASES)}")
    for one in details:
        if one not in DETAILS:
            raise OptionError("details", one, f"no such table; there are: {', '.join(DETAILS)}")
