"""A profile by file and line: what was measured there, who calls it, whom it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from deepscope.records import Costs, CriticalLine, Function, Line, Numbers, Peaks, Profile, Top, step_length_ns
from deepscope.records.source_files import source_lines
from deepscope.report.call_paths import Depth
from deepscope.report.line_tree import Node, below, fold_alike, merged_trees
from deepscope_lsp.engine.call_tree import (
    JoinedNode,
    PathNode,
    SubtreeTimes,
    joined_calls,
    opened_tree,
    subtree_times,
)
from deepscope_lsp.engine.path_map import parts_of


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of one profile.

    A time per step is the mean over steps and ranks; of a trace without steps it is the whole time.
    """

    is_device: bool
    """Whether times are the device's; else operators' CPU time stands in for them."""
    steps: int
    """0 where the trace has none."""
    ranks: int
    device_ns: int
    """All work of the devices, over all ranks, streams side by side added up."""
    wall_ns: int
    idle_ns: int
    costs: Costs
    """What lines cost: shares are of what all of them cost."""
    peaks: Peaks | None = None
    """Of the device, where they are known."""

    @classmethod
    def of(cls, profile: Profile) -> Scales:
        """The scales of a profile."""
        totals = profile.totals
        return cls(
            is_device=profile.metric == "device",
            steps=totals.steps,
            ranks=max(1, totals.ranks),
            device_ns=totals.device_ns,
            wall_ns=totals.wall_ns,
            idle_ns=totals.idle_ns,
            costs=Costs.of(profile),
            peaks=profile.peaks,
        )

    def per_step(self, value: float) -> float:
        """The mean of a sum over steps and ranks."""
        return self.costs.per_step(value)

    def per_step_of_rank(self, value: float) -> float:
        """The mean over steps of one rank's sum."""
        return value / max(1, self.steps)

    def share(self, duration_ns: float) -> float:
        """Of all device work (on a trace without device events, of the operators'), 0 to 1."""
        return duration_ns / self.device_ns if self.device_ns else 0.0

    def weight(self, numbers: Numbers) -> float:
        """The larger of the shares of the run's cost that a record has by itself and with what it calls."""
        return max(self.costs.share(numbers), self.costs.share_of(numbers.total_device_ns))

    def wall_share(self, duration_ns: float) -> float:
        """Of the steps' wall time, 0 to 1."""
        return duration_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def step_words(self) -> str:
        """What a shown time stands for."""
        return "per step" if self.steps else "in the trace"


def program_of(profile: Profile) -> str:
    """The program that a profile is of: as recorded, else the file from which most of the time was called; or ""."""
    if profile.trace.program:
        return profile.trace.program
    roots: list[int] = []
    """Of each node the outermost line."""
    weights: dict[str, int] = defaultdict(int)
    for node in profile.call_tree:  # a parent stands before what it calls
        line = roots[node.parent] if node.parent >= 0 else node.line
        roots.append(line)
        if line >= 0 and profile.lines[line].file:
            weights[profile.lines[line].file] += node.self_device_ns + node.self_cpu_ns
    return "".join(parts_of(max(weights, key=weights.__getitem__)).parts[-1:]) if weights else ""


def mean_step_ns(profile: Profile) -> int | None:
    """The mean duration of a step; None where the trace has none."""
    length_ns = step_length_ns(profile)
    return None if length_ns is None else round(length_ns)


_SUMMED = tuple(name for name in Numbers.__struct_fields__ if not name.startswith("total_"))
PATH_SHARE = 0.001
"""A call path with a smaller share of the busy time is left out."""


