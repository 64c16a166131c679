"""The flame graph: frames and a tree of their times."""

from __future__ import annotations

from collections.abc import Callable

from deepscope.report.paths import Depth
from deepscope_lsp.answers import FlameGraph, FlameMetric, FlameNode, Frame
from deepscope_lsp.engine.answering.frames import Modules, detail_words, frame_fields, modules_with
from deepscope_lsp.engine.places import Locate
from deepscope_lsp.engine.profile.call_tree import subtree_sums
from deepscope_lsp.engine.profile.opened_tree import PathNode, node_name, place_of
from deepscope_lsp.engine.profile.profile_index import ProfileIndex
from deepscope_lsp.engine.wording import quantities

_METRICS: dict[FlameMetric, Callable[[PathNode], int]] = {
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
    depth: Depth = "kernel",
) -> FlameGraph:
    """What a flame graph draws; `frames[i]` is the line of a node with `frame` i, or the part of a line's work.

    Args:
        index: of all ranks, or of `rank` alone.
        locate: where lines are here.
        metric: whose times.
        rank: null for all together.
        min_share: nodes with less of the whole are left out.
        depth: how far below the lines.
    """
    tree = index.opened_tree(depth)
    own = _METRICS[metric]
    totals = subtree_sums(tree, own)
    backward = subtree_sums(tree, _METRICS["backward"]) if metric == "device" else [0] * len(tree)
    whole = sum(totals[place] for place, node in enumerate(tree) if not 0 <= node.parent < place)
    per_step = index.scales.per_step
    frames = _Frames(index, locate)
    roots: list[FlameNode] = []
    levels: list[tuple[list[FlameNode], Modules] | None] = []
    """For each node the list that its children go into, and the modules above them; None where it is left out."""
    for node, total_ns, backward_ns in zip(tree, totals, backward, strict=True):
        level = levels[node.parent] if 0 <= node.parent < len(levels) else (roots, ())
        if level is None or not total_ns or total_ns < min_share * whole:
            levels.append(None)
            continue
        siblings, modules = level
        own_ns = own(node)
        own_words = detail_words(index, own_ns, total_ns, backward_ns, node.calls)
        words = f"{quantities.duration(per_step(total_ns))} · {quantities.share(total_ns / whole)}"
        entry = FlameNode(
            frame=frames.number(node.frame, modules),
            value=total_ns,
            own=own_ns,
            value_per_step=per_step(total_ns),
            self_per_step=per_step(own_ns),
            words=f"{words}, {own_words}" if own_words else words,
            children=[],
        )
        siblings.append(entry)
        levels.append((entry.children, modules_with(index, node.frame, modules)))
    return FlameGraph(
        metric=metric,
        of=index.profile.metric,
        rank=rank,
        unit="nanoseconds",
        total=whole,
        total_per_step=per_step(whole),
        total_words=quantities.duration(per_step(whole)),
        step_words=index.scales.step_words,
        depth=depth,
        frames=frames.all,
        roots=roots,
    )


class _Frames:
    """The frames of a graph: all lines, then what is met below them, each name of a place once."""

    def __init__(self, index: ProfileIndex, locate: Locate) -> None:
        self._index = index
        self._locate = locate
        self._numbers: dict[tuple[int, str], int] = {}
        self.all = [Frame(**frame_fields(index, line, locate)) for line in range(len(index.profile.lines))]

    def number(self, frame: int, modules: Modules) -> int:
        """The number of a node's frame."""
        if frame < len(self._index.profile.lines):
            return frame
        place = place_of(self._index.profile, frame)
        key = frame, "" if place is None else node_name(place, modules)
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(Frame(**frame_fields(self._index, frame, self._locate, modules)))
        return self._numbers[key]
