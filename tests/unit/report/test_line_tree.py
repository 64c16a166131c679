"""The tree below a line, built by hand: what is summed, folded and shown of it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

import built_profiles
from built_profiles import MODEL, MS, TRAIN
from deepscope.errors import OptionError
from deepscope.records import CallNode, Part, PartKey, Profile
from deepscope.records.ranks import merge_profiles
from deepscope.report.line_report import find_line, line_csv, line_json, line_object, line_text
from deepscope.report.line_tree import below, fold_alike, main_branch

LIBRARY = "/env/lib/python3.12/site-packages/transformers/models/gpt2/modeling_gpt2.py"
FORWARD = 0


def layered() -> Profile:
    """`built_profiles.training`, in which `Net.forward` calls three layers; its 50 ms come by two call paths."""
    profile = built_profiles.training()
    profile.call_tree[1].self_device_ns, profile.call_tree[1].backward_device_ns = 20 * MS, 0
    profile.call_tree.append(CallNode(0, FORWARD, 30 * MS, 0, 30 * MS))
    forward, backward = 1, len(profile.call_tree) - 1
    profile.places = [
        PartKey("module", "h.0", LIBRARY, 400),
        PartKey("module", "h.1", LIBRARY, 400),
        PartKey("module", "h.1.mlp", LIBRARY, 300),
        PartKey("library", "Block.forward", LIBRARY, 420),
        PartKey("operator", "aten::addmm"),
        PartKey("kernel", "void sgemm_128x64<float, 4>(float const*)"),
        PartKey("other", ""),
        PartKey("operator", "aten::add"),
    ]
    profile.parts = [
        Part(forward, -1, 0, 0, 0, 2),  # h.0
        Part(forward, 0, 3, 0, 0, 2),
        Part(forward, 1, 4, 0, 0, 2),
        Part(forward, 2, 5, 9 * MS, 0, 4),
        Part(forward, -1, 1, 0, 0, 2),  # h.1
        Part(forward, 4, 2, 0, 0, 2),
        Part(forward, 5, 4, 0, 0, 2),
        Part(forward, 6, 5, 7 * MS, 0, 2),
        Part(forward, 4, 6, 1 * MS, 0, 5),
        Part(forward, -1, 6, 3 * MS, 0, 9),
        Part(backward, -1, 0, 0, 0, 0),
        Part(backward, 10, 5, 30 * MS, 30 * MS, 4),
    ]
    return profile


def test_the_call_paths_of_a_line_are_summed_up() -> None:
    tree = below(layered(), FORWARD)
    assert (tree.kind, tree.name, tree.file, tree.line, tree.calls) == ("line", "Net.forward", MODEL, 42, 24)
    assert (tree.self_device_ns, tree.total_device_ns, tree.backward_device_ns) == (0, 50 * MS, 30 * MS)
    first, second, rest = tree.children
    assert (first.name, first.total_device_ns, first.backward_device_ns, first.calls) == ("h.0", 39 * MS, 30 * MS, 2)
    assert [child.kind for child in first.children] == ["kernel", "library"]
    assert (second.name, second.total_device_ns) == ("h.1", 8 * MS)
    assert [child.kind for child in second.children] == ["module", "other"]
    assert (rest.kind, rest.total_device_ns, rest.calls) == ("other", 3 * MS, 9)


def test_a_line_without_parts_keeps_its_time() -> None:
    profile = built_profiles.training()
    tree = below(profile, FORWARD)
    assert (tree.self_device_ns, tree.total_device_ns, tree.children) == (50 * MS, 50 * MS, [])


def test_layers_that_are_alike_become_one() -> None:
    tree = fold_alike(below(layered(), FORWARD))
    layers, rest = tree.children
    assert (layers.name, layers.layers, layers.calls, layers.file, layers.line) == ("h.*", 2, 4, LIBRARY, 400)
    assert (layers.total_device_ns, layers.backward_device_ns) == (47 * MS, 30 * MS)
    assert [child.name for child in layers.children if child.kind == "module"] == ["h.*.mlp"]
    assert rest.kind == "other"


def test_names_without_numbers_are_not_alike() -> None:
    profile = layered()
    profile.places[0] = PartKey("module", "h.encoder1", LIBRARY, 400)
    profile.places[1] = PartKey("module", "h.encoder2", LIBRARY, 400)
    assert [child.name for child in fold_alike(below(profile, FORWARD)).children] == ["h.encoder1", "h.encoder2", ""]


def test_the_main_branch_ends_where_nothing_holds_half() -> None:
    profile = layered()
    assert [node.name for node in main_branch(below(profile, FORWARD))] == [
        "h.0",
        "void sgemm_128x64<float, 4>(float const*)",
    ]
    profile.parts[-1].self_device_ns = 0
    assert main_branch(below(profile, 1)) == []


def test_json_is_the_contract() -> None:
    profile = layered()
    found = json.loads(line_json(profile, FORWARD))
    assert set(found) == {"line", "below"}
    assert found["line"]["file"] == MODEL
    assert found["line"]["self_device_ns"] == found["below"]["total_device_ns"] == 50 * MS

    def check(node: dict[str, object]) -> None:
        keys = ["kind", "name", "file", "line", "self_device_ns", "total_device_ns", "backward_device_ns", "calls"]
        assert list(node) == [*keys, "children"]
        for child in node["children"]:  # type: ignore[attr-defined]
            check(child)

    check(found["below"])
    folded = line_object(profile, FORWARD, fold=True)["below"]["children"][0]
    assert (folded["name"], folded["layers"]) == ("h.*", 2)


def test_csv_has_a_row_a_node_with_its_depth() -> None:
    rows = list(csv.DictReader(io.StringIO(line_csv(layered(), FORWARD))))
    assert [row["depth"] for row in rows[:3]] == ["0", "1", "2"]
    assert sum(int(row["self_device_ns"]) for row in rows) == 50 * MS


def test_the_text_names_a_module_by_its_path_below_the_one_around_it() -> None:
    profile = layered()
    profile.places[3] = PartKey("library", "wrap.<locals>.wrapper", LIBRARY, 420)
    found = [row.split()[-2] for row in line_text(profile, FORWARD, width=140).splitlines() if LIBRARY[-20:] in row]
    assert sorted(found) == [".mlp", "h.0", "h.1", "wrap.wrapper"]
    assert "h.1.mlp" in line_json(profile, FORWARD)
    assert "wrap.<locals>.wrapper" in line_json(profile, FORWARD)


def test_text_shows_the_largest_and_the_sum_of_the_rest() -> None:
    text = line_text(layered(), FORWARD, width=140)
    assert "100.0%   50ms" in text
    assert "    Block.forward" in text
    assert "modeling_gpt2.py:420" in text
    short = line_text(layered(), FORWARD, limit=2, width=140)
    rows = short.split("\n\n")[1].splitlines()
    assert len(rows) == 1 + 3  # titles, the line, its largest part, and the others
    assert "(other)" in rows[-1]
    assert rows[-1].split()[1] == "11ms"
    assert "more  2 of " in short
    folded = line_text(layered(), FORWARD, fold=True, width=140)
    assert "h.* \N{MULTIPLICATION SIGN}2" in folded


def test_a_limited_tree_still_sums_to_its_root() -> None:
    whole, limited = (json.loads(line_json(layered(), FORWARD, limit=limit))["below"] for limit in (0, 2))

    def check(node: dict[str, Any]) -> int:
        assert node["total_device_ns"] == node["self_device_ns"] + sum(
            one["total_device_ns"] for one in node["children"]
        )
        return 1 + sum(map(check, node["children"]))

    assert check(limited) < check(whole)
    assert limited["total_device_ns"] == whole["total_device_ns"]


def test_hostile_names_stay_on_their_row() -> None:
    profile = layered()
    profile.places[0] = PartKey("module", "h.\x1b[31m\n0", "/x\n.py", 1)
    assert "\x1b" not in line_text(profile, FORWARD)
    assert len(line_text(profile, FORWARD).splitlines()) == len(line_text(layered(), FORWARD).splitlines())


@pytest.mark.parametrize("where", ["model.py:42", "nets/model.py:42", f"{MODEL}:42", "nets\\model.py:42"])
def test_any_end_of_a_path_means_its_line(where: str) -> None:
    assert find_line(layered(), where) == FORWARD


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("odel.py:42", "no such file; the largest lines of this trace: nets/model.py:42, "),
        ("model.py:43", "nothing was measured on it; the largest lines there: nets/model.py:42, "),
        ("model.py", "give a file and a line"),
        (":42", "give a file and a line"),
        ("model.py:", "give a file and a line"),
        ("model.py:-1", "give a file and a line"),
        ("model.py:99999999999999999999", "give a file and a line"),
        ("model.py:\N{FULLWIDTH DIGIT FOUR}2", "give a file and a line"),
    ],
)
def test_what_means_no_line_is_told(where: str, problem: str) -> None:
    with pytest.raises(OptionError) as raised:
        find_line(layered(), where)
    assert raised.value.option == "line"
    assert raised.value.problem.startswith(problem)


def test_ends_of_several_files_list_them_whole() -> None:
    profile = layered()
    profile.lines[1].file, profile.lines[1].line = "/home/ada/project/model.py", 42
    with pytest.raises(OptionError) as raised:
        find_line(profile, "model.py:42")
    assert raised.value.problem == f"several files end so: {MODEL}:42, /home/ada/project/model.py:42"
    assert find_line(profile, "/home/ada/project/model.py:42") == 1
    assert find_line(profile, "nets/model.py:42") == FORWARD


def test_a_trace_without_lines_says_so() -> None:
    profile = layered()
    profile.lines = []
    with pytest.raises(OptionError, match="has no lines"):
        find_line(profile, f"{TRAIN}:3")


def test_parts_of_ranks_are_summed_where_they_are_the_same() -> None:
    first, second = layered(), layered()
    second.trace.ranks = [1]
    second.places[5], second.places[7] = second.places[7], second.places[5]  # numbered otherwise on the other rank
    for part in second.parts:
        part.place = {5: 7, 7: 5}.get(part.place, part.place)
    second.places[1] = PartKey("module", "h.2", LIBRARY, 400)
    merged = merge_profiles([first, second])
    line = next(place for place, line in enumerate(merged.lines) if (line.file, line.line) == (MODEL, 42))
    tree = below(merged, line)
    assert tree.total_device_ns == merged.lines[line].self_device_ns == 100 * MS
    assert [(child.name, child.total_device_ns) for child in tree.children] == [
        ("h.0", 78 * MS), ("h.1", 8 * MS), ("h.2", 8 * MS), ("", 6 * MS),
    ]  # fmt: skip