@dataclass(frozen=True, slots=True)
class CallEdge:
    """One caller or callee of a line, with the device and CPU time of the calls between them."""

    line: Line
    device_ns: int
    cpu_ns: int
    is_backward: bool = False
    """The other line did not call this one; it ran the backward pass of what this one did."""


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The measured lines and functions of one recorded file, by line (from 1)."""

    path: str
    lines: dict[int, Line]
    functions: dict[int, Function]


class ProfileIndex:
    """A profile made ready for questions about places in it."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.scales = Scales.of(profile)
        self._texts: dict[str, list[str]] = {}
        self._tops: dict[tuple[str, str], tuple[list[Top], list[Top]]] = {}
        self._opened: dict[Depth, list[PathNode]] = {}
        self._joined: dict[Depth, tuple[JoinedNode, ...]] = {}
        self._below: dict[tuple[str, int], Node] = {}
        self._function_callers: dict[tuple[str, int], list[CallEdge]] = {}
        by_place: dict[str, dict[int, list[Line]]] = defaultdict(lambda: defaultdict(list))
        for line in (*profile.lines, *profile.library_lines):
            by_place[line.file][line.line].append(line)
        functions: dict[str, dict[int, Function]] = defaultdict(dict)
        for function in profile.functions:
            functions[function.file][function.line] = function
        self.files: dict[str, FileIndex] = {
            path: FileIndex(
                path=path,
                lines={number: merged(lines) for number, lines in by_place.get(path, {}).items()},
                functions=functions.get(path, {}),
            )
            for path in {**by_place, **functions, **profile.files}
        }

    def opened_tree(self, depth: Depth) -> list[PathNode]:
        """The call tree down to a depth."""
        if depth not in self._opened:
            self._opened[depth] = opened_tree(self.profile, depth)
        return self._opened[depth]

    def joined_calls(self, depth: Depth) -> tuple[JoinedNode, ...]:
        """The same, what is the same under one parent joined."""
        if depth not in self._joined:
            self._joined[depth] = joined_calls(self.opened_tree(depth), PATH_SHARE * self.scales.device_ns)
        return self._joined[depth]

    def below(self, file: str, line: int) -> Node:
        """What the work of a line is made of, layers that are alike made one."""
        key = file, line
        if key not in self._below:
            self._below[key] = fold_alike(self._tree_below(file, line))
        return self._below[key]

    def _tree_below(self, file: str, line: int) -> Node:
        libraries = [(one.file, one.line) for one in self.profile.library_lines]
        if (file, line) in libraries:
            return below(self.profile, len(self.profile.lines) + libraries.index((file, line)))
        # A line may have several records: a comprehension, a lambda.
        children = merged_trees(self.profile, self._nodes.get((file, line), ()))
        total_ns = sum(child.total_device_ns for child in children)
        return Node("line", "", file, line, total_device_ns=total_ns, children=children)

    def critical(self, file: str, line: int) -> list[CriticalLine]:
        """What the critical path has of a line: a record for each of its functions."""
        return self._critical.get((file, line), [])

    @cached_property
    def _critical(self) -> dict[tuple[str, int], list[CriticalLine]]:
        found: dict[tuple[str, int], list[CriticalLine]] = defaultdict(list)
        for row in self.profile.critical.lines:
            found[row.file, row.line].append(row)
        return dict(found)

    @cached_property
    def by_name(self) -> dict[str, list[Function]]:
        """Functions by the last part of their name, the one with the most time first."""
        found: dict[str, list[Function]] = defaultdict(list)
        for function in sorted(self.profile.functions, key=lambda one: -one.total_device_ns):
            found[function.function.rsplit(".", 1)[-1]].append(function)
        return dict(found)

    def callers(self, file: str, line: int) -> list[CallEdge]:
        """Lines that call the function in which this line stands, on paths through this line; most time first."""
        return self._calls(file, line, up=True)

    def callers_of_function(self, file: str, line: int) -> list[CallEdge]:
        """Lines that call the function defined at a line, whichever of its lines ran; most time first."""
        if (file, line) not in self._function_callers:
            self._function_callers[file, line] = self._callers_of_function(file, line)
        return self._function_callers[file, line]

    def _callers_of_function(self, file: str, line: int) -> list[CallEdge]:
        function = next((one for one in self.profile.functions if (one.file, one.line) == (file, line)), None)
        if function is None:
            return []
        sums: dict[tuple[str, int], CallEdge] = {}
        for record in self.lines_of(function):
            for call in self.callers(file, record.line):
                key = call.line.file, call.line.line
                before = sums.get(key, CallEdge(call.line, 0, 0, is_backward=True))
                sums[key] = CallEdge(
                    call.line,
                    before.device_ns + call.device_ns,
                    before.cpu_ns + call.cpu_ns,
                    is_backward=before.is_backward and call.is_backward,
                )
        return sorted(sums.values(), key=lambda call: (-call.device_ns, -call.cpu_ns))

    def text_of(self, file: str, line: int) -> str:
        """A line of a recorded file as it ran; "" where the trace has no text of it."""
        lines = self.lines_of_text(file)
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def lines_of_text(self, file: str) -> list[str]:
        """A recorded file as it ran, line by line; empty where the trace has no text of it."""
        if file not in self._texts:
            source = self.profile.files.get(file)
            self._texts[file] = source_lines(source.text) if source is not None and source.text is not None else []
        return self._texts[file]

    def lines_of(self, function: Function) -> list[Line]:
        """The measured lines of a function, the one with the most own time first."""
        return self._lines_of.get((function.file, function.function), [])

    def tops_of(self, function: Function) -> tuple[list[Top], list[Top]]:
        """The kernels and the operators that are named at a function's lines, the largest first."""
        key = function.file, function.function
        if key not in self._tops:
            lines = self.lines_of(function)
            self._tops[key] = _summed(line.top_kernels for line in lines), _summed(line.top_operators for line in lines)
        return self._tops[key]

    def callees(self, file: str, line: int) -> list[CallEdge]:
        """Lines reached from this line directly; most time first."""
        return self._calls(file, line, up=False)

    def hot_path(self, file: str, line: int) -> list[Line]:
        """The lines on the most expensive call path through a line, outermost first."""
        tree, totals = self.profile.call_tree, self._totals
        places = self._nodes.get((file, line), [])
        if not places:
            return []
        place = max(places, key=lambda one: totals[one].device_ns)
        path = []
        above = place
        while above >= 0:
            path.append(tree[above].line)
            above = tree[above].parent
        path.reverse()
        while children := self._children.get(place):
            place = max(children, key=lambda one: totals[one].device_ns)
            path.append(tree[place].line)
        return [self.profile.lines[index] for index in path if index >= 0]

    def _calls(self, file: str, line: int, *, up: bool) -> list[CallEdge]:
        tree = self.profile.call_tree
        sums: dict[int, SubtreeTimes] = defaultdict(lambda: SubtreeTimes(0, 0, 0))
        for place in self._nodes.get((file, line), ()):
            pairs = [(tree[place].parent, place)] if up else [(child, child) for child in self._children.get(place, ())]
            for other, counted in pairs:
                if other >= 0 and tree[other].line >= 0:
                    before, times = sums[tree[other].line], self._totals[counted]
                    sums[tree[other].line] = SubtreeTimes(
                        *(one + more for one, more in zip(before, times, strict=True))
                    )
        calls = [
            # Autograd runs what a line of the forward pass did below the line that called `backward()`: nothing of it
            # is that line's own work on the CPU.
            CallEdge(
                self.profile.lines[index], device_ns, cpu_ns, is_backward=0 < backward_ns == device_ns and not cpu_ns
            )
            for index, (device_ns, cpu_ns, backward_ns) in sums.items()
        ]
        return sorted(calls, key=lambda call: (-call.device_ns, -call.cpu_ns))

    @cached_property
    def _lines_of(self) -> dict[tuple[str, str], list[Line]]:
        found: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in self.profile.lines:
            found[line.file, line.function].append(line)
        return dict(found)

    @cached_property
    def _nodes(self) -> dict[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = defaultdict(list)
        lines = self.profile.lines
        for place, node in enumerate(self.profile.call_tree):
            if node.line >= 0:
                line = lines[node.line]
                found[line.file, line.line].append(place)
        return dict(found)

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for place, node in enumerate(self.profile.call_tree):
            found[node.parent].append(place)
        return dict(found)

    @cached_property
    def _totals(self) -> list[SubtreeTimes]:
        return subtree_times(self.profile.call_tree)


def _summed(tables: Iterable[list[Top]]) -> list[Top]:
    """What is named at several lines, together; the largest first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for top in (one for table in tables for one in table):
        total = sums[top.name]
        total[0] += top.device_ns
        total[1] += top.count
    tops = [Top(name, device_ns, count) for name, (device_ns, count) in sums.items()]
    return sorted(tops, key=lambda top: -top.device_ns)


def merged(lines: Sequence[Line]) -> Line:
    """Records of one line in several functions (a comprehension, a lambda) as one; the largest gives the words."""
    if len(lines) == 1:
        return lines[0]
    first = max(lines, key=lambda line: (line.self_device_ns, line.self_cpu_ns))
    sums = {name: sum(getattr(line, name) for line in lines) for name in _SUMMED}
    totals = {
        "total_device_ns": _joint(sums["self_device_ns"], (line.total_device_ns for line in lines)),
        "total_cpu_ns": _joint(sums["self_cpu_ns"], (line.total_cpu_ns for line in lines)),
    }
    # How far the ranks' sums lie apart does not follow from how far their parts do.
    return msgspec.structs.replace(first, **sums, **totals, spread=None)


def _joint(self_ns: int, totals: Iterable[int]) -> int:
    """A line calls its own comprehension, so the totals overlap: at least each of them and all own time."""
    return max(self_ns, *totals)
