"""The answers of commands: hot lines, call paths and flame graphs as plain data, ready for JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from deepscope.records import CallNode, Line, Numbers
from deepscope.report.paths import call_tree
from deepscope.report.places import short_path
from deepscope_lsp.engine.annotation import annotate, total_words
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.hover import Locate
from deepscope_lsp.engine.profile_index import ProfileIndex, subtree_ns

__all__ = [
    "FlameMetric",
    "call_paths",
    "flame_graph",
    "hot_lines",
    "hot_modules",
    "line_object",
    "numbers_object",
    "vanished_lines",
]

FlameMetric = Literal["device", "backward", "cpu"]
_METRICS: dict[FlameMetric, Callable[[CallNode], int]] = {
    "device": lambda node: node.self_device_ns,
    "backward": lambda node: node.backward_device_ns,
    "cpu": lambda node: node.self_cpu_ns,
}

VANISHED_SHARE = 0.01
"""Of the baseline's busy time."""
VANISHED_LIMIT = 50
NO_LINE_NAME = "(no user line)"
DEPTH_LIMIT = 200
"""Of the tree that is answered: JSON readers have limits of their own."""


def line_object(line: Line, index: ProfileIndex, locate: Locate, baseline: Baseline | None = None) -> dict[str, Any]:
    """One line: its place as recorded, where it is here (`uri`, `currentLine`), its label and all its numbers."""
    found = locate(line.file, line.line)
    note = annotate(line, index.measure)
    return {
        "file": line.file,
        "shortFile": short_path(line.file, index.profile.trace.project_root),
        "line": line.line,
        "function": line.function,
        "text": (line.text or "").strip(),
        "uri": found[0] if found else None,
        "currentLine": found[1] if found else None,
        "label": note.label,
        "share": index.measure.share(line.self_device_ns),
        "totalShare": index.measure.share(line.total_device_ns),
        "perStepNs": index.measure.per_step(line.self_device_ns),
        "baselineNs": None if baseline is None else baseline.own_ns(line.file, line.line),
        "exact": line.exact,
        "numbers": numbers_object(line),
    }


def numbers_object(record: Numbers) -> dict[str, int]:
    """The numbers of a record that are not 0, by their names in docs/report.md."""
    numbers = msgspec.to_builtins(record)
    return {name: value for name, value in numbers.items() if type(value) is int and value and name != "line"}


def hot_lines(
    index: ProfileIndex,
    locate: Locate,
    *,
    limit: int,
    files: set[str] | None = None,
    baseline: Baseline | None = None,
) -> list[dict[str, Any]]:
    """The lines with the most own device time first, then those that make it wait; of `files` alone where given."""
    lines = [line for line in index.profile.lines if files is None or line.file in files]
    lines.sort(key=lambda line: (-line.self_device_ns, -(line.wait_ns + line.idle_ns), -line.self_cpu_ns))
    return [line_object(line, index, locate, baseline) for line in lines[:limit]]


def vanished_lines(index: ProfileIndex, locate: Locate, baseline: Baseline) -> list[dict[str, Any]]:
    """Lines of the baseline that had device time and are gone, or have none today; the largest first."""
    old = baseline.index
    answers = []
    for line in baseline.vanished()[:VANISHED_LIMIT]:
        if old.measure.share(line.self_device_ns) < VANISHED_SHARE:
            break
        file, number = baseline.place_now(line)
        found = locate(file, number)
        answers.append(
            {
                "file": file,
                "shortFile": short_path(file, index.profile.trace.project_root),
                "line": number,
                "function": line.function,
                "text": (line.text or "").strip(),
                "uri": found[0] if found else None,
                "currentLine": found[1] if found else None,
                "share": old.measure.share(line.self_device_ns),
                "perStepNs": old.measure.per_step(line.self_device_ns),
            }
        )
    return answers


def call_paths(index: ProfileIndex, locate: Locate, *, min_share: float = 0.001) -> list[dict[str, Any]]:
    """The call tree, equal lines under one parent joined, the largest total first; below `min_share` left out."""
    return _CallPaths(index, locate, min_share).roots()


