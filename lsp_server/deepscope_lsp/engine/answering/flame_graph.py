"""The flame graph: frames and a tree of their times."""

from __future__ import annotations

from collections.abc import Callable

from deepscope.records import CallNode
from deepscope.report.paths import call_tree
from deepscope_lsp.answers import FlameGraph, FlameMetric, FlameNode, Place
from deepscope_lsp.engine.places import Locate, place_fields
from deepscope_lsp.engine.profile.call_tree import subtree_sums
from deepscope_lsp.engine.profile.profile_index import ProfileIndex
from deepscope_lsp.engine.wording import quantities

__all__ = ["flame_graph"]

_METRICS: dict[FlameMetric, Callable[[CallNode], int]] = {
    "device": lambda node: node.self_device_ns,
    "backward": lambda node: node.backward_device_ns,
    "cpu": lambda node: node.self_cpu_ns,
}


def flame_graph(
    index: ProfileIndex,
    locate: Locate,
    *,
    metric: FlameMetric = "device",
    rank: int | None = None,
    min_share: float = 0.0,
) -> FlameGraph:
    """What a flame graph draws; `frames[i]` is the line of a node with `frame` i.

    Args:
        index: of all ranks, or of `rank` alone.
        locate: where lines are here.
        metric: whose times.
        rank: null for all together.
        min_share: nodes with less of the whole are left out.
    """
    tree = call_tree(index.profile)
    own = _METRICS[metric]
    totals = subtree_sums(tree, own)
    whole = sum(totals[place] for place, node in enumerate(tree) if not 0 <= node.parent < place)
    per_step = index.scales.per_step
    roots: list[FlameNode] = []
    levels: list[list[FlameNode] | None] = []
    """For each node the list that its children go into; None where the node is left out."""
    for node, total_ns in zip(tree, totals, strict=True):
        level = levels[node.parent] if 0 <= node.parent < len(levels) else roots
        if level is None or not total_ns or total_ns < min_share * whole:
            levels.append(None)
            continue
        own_ns = own(node)
        own_words = f", own {quantities.duration(per_step(own_ns))}" if own_ns else ""
        entry = FlameNode(
            frame=node.line,
            value=total_ns,
            own=own_ns,
            value_per_step=per_step(total_ns),
            self_per_step=per_step(own_ns),
            words=f"{quantities.duration(per_step(total_ns))} · {quantities.share(total_ns / whole)}{own_words}",
            children=[],
        )
        level.append(entry)
        levels.append(entry.children)
    return FlameGraph(
        metric=metric,
        of=index.profile.metric,
        rank=rank,
        unit="nanoseconds",
        total=whole,
        total_per_step=per_step(whole),
        total_words=quantities.duration(per_step(whole)),
        step_words=index.scales.step_words,
        frames=[Place(**place_fields(line, locate)) for line in index.profile.lines],
        roots=roots,
    )
