"""The tree of modules: parents before children, the largest first, cut to the largest."""

import json
from pathlib import Path

import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Module, Profile
from deepscope.report.json_csv import json_report
from deepscope.report.module_tree import children_of, depths, largest_modules, plain_modules, tree_order
from deepscope.report.text_report import text_report
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

US = 1000


def module(path: str, parent: str, total_ns: int) -> Module:
    return Module(path=path, class_name="M", parent=parent, total_device_ns=total_ns)


TREE = [
    module("a", "", 50),
    module("b.1", "b", 30),
    module("b", "", 60),
    module("b.0", "b", 30),
    module("b.1.x", "b.1", 9),
]


def test_each_module_stands_below_its_parent_the_largest_first() -> None:
    rows = tree_order(TREE)
    assert [row.path for row in rows] == ["b", "b.0", "b.1", "b.1.x", "a"]
    assert depths(rows) == [0, 1, 1, 2, 0]
    assert children_of(rows) == {"b": ["b.0", "b.1"], "b.0": [], "b.1": ["b.1.x"], "b.1.x": [], "a": []}


def test_a_tree_is_cut_to_the_largest_and_children_without_parent_move_up() -> None:
    assert [row.path for row in largest_modules(tree_order(TREE), 2)] == ["b", "a"]
    without = [row for row in tree_order(TREE) if row.path != "b"]
    assert [row.path for row in tree_order(without)] == ["a", "b.0", "b.1", "b.1.x"]
    assert depths(tree_order(without)) == [0, 0, 0, 1]


@pytest.mark.timeout(10)
def test_a_module_may_bear_the_path_of_the_one_that_calls_it() -> None:
    """So it is with one that `torch.compile` wraps."""
    wrapper, wrapped = module("head", "net", 6), module("head", "head", 5)
    rows = tree_order([wrapped, module("net", "", 10), wrapper, module("head.fall", "head", 2)])
    assert [(row.path, row.parent) for row in rows] == [
        ("net", ""), ("head", "net"), ("head", "head"), ("head.fall", "head"),
    ]  # fmt: skip
    assert depths(rows) == [0, 1, 1, 2]
    assert tree_order([wrapped]) == [wrapped]
    assert [branch.parent for branch in plain_modules(rows)] == [-1, 0, 1, 1]


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    """Two blocks of one class in a model, by torch's frames; the first calls a layer. Times in microseconds."""
    built = TraceBuilder()

    def frame(name: str, start: int, duration: int) -> None:
        built.event("python_function", f"nn.Module: {name}", start * US, duration * US)

    frame("Model_0", 0, 100)
    frame("Block_0", 10, 40)
    frame("Linear_0", 15, 10)
    frame("Block_1", 60, 30)
    for start, duration, name in (
        (16, 5, "aten::mm"),
        (30, 5, "aten::add"),
        (65, 5, "aten::add"),
        (95, 2, "aten::mul"),
    ):
        built.op(name, start * US, duration * US, dims=[[4, 8], [8, 2]])
        built.kernel(name, (start + 1) * US, (200 + start) * US, duration * US)
    return build_profile(read_trace(built.write(tmp_path / "t.json")))


def test_frames_tell_modules_of_one_class_apart(profile: Profile) -> None:
    rows = {row.path: row for row in profile.modules}
    assert {path: (row.class_name, row.parent) for path, row in rows.items()} == {
        "Model_0": ("Model", ""),
        "Block_0": ("Block", "Model_0"),
        "Block_1": ("Block", "Model_0"),
        "Linear_0": ("Linear", "Block_0"),
    }
    assert [rows[path].total_device_ns for path in rows] == [
        {"Model_0": 17, "Block_0": 10, "Block_1": 5, "Linear_0": 5}[path] * US for path in rows
    ]
    assert rows["Model_0"].total_flops == rows["Linear_0"].flops == 2 * 4 * 8 * 2


def test_text_indents_and_json_names_parents_and_children(profile: Profile) -> None:
    text = text_report(profile, by="module", width=120)
    shown = [line.rstrip() for line in text.splitlines() if line.rstrip().endswith(("_0", "_1"))]
    indents = [len(line) - len(line.rstrip().rpartition(" ")[2]) for line in shown]
    assert [line.split()[-1] for line in shown] == ["Model_0", "Block_0", "Linear_0", "Block_1"]
    assert [indent - indents[0] for indent in indents] == [0, 2, 4, 2]
    rows = json.loads(json_report(profile, by="module"))["modules"]
    assert [(row["path"], row["depth"], row["children"]) for row in rows] == [
        ("Model_0", 0, ["Block_0", "Block_1"]),
        ("Block_0", 1, ["Linear_0"]),
        ("Linear_0", 2, []),
        ("Block_1", 1, []),
    ]
    assert [row["path"] for row in json.loads(json_report(profile, by="module", limit=2))["modules"]] == [
        "Model_0",
        "Block_0",
    ]
    flat = json.loads(json_report(profile, by="module", sort="self"))["modules"]
    assert [row["self_device_ns"] for row in flat] == sorted((row["self_device_ns"] for row in flat), reverse=True)