def flame_graph(index: ProfileIndex, locate: Locate, *, metric: FlameMetric = "device") -> dict[str, Any]:
    """Frames and a tree of their times: what a flame graph draws.

    `frames[i]` is a line; a node is `{"frame": i, "value": total_ns, "self": self_ns, "children": […]}`, frame -1 for
    work that reached no line.
    """
    tree = call_tree(index.profile)
    own = _METRICS[metric]
    totals = [own(node) for node in tree]
    for place in range(len(tree) - 1, -1, -1):
        if 0 <= tree[place].parent < place:
            totals[tree[place].parent] += totals[place]
    nodes: list[dict[str, Any]] = []
    roots: list[dict[str, Any]] = []
    for node, total_ns in zip(tree, totals, strict=True):
        entry: dict[str, Any] = {"frame": node.line, "value": total_ns, "self": own(node), "children": []}
        if total_ns:
            (nodes[node.parent]["children"] if 0 <= node.parent < len(nodes) else roots).append(entry)
        nodes.append(entry)
    return {
        "metric": metric,
        "of": index.profile.metric,
        "unit": "nanoseconds",
        "total": sum(root["value"] for root in roots),
        "frames": [_frame(index, locate, number) for number in range(len(index.profile.lines))],
        "roots": roots,
    }


def hot_modules(index: ProfileIndex, *, limit: int) -> list[dict[str, Any]]:
    """The modules with the most device time, with what is in them."""
    modules = sorted(index.profile.modules, key=lambda one: (-one.total_device_ns, -one.total_cpu_ns))
    return [
        {
            "path": module.path,
            "className": module.class_name,
            "label": total_words(module, index.measure),
            "share": index.measure.share(module.total_device_ns),
            "numbers": numbers_object(module),
        }
        for module in modules[:limit]
    ]


class _CallPaths:
    """The call tree as nested objects."""

    def __init__(self, index: ProfileIndex, locate: Locate, min_share: float) -> None:
        self._index = index
        self._locate = locate
        self._limit_ns = min_share * index.measure.busy_ns
        self._tree = call_tree(index.profile)
        self._totals = subtree_ns(self._tree)
        self._children: dict[int, list[int]] = defaultdict(list)
        for place, node in enumerate(self._tree):
            self._children[node.parent].append(place)

    def roots(self) -> list[dict[str, Any]]:
        return self._level(self._children[-1], 0)

    def _level(self, places: list[int], depth: int) -> list[dict[str, Any]]:
        if depth > DEPTH_LIMIT:
            return []
        by_line: dict[int, list[int]] = defaultdict(list)
        for place in places:
            by_line[self._tree[place].line].append(place)
        level = [self._entry(number, same, depth) for number, same in by_line.items()]
        level = [entry for entry in level if entry["totalNs"] >= self._limit_ns]
        return sorted(level, key=lambda entry: (-entry["totalNs"], -entry["totalCpuNs"]))

    def _entry(self, number: int, same: list[int], depth: int) -> dict[str, Any]:
        total_ns = sum(self._totals[place][0] for place in same)
        below = [child for place in same for child in self._children[place]] if total_ns >= self._limit_ns else []
        return {
            **_frame(self._index, self._locate, number),
            "selfNs": sum(self._tree[place].self_device_ns for place in same),
            "totalNs": total_ns,
            "totalCpuNs": sum(self._totals[place][1] for place in same),
            "share": self._index.measure.share(total_ns),
            "children": self._level(below, depth + 1),
        }


def _frame(index: ProfileIndex, locate: Locate, number: int) -> dict[str, Any]:
    if number < 0:
        return {"function": NO_LINE_NAME, "file": "", "line": 0, "uri": None, "currentLine": None}
    line = index.profile.lines[number]
    found = locate(line.file, line.line)
    return {
        "function": line.function,
        "file": line.file,
        "line": line.line,
        "uri": found[0] if found else None,
        "currentLine": found[1] if found else None,
    }
