"""What other viewers get holds all of the time, under the right lines."""

import json
from collections import Counter

import pytest

import built_profiles
from deepscope.records import Part, PartKey, Profile
from deepscope.report.call_paths import Depth
from deepscope.report.exports.call_paths import folded_report, speedscope_report


def flat() -> Profile:
    profile = built_profiles.training()
    profile.call_tree = []
    return profile


def opened() -> Profile:
    """Parts below two of the call tree's nodes; the second's do not sum to it, as in a profile of other makers."""
    profile = built_profiles.training()
    profile.places = [
        PartKey("module", "net.attention", built_profiles.MODEL, 30),
        PartKey("operator", "aten::mm"),
        PartKey("kernel", "void gemm<float>(float*)"),
        PartKey("other", ""),
    ]
    profile.parts = [
        Part(1, -1, 0),
        Part(1, 0, 1, 10_000_000, 10_000_000, 1),
        Part(1, 1, 2, 37_000_000, 20_000_000, 2),
        Part(1, -1, 3, 3_000_000, 0, 3),
        Part(2, -1, 1, 5_000_000, 5_000_000, 1),
    ]
    return profile


PROFILES = {
    "opened": opened(),
    "training": built_profiles.training(),
    "flat": flat(),
    "cpu": built_profiles.cpu_only(),
    "hostile": built_profiles.hostile(),
}


@pytest.mark.parametrize("name", PROFILES)
def test_speedscope_gets_a_valid_file_with_all_device_time(name: str) -> None:
    profile = PROFILES[name]
    document = json.loads(speedscope_report(profile))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(frame["name"].isprintable() for frame in frames)
    for sampled in document["profiles"]:
        assert (sampled["type"], sampled["unit"], sampled["startValue"]) == ("sampled", "nanoseconds", 0)
        assert len(sampled["samples"]) == len(sampled["weights"])
        assert sum(sampled["weights"]) == sampled["endValue"]
        assert all(0 <= frame < len(frames) for stack in sampled["samples"] for frame in stack)
    assert document["profiles"][0]["endValue"] == profile.totals.device_ns


def test_speedscope_gives_each_line_its_self_time_and_its_callers() -> None:
    profile = built_profiles.training()
    document = json.loads(speedscope_report(profile))
    frames = document["shared"]["frames"]
    selves: Counter[tuple[str, int]] = Counter()
    sampled = document["profiles"][0]
    for stack, weight in zip(sampled["samples"], sampled["weights"], strict=True):
        last = frames[stack[-1]]
        selves[last["name"], last.get("line", 0)] += weight
    expected = {(line.function, line.line): line.self_device_ns for line in profile.lines if line.self_device_ns}
    assert selves == {**expected, ("(no user line)", 0): 10_000_000}
    assert [frames[frame]["name"] for frame in sampled["samples"][3]] == ["main", "Net.forward", "数える"]
    assert [one["name"] for one in document["profiles"]] == [
        "device time", "device time, backward", "CPU time of the lines",
    ]  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
def test_folded_stacks_hold_all_device_time(name: str) -> None:
    weights = [int(line.rsplit(" ", 1)[1]) for line in folded_report(PROFILES[name]).splitlines()]
    assert sum(weights) == PROFILES[name].totals.device_ns


def test_a_folded_stack_reads_from_the_outermost_line() -> None:
    first, second = folded_report(built_profiles.training()).splitlines()[:2]
    assert first == "main (train.py:5) 12000000"
    assert second == "main (train.py:5);Net.forward (nets/model.py:42) 50000000"


@pytest.mark.parametrize(
    ("depth", "stacks"),
    [
        ("line", [("", 50)]),
        ("module", [("", 3), (";net.attention", 47)]),
        ("operator", [(";net.attention;aten::mm", 10 + 37), (";(other)", 3)]),
        ("kernel", [(";net.attention;aten::mm", 10), (";net.attention;aten::mm;gemm<float>", 37), (";(other)", 3)]),
    ],
)
def test_paths_go_below_their_line_as_far_as_asked(depth: Depth, stacks: list[tuple[str, int]]) -> None:
    path = "main (train.py:5);Net.forward (nets/model.py:42)"
    found: Counter[str] = Counter()
    for line in folded_report(opened(), depth).splitlines():
        stack, _, weight = line.rpartition(" ")
        if stack == path or (stack.startswith(f"{path};") and "数える" not in stack):
            found[stack.removeprefix(path)] += int(weight)
    assert found == {stack: time * built_profiles.MS for stack, time in stacks}
    document = json.loads(speedscope_report(opened(), depth))
    assert [one["endValue"] for one in document["profiles"]] == [
        one["endValue"] for one in json.loads(speedscope_report(opened(), "line"))["profiles"]
    ]


def test_a_semicolon_in_a_name_does_not_split_a_frame() -> None:
    profile = flat()
    profile.lines[0].function = "a;b\n1"
    assert folded_report(profile).startswith("a,b\\n1 (nets/model.py:42) 50000000\n")
