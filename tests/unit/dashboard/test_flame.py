"""What the page of the flame graph is answered, on built profiles."""

from __future__ import annotations

import pytest

import built_profiles
from built_profiles import MS
from deepscope.dashboard.pages import flame as module
from deepscope.dashboard.pages.flame import Flame, FlameQuestion, flame
from deepscope.errors import OptionError
from deepscope.records import CallNode, Part, PartKey, Profile
from one_profile import OneProfile


def with_parts() -> Profile:
    profile = built_profiles.training()
    profile.places = [PartKey("operator", "aten::addmm"), PartKey("kernel", "gemm"), PartKey("module", "net.feed")]
    profile.parts = [Part(1, -1, 2, 0), Part(1, 0, 0, 2 * MS), Part(1, 1, 1, 40 * MS, 30 * MS)]
    return profile


def drawn(found: Flame) -> dict[tuple[str, ...], int]:
    """Each node's own time by the names of the nodes from the root on."""
    paths: list[tuple[str, ...]] = []
    for frame, parent in zip(found.shown, found.parents, strict=True):
        above = paths[parent] if parent >= 0 else ()
        paths.append((*above, found.frames[frame].name.partition(" · ")[0]))
    return dict(zip(paths, found.own, strict=True))


def test_paths_lead_down_from_the_outermost_line_to_kernels() -> None:
    found = flame(OneProfile(with_parts()), FlameQuestion())
    assert drawn(found) == {
        ("main",): 12 * MS,
        ("main", "Net.forward"): 8 * MS,
        ("main", "Net.forward", "net.feed"): 0,
        ("main", "Net.forward", "net.feed", "aten::addmm"): 2 * MS,
        ("main", "Net.forward", "net.feed", "aten::addmm", "gemm"): 40 * MS,
        ("main", "Net.forward", "数える"): 8 * MS,
        ("main", "Net.embed"): 20 * MS,
        ("(no user line)",): 10 * MS,
    }
    assert found.whole_ns == 100 * MS


@pytest.mark.parametrize(
    ("steps", "ranks", "words"),
    [
        (3, 1, "Times are sums over 3 steps."),
        (3, 2, "Times are sums over 3 steps of each of 2 ranks."),
        (0, 2, "Times are sums over 2 ranks."),
        (1, 1, ""),
    ],
)
def test_it_is_said_of_how_many_steps_times_are_sums(steps: int, ranks: int, words: str) -> None:
    profile = with_parts()
    profile.totals.steps, profile.totals.ranks = steps, ranks
    assert flame(OneProfile(profile), FlameQuestion()).sums == words


def test_paths_lead_up_from_kernels_to_their_callers() -> None:
    found = flame(OneProfile(with_parts()), FlameQuestion(direction="up"))
    assert drawn(found)["gemm", "aten::addmm", "net.feed", "Net.forward", "main"] == 40 * MS
    assert sum(found.own) == 100 * MS


def test_depth_and_metric_are_chosen() -> None:
    found = flame(OneProfile(with_parts()), FlameQuestion(depth="line", metric="backward"))
    assert drawn(found)["main", "Net.forward"] == 30 * MS
    assert {frame.kind for frame in found.frames} == {"line"}
    assert found.metrics == ["device", "backward", "cpu"]
    assert sum(flame(OneProfile(with_parts()), FlameQuestion(metric="cpu")).own) == 17 * MS


def test_the_smallest_nodes_go_into_those_that_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NODES", 3)
    found = flame(OneProfile(with_parts()), FlameQuestion())
    assert drawn(found) == {
        ("main",): 32 * MS,
        ("main", "Net.forward"): 16 * MS,
        ("main", "Net.forward", "net.feed"): 42 * MS,
    }
    assert (found.left_out, found.left_out_ns) == (5, 10 * MS)
    assert sum(found.own) + found.left_out_ns == found.whole_ns


def test_a_difference_pairs_lines_that_moved_and_counts_as_many_steps() -> None:
    before, after = with_parts(), with_parts()
    before.totals.steps = 4
    for one in before.lines:
        one.line += 100 if one.text else 0
    before.parts[2].self_device_ns = 20 * MS
    before.call_tree.append(CallNode(-1, 4, 4 * MS, 0))
    after.lines.pop()
    found = flame(OneProfile(after, old=before), FlameQuestion(baseline="old"))
    times = dict(zip(drawn(found), found.before, strict=True))
    assert times["main", "Net.forward", "net.feed", "aten::addmm", "gemm"] == 10 * MS
    assert times["main",] == 6 * MS
    assert times["Data.__getitem__",] == 2 * MS
    assert found.gone_ns == 2 * MS
    assert found.before_ns == round((100 + 4) * MS / 2)
    gone = next(frame for frame in found.frames if frame.name.startswith("Data"))
    assert gone.file == ""


def test_runs_with_and_without_a_device_are_not_compared() -> None:
    with pytest.raises(OptionError, match="device work"):
        flame(OneProfile(with_parts(), old=built_profiles.cpu_only()), FlameQuestion(baseline="old"))


def test_without_call_paths_the_lines_are_shown_and_the_reason() -> None:
    profile = with_parts()
    profile.call_tree, profile.parts = [], []
    found = flame(OneProfile(profile), FlameQuestion())
    assert sum(found.own) == 100 * MS
    assert "no call paths" in found.note
