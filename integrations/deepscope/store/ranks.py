"""From a path to what is known of each of its ranks: every trace is read alone and let go."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from deepscope.errors import NoTraceError, OptionError, TraceError, in_words
from deepscope.printable import without_secrets
from deepscope.processes import Progress
from deepscope.ranks.rank_summary import AscendRank, RankSummary, summary_of
from deepscope.ranks.ranks_report import Failure
from deepscope.records import Numbers, Profile, Resolved, Totals, TraceInfo, View
from deepscope.records.merging import decoded
from deepscope.store.ascend.cluster import Cluster, find_cluster
from deepscope.store.runs import find_traces
from deepscope.store.selection import SelectedTogether, TraceSelection, expand_patterns, read_newest, select_together
from deepscope.store.several_traces import read_traces
from deepscope.store.single_trace import ReadRequest, kept_answers
from deepscope.trace.kineto.remote import is_url


def tables_alone(path: str, step: int | None) -> Cluster:
    """The tables of an Ascend run at a path where no trace is; of none there are no ranks.

    Raises:
        OptionError: the run has no such step.
    """
    cluster = find_cluster(path, step)
    if cluster.ranks and step is not None and step not in cluster.steps:
        listed = ", ".join(map(str, sorted(cluster.steps - {-1}))) or "none"
        raise OptionError("step", step, f"no such step; there are: {listed}") from None
    return cluster


def tables_beside(selection: TraceSelection, step: int | None) -> Cluster:
    """The tables of selected traces; nothing where these are no Ascend run's."""
    return find_cluster(selection.tables, step) if selection.tables else Cluster()


def tables_together(selected: SelectedTogether, step: int | None) -> Cluster:
    """The tables at several paths as those of one run; of two of one rank the first is taken, and the other told.

    Raises:
        NoTraceError: at one of the paths there is neither a trace nor a table.
        OptionError: at a path with tables alone there is no such step.
    """
    whole = Cluster()
    for folder in selected.tables:
        whole.add(find_cluster(folder, step))
    for path, error in selected.without_trace.items():
        alone = tables_alone(path, step)
        if not alone.ranks:
            raise error
        whole.add(alone)
    return whole


def with_tables(summaries: Sequence[RankSummary], cluster: Cluster) -> list[RankSummary]:
    """The ranks with their tables, and those that have tables alone."""
    found = []
    left = dict(cluster.ranks)
    for one in summaries:
        summary = left.pop(one.rank, None)
        size = max(one.world_size, cluster.world_size)
        found.append(one if summary is None else msgspec.structs.replace(one, ascend=summary, world_size=size))
    found += [_alone(rank, summary, cluster.world_size) for rank, summary in left.items()]
    return found


def _alone(rank: int, summary: AscendRank, world_size: int) -> RankSummary:
    """A rank of which there is no trace."""
    folder = re.split(r"[/\\]", summary.folder.rstrip("/\\"))[-1]
    host = re.sub(r"(_\d+)?_\d{14,20}_ascend_(pt|ms)$", "", folder) if "_ascend_" in folder else ""
    nothing = Profile(
        metric="device",
        trace=TraceInfo(
            path=without_secrets(summary.folder), hostname=host, ranks=[rank], world_size=max(world_size, 1)
        ),
        totals=Totals(device_ns=0, busy_ns=0, idle_ns=0, wall_ns=0, wait_ns=0, steps=0, launches=0, operators=0),
        lines=[],
        no_line=Numbers(),
        resolved=Resolved(),
    )
    lengths = {one.step: one.stage_ns + one.bubble_ns for one in summary.steps if one.step >= 0}
    return msgspec.structs.replace(summary_of(nothing), step_ns=lengths, ascend=summary)


_NAMED = 3
"""Files that are named of those left out."""


@dataclass(frozen=True, slots=True)
class ReadRanks:
    """Ranks of a run, and those whose traces could not be read."""

    summaries: list[RankSummary] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """A sentence for each newer window or run of which no rank can be read, and for files of other ranks left out."""


