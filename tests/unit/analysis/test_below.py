"""What stands below a line, in small traces whose every node is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deepscope.records import Profile
from deepscope.report.line_report import find_line
from deepscope.report.line_tree import Node, below
from trace_builder import BACKWARD, TraceBuilder

Build = Callable[..., Profile]

USER, LIBRARY = "/p/train.py", "/env/site-packages/kit/blocks.py"
LINEAR = "/env/site-packages/torch/nn/linear.py"


def tree(node: Node) -> list[tuple[int, str, str, int, int, int, int]]:
    """Depth, kind, name, line, total, backward part and calls of all nodes below one."""
    return [
        (depth, one.kind, one.name, one.line, one.total_device_ns, one.backward_device_ns, one.calls)
        for depth, one in node.walk()
        if depth
    ]


def trained() -> TraceBuilder:
    """Two layers of a library, each an addmm of 100 ns, whose backward takes 70 ns; all called from line 7."""
    built = TraceBuilder().line(USER, 7, "main", 0, 2000)
    for layer, start in enumerate((100, 600)):
        built.line(LIBRARY, 20 + layer, "Net.forward", start, 400, library=True)
        built.module(
            "Linear", f"layers.{layer}", start + 10, 300, file="/env/site-packages/torch/nn/linear.py", line=100
        )
        built.op("aten::linear", start + 20, 200, sequence=layer)
        built.op("aten::addmm", start + 30, 100, sequence=layer)
        built.kernel("gemm", start + 40, 5000 + start, 100)
    built.line(USER, 8, "main", 3000, 1000)
    for layer, start in enumerate((3100, 3500)):
        built.backward("AddmmBackward0", start, 200, sequence=1 - layer)
        built.op("aten::mm", start + 20, 100, tid=BACKWARD)
        built.kernel("gemm_backward", start + 30, 6000 + start, 70, tid=BACKWARD)
        built.flow((100, 600)[1 - layer] + 30, start + 1)
    return built


def test_a_line_opens_into_library_lines_modules_operators_and_kernels(profile_of: Build) -> None:
    profile = profile_of(trained())
    (line,) = (place for place, one in enumerate(profile.lines) if one.line == 7)
    assert profile.lines[line].self_device_ns == 340
    layers = [
        (depth, kind, name.format(layer), where + layer * (kind == "library"), total, back, 1)
        for layer in range(2)
        for depth, kind, name, where, total, back in [
            (1, "library", "Net.forward", 20, 170, 70),
            (2, "module", "layers.{}", 100, 170, 70),
            (3, "operator", "aten::linear", 0, 170, 70),
            (4, "operator", "aten::addmm", 0, 170, 70),
            (5, "kernel", "gemm", 0, 100, 0),
            (5, "operator", "AddmmBackward0", 0, 70, 70),
            (6, "operator", "aten::mm", 0, 70, 70),
            (7, "kernel", "gemm_backward", 0, 70, 70),
        ]
    ]
    assert tree(below(profile, line)) == layers


def test_a_librarys_lines_have_numbers_of_their_own_and_own_no_work(profile_of: Build) -> None:
    profile = profile_of(trained())
    assert {(line.file, line.line) for line in profile.lines} == {(USER, 7), (USER, 8)}
    found = {
        line.line: (line.self_device_ns, line.total_device_ns, line.backward_device_ns, line.calls, line.launches)
        for line in profile.library_lines
    }
    assert found == {20: (170, 170, 70, 1, 2), 21: (170, 170, 70, 1, 2)}
    assert {(line.file, line.function, line.exact) for line in profile.library_lines} == {
        (LIBRARY, "Net.forward", True)
    }


def test_a_library_line_within_a_library_line_is_a_part_of_it(profile_of: Build) -> None:
    built = (
        TraceBuilder()
        .line(USER, 7, "main", 0, 1000)
        .line(LIBRARY, 20, "outer", 10, 900, library=True)
        .line(LIBRARY, 30, "inner", 20, 300, library=True)
        .line(LIBRARY, 20, "outer", 30, 200, library=True)  # it calls itself
        .op("aten::mm", 40, 100)
        .kernel("gemm", 50, 2000, 80)
        .op("aten::relu", 500, 100)
        .kernel("relu", 510, 3000, 9)
    )
    profile = profile_of(built)
    found = {line.line: (line.self_device_ns, line.total_device_ns, line.calls) for line in profile.library_lines}
    assert found == {20: (89, 89, 2), 30: (0, 80, 1)}
    outer = below(profile, find_line(profile, "blocks.py:20"))
    assert (outer.total_device_ns, outer.calls) == (89, 2)
    assert [(depth, name) for depth, _, name, *_ in tree(outer)] == [
        (1, "inner"), (2, "outer"), (3, "aten::mm"), (4, "gemm"), (1, "aten::relu"), (2, "relu"),
    ]  # fmt: skip
    assert [(depth, name) for depth, _, name, *_ in tree(below(profile, 0))] == [
        (1, "outer"), (2, "inner"), (3, "outer"), (4, "aten::mm"), (5, "gemm"), (2, "aten::relu"), (3, "relu"),
    ]  # fmt: skip


def test_work_above_which_no_forward_line_stands_is_below_the_backward_call(profile_of: Build) -> None:
    built = TraceBuilder().module("Net", "net", 0, 400).op("aten::mm", 10, 100, sequence=3)
    built.line(USER, 9, "main", 1000, 1000).op("aten::empty", 1010, 10)
    built.backward("MmBackward0", 1100, 300, sequence=3).kernel("gemm", 1150, 5000, 60, tid=BACKWARD)
    built.flow(10, 1101)
    profile = profile_of(built)
    assert [(line.line, line.self_device_ns) for line in profile.lines if line.self_device_ns] == [(9, 60)]
    assert [name for *_, name in (row[:3] for row in tree(below(profile, 0)))] == ["MmBackward0", "gemm"]


def test_small_parts_are_folded_and_an_only_small_one_stays(profile_of: Build) -> None:
    built = TraceBuilder().line(USER, 7, "main", 0, 100_000)
    start = 10
    for name, duration in [("big", 1_000_000), ("small", 400), ("smaller", 300), ("smallest", 0)]:
        built.op(f"aten::{name}", start, 100).kernel(name, start + 10, start * 100_000, duration)
        start += 200
    root = below(profile_of(built), 0)
    assert [(node.kind, node.name, node.total_device_ns, node.calls) for node in root.children] == [
        ("operator", "aten::big", 1_000_000, 1),
        ("other", "", 700, 2),
    ]
    assert root.total_device_ns == 1_000_700

    alone = TraceBuilder().line(USER, 7, "main", 0, 100_000).op("aten::big", 10, 1000)
    alone.kernel("big", 20, 10**6, 1_000_000).kernel("small", 50, 10**7, 400)
    [operator] = below(profile_of(alone), 0).children
    assert [(node.kind, node.total_device_ns) for node in operator.children] == [("kernel", 1_000_000), ("kernel", 400)]


def test_a_deep_recursion_is_cut_at_a_depth_that_json_can_hold(profile_of: Build) -> None:
    built = TraceBuilder().line(USER, 7, "main", 0, 100_000)
    for depth in range(300):
        built.module("Block", f"block{depth}", 10 + depth, 90_000 - 2 * depth)
    built.op("aten::mm", 1000, 100).kernel("gemm", 1010, 200_000, 500)
    root = below(profile_of(built), 0)
    nodes = list(root.walk())
    assert max(depth for depth, _ in nodes) == 65
    assert nodes[-1][1].kind == "other"
    assert (nodes[-1][1].total_device_ns, root.total_device_ns) == (500, 500)


@pytest.mark.parametrize("number", [1, 2])
def test_one_step_has_its_own_tree(profile_of: Build, number: int) -> None:
    built = TraceBuilder()
    for step in (1, 2):
        start = step * 10_000
        built.step(step, start, 5000).line(USER, 7, "main", start + 10, 4000)
        built.op("aten::mm", start + 20, 100).kernel("gemm", start + 30, start + 1000, step * 100)
    profile = profile_of(built, step=number)
    assert tree(below(profile, 0)) == [
        (1, "operator", "aten::mm", 0, number * 100, 0, 1),
        (2, "kernel", "gemm", 0, number * 100, 0, 1),
    ]


def test_without_a_device_the_operators_are_the_leaves(profile_of: Build) -> None:
    built = TraceBuilder().line(USER, 7, "main", 0, 1000).op("aten::linear", 100, 300).op("aten::addmm", 150, 200)
    assert tree(below(profile_of(built), 0)) == [
        (1, "operator", "aten::linear", 0, 300, 0, 1),
        (2, "operator", "aten::addmm", 0, 200, 0, 1),
    ]
