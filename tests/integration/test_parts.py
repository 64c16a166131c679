"""What a line's work is made of, on every recorded trace: it sums to the line, and is what a plain walk finds."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.build import build_profile
from deepscope.analysis.numbers.lines import OTHER, Parts, folded
from deepscope.analysis.ownership.attribution import attribute
from deepscope.analysis.ownership.below import NumberedParts
from deepscope.analysis.ownership.compiled import calls_with_sources
from deepscope.analysis.tables.lines import all_parts
from deepscope.dashboard.pages.flame import FlameQuestion, flame
from deepscope.records import PartKey, Profile
from deepscope.report.call_paths import DEPTHS, FlameMetric, stacks
from deepscope.report.line_tree import Node, below, fold_alike
from deepscope.trace.kinds import Kind
from deepscope.trace.read import read_trace
from deepscope_lsp.answers import CallPath
from deepscope_lsp.engine.call_paths import call_paths
from deepscope_lsp.engine.profile_index import ProfileIndex
from one_profile import OneProfile
from recorded_traces import each_trace

MOST_WORK = 60_000
"""Pieces of work that a walk in plain Python is given."""


@pytest.fixture(scope="module", params=each_trace())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@lru_cache(maxsize=1)
def analysis_of(path: Path) -> Analysis:
    return analyse(attribute(read_trace(path)))


@lru_cache(maxsize=1)
def parts_of(path: Path) -> tuple[Parts, list[PartKey]]:
    return all_parts(analysis_of(path))


@lru_cache(maxsize=1)
def profile_of(path: Path) -> Profile:
    return build_profile(read_trace(path))


def test_the_parts_of_each_call_path_sum_to_it(path):
    profile = profile_of(path)
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    for number, part in enumerate(profile.parts):
        assert part.parent < number
        assert part.parent < 0 or profile.parts[part.parent].call == part.call
        assert 0 <= part.backward_device_ns <= part.self_device_ns
        sums[part.call]["self"] += part.self_device_ns
        sums[part.call]["backward"] += part.backward_device_ns
    for place, node in enumerate(profile.call_tree):
        assert (sums[place]["self"], sums[place]["backward"]) == (node.self_device_ns, node.backward_device_ns)


def test_each_total_is_the_self_time_and_the_totals_below(path):
    profile = profile_of(path)

    def check(node: Node) -> None:
        assert node.total_device_ns == node.self_device_ns + sum(child.total_device_ns for child in node.children)
        assert 0 <= node.backward_device_ns <= node.total_device_ns
        assert sum(child.kind == "other" for child in node.children) <= 1
        for child in node.children:
            check(child)

    for number, line in enumerate(profile.lines):
        plain = below(profile, number)
        for tree in (plain, fold_alike(plain)):
            check(tree)
            assert (tree.total_device_ns, tree.backward_device_ns) == (line.self_device_ns, line.backward_device_ns)
            assert not tree.self_device_ns  # all of it lies in an operator or a kernel
    rest = below(profile, -1)
    assert rest.total_device_ns == profile.no_line.self_device_ns


def walked(path: Path) -> Counter[tuple[int, ...]]:
    """Time by call path and the places below it, found by walking up from each piece of work, event by event."""
    analysis = analysis_of(path)
    attribution = analysis.attribution
    trace, calls, scopes, work = attribution.trace, attribution.calls, attribution.scopes, attribution.work
    known = NumberedParts()
    modules = {
        int(node): int(module) for node, module in zip(analysis.modules.nodes, analysis.modules.module, strict=True)
    }
    by_stack = scopes.source == "call_stack"
    is_graph = calls_with_sources(trace)
    lost: dict[int, bool] = {}

    def leads_nowhere(root: int) -> bool:
        """Whether no line stands above the forward of a span of the engine."""
        if root not in lost:
            at, steps = root, 0
            while at >= 0 and scopes.location[at] < 0 and steps < len(trace.events):
                at, steps = int(calls.up[at]), steps + 1
            lost[root] = at < 0
        return lost[root]

    def name_of(event: int) -> str | None:
        kind, name = trace.events.kind[event], trace.strings[trace.events.name[event]]
        if kind == Kind.OPERATOR:
            return name.removeprefix("autograd::engine::evaluate_function: ")
        if kind == Kind.MODULE_SCOPE:
            scope = trace.scopes[trace.events.scope[event]]
            return f"module {scope.path or scope.name} {scope.file} {scope.line if scope.file else 0}"
        if kind == Kind.PYTHON_FUNCTION and event in modules:
            return f"module {analysis.modules.names[modules[event]][0]}  0"
        return None

    result: Counter[tuple[int, ...]] = Counter()
    for row in range(len(work)):
        event, names = int(work.node[row]), []
        first = event
        while event >= 0:
            if by_stack and attribution.owners.path[event] != attribution.owners.path[first]:
                break
            if not by_stack and scopes.location[event] >= 0:
                break
            if work.metric == "device" and is_graph[event] and (names or work.fused[row] >= 0):
                break  # what is around the call of a compiled graph is not below the lines of its source
            name = name_of(event)
            if name is not None and not (names and names[-1] == name and trace.events.kind[event] == Kind.OPERATOR):
                names.append(name)
            is_root = calls.root[event] == event
            event = int(
                calls.caller[event] if is_root and scopes.marks.any() and leads_nowhere(event) else calls.up[event]
            )
        if work.metric == "device":
            names.insert(0, f"kernel {trace.strings[trace.events.name[work.event[row]]]}")
        key = tuple(known.add(PartKey("operator", name)) for name in reversed(names))
        result[(int(work.path[row]), *key)] += int(work.duration_ns[row])
    return Counter({(path, *(known.all[i].name for i in key)): time for (path, *key), time in result.items() if time})


def test_the_parts_are_what_a_walk_from_each_piece_of_work_finds(path):
    if len(analysis_of(path).attribution.work) > MOST_WORK:
        pytest.skip(f"more than {MOST_WORK:,} pieces of work: too long for a walk in plain Python")
    parts, places = parts_of(path)

    def name(place: PartKey) -> str:
        if place.kind == "module":
            return f"module {place.name} {place.file} {place.line}"
        return f"kernel {place.name}" if place.kind == "kernel" else place.name

    names = [name(place) for place in places]
    shown = [place.kind != "library" for place in places]
    keys: list[tuple[object, ...]] = []
    found: Counter[tuple[object, ...]] = Counter()
    for call, parent, place, self_ns in zip(
        parts.path.tolist(), parts.parent.tolist(), parts.place.tolist(), parts.self_ns.tolist(), strict=True
    ):
        above = keys[parent] if parent >= 0 else (call,)
        keys.append((*above, names[place]) if shown[place] else above)
        found[keys[-1]] += self_ns
    assert Counter({key: time for key, time in found.items() if time}) == walked(path)


def test_no_run_is_counted_twice(path):
    """The calls of all parts of a kind are the events of that kind which did work."""
    parts, places = parts_of(path)
    work = analysis_of(path).attribution.work
    kernels = [place.kind == "kernel" for place in places]
    launches = sum(
        calls for calls, place in zip(parts.calls.tolist(), parts.place.tolist(), strict=True) if kernels[place]
    )
    assert launches == (work.counts.sum() if work.metric == "device" else 0)
    events = analysis_of(path).attribution.trace.events
    operators = [place.kind == "operator" for place in places]
    runs = sum(
        calls for calls, place in zip(parts.calls.tolist(), parts.place.tolist(), strict=True) if operators[place]
    )
    assert runs <= int((events.kind == Kind.OPERATOR).sum())


def test_what_is_folded_holds_what_it_stands_for(path):
    parts, _ = parts_of(path)
    small = folded(parts, analysis_of(path).attribution.paths.location)
    for column in ("self_ns", "backward_ns"):
        before, after = np.zeros(1 << 20, np.int64), np.zeros(1 << 20, np.int64)
        np.add.at(before, parts.path, getattr(parts, column))
        np.add.at(after, small.path, getattr(small, column))
        assert (before == after).all()
    assert len(small) <= 13_000
    assert (small.self_ns[small.place == OTHER] > 0).all()


def nowhere(_file: str, _line: int) -> None:
    return None


def test_views_hold_all_time_at_every_depth(path):
    profile = profile_of(path)
    index = ProfileIndex(profile)
    device_ns = sum(node.self_device_ns for node in profile.call_tree)
    wholes: dict[FlameMetric, int] = {
        "device": device_ns,
        "backward": sum(node.backward_device_ns for node in profile.call_tree),
    }

    def checked_path(node: CallPath) -> int:
        assert node.total_ns == node.self_ns + sum(checked_path(child) for child in node.children)
        assert 0 <= node.total_backward_ns <= node.total_ns
        return node.total_ns

    for depth in DEPTHS:
        for metric, whole_ns in wholes.items():
            drawn = flame(OneProfile(profile), FlameQuestion(depth=depth, metric=metric))
            assert drawn.whole_ns == whole_ns or metric not in drawn.metrics
        paths = call_paths(index, nowhere, depth=depth, min_share=0)
        assert sum(map(checked_path, paths.roots)) == device_ns


def test_views_show_the_paths_that_exports_have(path):
    profile = profile_of(path)
    index = ProfileIndex(profile)
    first = len(profile.lines)
    for depth in DEPTHS:
        exported: Counter[tuple[int, ...]] = Counter()
        for stack in stacks(profile, depth):
            exported[(*stack.lines, *(first + place for place in stack.places))] += stack.device_ns
        shown: Counter[tuple[int, ...]] = Counter()
        tree, keys = index.opened_tree(depth), []
        for node in tree:
            keys.append((*(keys[node.parent] if node.parent >= 0 else ()), node.frame))
            shown[keys[-1]] += node.self_device_ns
        assert len(set(keys)) == len(keys)  # what is of one place under one parent is one node
        assert {key: time for key, time in shown.items() if time} == {
            key: time for key, time in exported.items() if time
        }