def read_ranks(
    path: str | os.PathLike[str] | Sequence[str],
    *,
    step: int | None = None,
    stage: str | None = None,
    partial: bool = False,
    cache: bool = True,
    scheduler: str = "",
    progress: Progress | None = None,
) -> ReadRanks:
    """The ranks of the newest run at a path of which one can be read. What fails is told, and the rest goes on.

    Args:
        path: a trace, a folder, an fsspec URL of one, or a pattern such as `runs/*.json`; several are one run.
        step: only this `ProfilerStep#N`.
        stage: this stage of the run in place of the training stage.
        partial: of traces that end early, read what is whole.
        cache: take profiles from the user's cache folder, and keep there what is read.
        scheduler: the address of a Dask scheduler, whose workers then read the ranks.
        progress: called with bytes done and bytes in all.

    Raises:
        NoTraceError: nothing is there, or no trace.
        TraceError: none of the traces could be read; the first one's reason.
        OptionError: no rank has such a step or stage.
    """
    paths = expand_patterns([os.fspath(path)] if isinstance(path, (str, os.PathLike)) else path)
    where = paths[0]

    def read(selection: TraceSelection, cluster: Cluster) -> ReadRanks:
        requests = [ReadRequest(file, "summary", View(step=step), partial, cache) for file in selection.files]
        return _read(selection, cluster, requests, scheduler=scheduler, progress=progress)

    if len(paths) > 1:
        selected = select_together(paths, stage=stage)
        together = read(selected.selection, tables_together(selected, step))
        return replace(together, skipped=[*_left_out(paths, together)])

    try:
        newest = read_newest(where, lambda selection: read(selection, tables_beside(selection, step)), stage=stage)
    except NoTraceError:
        cluster = tables_alone(where, step)
        if not cluster.ranks:
            raise
        return read(TraceSelection(files=(), stage=stage or ""), cluster)
    return replace(newest.answer, skipped=[*newest.skipped, *_left_out(paths, newest.answer)])


def _left_out(paths: Sequence[str], read: ReadRanks) -> Iterator[str]:
    """A sentence about traces beside those that were read, if they name ranks that are missing."""
    world = max((one.world_size for one in read.summaries), default=1)
    here = {one.rank for one in read.summaries} | {one.rank for one in read.failures}
    if world <= len(here):
        return
    others: dict[str, str] = {}
    for folder in dict.fromkeys(map(_folder_at, paths)):
        with suppress(TraceError):  # what was read counts, though its folder may not be listed
            others |= {
                one.file.path: one.file.name
                for one in find_traces(folder)
                if one.identity.world_size == world and one.identity.rank is not None and one.identity.rank not in here
            }
    if others:
        files = f"{len(others):,} more files here name" if len(others) > 1 else "1 more file here names"
        names, more = ", ".join(sorted(others.values())[:_NAMED]), ", …" if len(others) > _NAMED else ""
        yield (
            f"{files} other ranks of this world size ({names}{more}); give all paths, or a pattern, if they are of "
            f"one run"
        )


def _folder_at(path: str) -> str:
    return path if is_url(path) or Path(path).is_dir() else str(Path(path).resolve().parent)


def read_selected(
    selection: TraceSelection, view: View, *, partial: bool = False, progress: Progress | None = None
) -> ReadRanks:
    """The same of traces that were selected already, and of any part of them. Tables know no parts but steps.

    Raises:
        TraceError: none of the traces could be read; the first one's reason.
        OptionError: no rank has such a step, phase or module.
    """
    cluster = Cluster() if view.phase or view.module else tables_beside(selection, view.step)
    requests = [ReadRequest(file, "summary", view, partial, cache=True) for file in selection.files]
    return _read(selection, cluster, requests, progress=progress)


def _read(
    selection: TraceSelection,
    cluster: Cluster,
    requests: Sequence[ReadRequest],
    *,
    scheduler: str = "",
    progress: Progress | None,
) -> ReadRanks:
    """The ranks by their traces, with what their tables tell."""
    found, reason = ReadRanks(), None
    for place, one in enumerate(read_traces(requests, scheduler=scheduler, progress=progress)):
        if isinstance(one, TraceError):
            reason = reason or one
            found.failures.append(
                Failure(path=selection.files[place].path, rank=selection.rank_of(place), message=one.message(in_words))
            )
        else:
            found.summaries.append(decoded(one, RankSummary))
    if reason is not None and not found.summaries and not cluster.ranks:
        raise reason
    failures = [
        Failure(path=without_secrets(one.path), rank=one.rank, message=without_secrets(one.message))
        for one in found.failures + cluster.failures
    ]
    return ReadRanks(with_tables(found.summaries, cluster), failures)


def kept_ranks(selection: TraceSelection, view: View, *, partial: bool = False) -> ReadRanks | None:
    """What `read_selected` gives, if the cache has every rank; None if some trace or table has to be read."""
    if selection.tables:
        return None
    bodies = kept_answers(selection.files, "summary", view, partial=partial)
    return None if bodies is None else ReadRanks([decoded(body, RankSummary) for body in bodies])
