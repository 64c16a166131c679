"""The tables of an Ascend run beside what its traces tell, and in their place where there is no trace."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from deepscope.errors import OptionError
from deepscope.printable import without_secrets
from deepscope.ranks.ascend_rank import AscendRank
from deepscope.ranks.summary import RankSummary, summary_of
from deepscope.records import Numbers, Profile, Resolved, Totals, TraceInfo
from deepscope.store.ascend.cluster import Cluster, find_cluster
from deepscope.store.runs import SelectedTogether, Selection


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


def tables_beside(selection: Selection, step: int | None) -> Cluster:
    """The tables of selected traces; nothing where these are no Ascend run's."""
    return find_cluster(selection.tables, step) if selection.tables else Cluster()


def tables_of_several(selected: SelectedTogether, step: int | None) -> Cluster:
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
