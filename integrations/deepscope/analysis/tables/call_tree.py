"""The call paths of user lines."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.records import CallNode
from deepscope.trace.model import Int64


def call_tree(analysis: Analysis, position: Int64) -> tuple[list[CallNode], Int64]:
    """The call paths that hold any time, parents first; what reached no line is a root with line -1.

    Args:
        analysis: of the trace.
        position: the record of each line, from `line_table`.

    Returns:
        The nodes, and for each call path its node, -1 for a path that holds no time; shape (paths,).
    """
    paths = analysis.attribution.paths
    values = analysis.by_path
    used = (paths.subtree_sums(np.abs(values)) != 0).any(axis=1)
    used[0] = values[0].any()
    number = np.where(used, np.cumsum(used) - 1, -1)
    nodes: list[CallNode] = []
    for path in np.flatnonzero(used).tolist():
        parent = int(paths.parent[path])
        line = int(position[paths.location[path]]) if path else -1
        device, backward, cpu, _ = values[path].tolist()
        nodes.append(CallNode(int(number[parent]) if parent > 0 else -1, line, device, cpu, backward))
    return nodes, number
