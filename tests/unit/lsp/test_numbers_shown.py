"""What is shown of a profile: labels, hovers, trees, comparisons."""

from pathlib import Path

import msgspec
import pytest

import built_profiles
from deepscope.comparison.noise import samples_of_rows
from deepscope.quantities import time_text
from deepscope.records import (
    CallNode,
    Costs,
    CriticalLine,
    CriticalPath,
    Library,
    Line,
    Partner,
    Profile,
    RankSpread,
    Top,
)
from deepscope.report.columns import columns
from deepscope.report.terminal import Styles
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.call_paths import call_paths
from deepscope_lsp.engine.call_tree import subtree_times
from deepscope_lsp.engine.hot_lines import hot_lines
from deepscope_lsp.engine.profile_index import ProfileIndex, Scales, merged
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import annotate, total_words
from deepscope_lsp.engine.wording.findings import evidence_words, finding_words
from deepscope_lsp.engine.wording.hover import HoverContext, function_hover, line_hover
from deepscope_lsp.engine.wording.hover_table import numbers_table
from lsp_profiles import NET, SOURCE, make_profile
from recorded_traces import each_trace, profile_of

FILE = "/job/train.py"


def nowhere(_file: str, _line: int = 0) -> None:
    return None


@pytest.fixture
def index() -> ProfileIndex:
    return ProfileIndex(make_profile(FILE, root="/job"))


def line(index: ProfileIndex, name: str) -> Line:
    return index.files[FILE].lines[NET[name]]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("project", "30 ms · 60 %"),
        ("relu", "15 ms · 30 %"),
        ("call", "calls 45 ms · 90 %"),
        ("backward", "waits 10 ms"),
    ],
)
def test_a_label_says_the_time_per_step_and_its_share(index: ProfileIndex, name: str, label: str) -> None:
    assert annotate(line(index, name), index.scales).label == label


@pytest.mark.parametrize(
    ("own_ms", "total_ms", "label"),
    [
        (1, 90, "500 µs · 1.0 % · calls 45 ms · 90 %"),
        (50, 90, "25 ms · 50 %"),  # most of it is its own
        (0, 90, "calls 45 ms · 90 %"),
        (0.01, 0.5, "5 µs · <0.1 %"),  # too little to speak of
    ],
)
def test_a_line_that_mostly_calls_says_its_own_time_and_that_with_its_calls(
    index: ProfileIndex, own_ms: float, total_ms: float, label: str
) -> None:
    times = {
        "self_device_ns": int(own_ms * 10**6),
        "cost_ns": int(own_ms * 10**6),
        "total_device_ns": int(total_ms * 10**6),
    }
    record = msgspec.structs.replace(line(index, "call"), **times)
    assert annotate(record, index.scales).label == label


def test_a_label_has_the_idle_time_within_the_steps_as_the_hover_has(index: ProfileIndex) -> None:
    times = {"self_device_ns": 4_000_000, "idle_ns": 16_000_000, "cost_ns": 20_000_000, "python_outside_ns": 2_000_000}
    record = msgspec.structs.replace(line(index, "project"), outside_ns=0, total_device_ns=0, **times)
    note = annotate(record, index.scales)
    assert note.label == "9 ms · 20 % · device idle 7 ms"
    assert "device idle meanwhile 7 ms" in note.parts


def test_a_hint_that_is_longer_than_the_editor_shows_leaves_its_smaller_parts_out(index: ProfileIndex) -> None:
    times = {"self_device_ns": 0, "idle_ns": 2_000_000, "cost_ns": 2_000_000, "total_device_ns": 90_000_000}
    note = annotate(msgspec.structs.replace(line(index, "call"), **times), index.scales)
    assert note.label == "1 ms · 2.0 % · device idle · calls 45 ms · 90 %"
    assert note.fitted("") == "1 ms · 2.0 % · calls 45 ms · 90 %"
    assert note.fitted(" (edited)") == "1 ms · 2.0 % · calls 45 ms · 90 % (edited)"
    assert note.fitted(" · +3.1 ms (+25 %)") == "calls 45 ms · 90 % · +3.1 ms (+25 %)"
    assert note.fitted(" · +3.1 ms (+25 %) (edited)") == "calls 45 ms · 90 % · +3.1 ms (+25 %) (edited)"


def test_a_label_of_a_cpu_trace_says_so(index: ProfileIndex) -> None:
    index.profile.metric = "cpu_self"
    scales = Scales.of(index.profile)
    assert annotate(line(index, "project"), scales).label == "30 ms · 60 %"
    assert annotate(line(index, "call"), scales).label == "calls 45 ms · 90 %"
    assert "no device events" in annotate(line(index, "project"), scales).tooltip
    assert total_words(index.profile.functions[0], scales) == "operators 45 ms · 90 %, cost 45 ms"


def test_a_time_is_the_mean_over_ranks_and_of_a_trace_without_steps_the_whole(index: ProfileIndex) -> None:
    index.profile.totals.ranks = 2
    assert annotate(line(index, "project"), Scales.of(index.profile)).label == "15 ms · 60 %"
    index.profile.totals.ranks, index.profile.totals.steps = 1, 0
    assert annotate(line(index, "project"), Scales.of(index.profile)).label == "60 ms · 60 %"


def test_a_function_level_number_says_so(index: ProfileIndex) -> None:
    record = msgspec.structs.replace(line(index, "project"), exact=False)
    assert annotate(record, index.scales).label.endswith("whole function")


def test_a_line_that_stands_for_its_loop_says_so(index: ProfileIndex) -> None:
    record = msgspec.structs.replace(line(index, "project"), exact=False, of_loop=True)
    assert annotate(record, index.scales).label.endswith("whole loop")
    assert "numbers are those of the whole loop" in line_hover(record, HoverContext(index, nowhere))


def test_a_hover_holds_every_number_of_a_line(index: ProfileIndex) -> None:
    context = HoverContext(
        index, lambda _file, number: ("file:///here/train.py", number + 1), text_words="the text is what ran"
    )
    assert (
        line_hover(line(index, "project"), context)
        == """\
**Net.forward, line 6**: 30 ms per step, 60 % of the run's cost

|  | per step | share |
| :-- | --: | --: |
| cost | 30 ms | 60 % of the run's cost |
| of it device, forward | 25 ms | 50 % of the run's cost |
| of it device, backward | 5 ms | 10 % of the run's cost |
| CPU | 2.50 ms | 3.3 % of wall |
| memory allocated | 2 MiB |  |
| FLOP/s | 100 TFLOP/s |  |
| calls | 1 |  |
| launches | 3 | 75 % of all |

Kernels:

- `sgemm` 30 ms (6 calls)

Operators:

- `aten::mm` 30 ms (2 calls)

Called from:

- [train.py:12](file:///here/train.py#L12) train 30 ms

Trace: w.pt.trace.json, on Test GPU; the text is what ran"""
    )


@pytest.mark.parametrize(
    ("on_path_ns", "saved_ns", "words"),
    [
        (
            24_600_000,
            16_200_000,
            "On the critical path: 12.3 ms a step; without it the step would be 8.10 ms shorter\n",
        ),
        (24_600_000, 0, "On the critical path: 12.3 ms a step; without it the step would be as long\n"),
        (24_600_000, None, "On the critical path: 12.3 ms a step\n"),
        (400_000, 400_000, ""),
    ],
)
def test_a_hover_says_how_long_a_line_holds_the_step_up_and_what_it_would_save(
    on_path_ns: int, saved_ns: int | None, words: str
) -> None:
    profile = make_profile(FILE, root="/job")
    profile.totals.steps = 2
    where = {"file": FILE, "line": NET["project"], "function": "Net.project", "exact": True}
    row = CriticalLine(**where, critical_ns=on_path_ns, cpu_ns=on_path_ns, would_shorten_ns=saved_ns)
    profile.critical = CriticalPath(steps=2, evaluated_steps=2, critical_ns=100_000_000, cpu_ns=on_path_ns, lines=[row])
    index = ProfileIndex(profile)
    text = line_hover(line(index, "project"), HoverContext(index, nowhere))
    assert (words in text) if words else ("critical" not in text)


def test_a_hover_says_what_a_line_holds_at_the_peak_where_that_was_told(index: ProfileIndex) -> None:
    def hover(**peak: int) -> str:
        record = msgspec.structs.replace(line(index, "project"), peak_bytes=sum(peak.values()), **peak)
        return line_hover(record, HoverContext(index, nowhere))

    assert "Holds 1.25 GiB at the peak: activations\n" in hover(peak_activations_bytes=5 << 28)
    both = hover(peak_activations_bytes=3 << 30, peak_gradients_bytes=1 << 30)
    assert "Holds 4 GiB at the peak: activations 75 %, gradients 25 %\n" in both
    assert "Holds" not in hover(peak_unknown_bytes=1 << 30)


def test_a_figure_of_the_peak_is_no_sum_over_the_steps(index: ProfileIndex) -> None:
    assert index.scales.per_step(2) == 1
    words = evidence_words({"saving_of_peak_bytes": 1 << 30, "copied_bytes": 1 << 30}, index.scales)
    assert words == "saving of peak 1 GiB, copied 512 MiB"


def test_figures_of_a_late_rank_are_no_means_over_the_ranks() -> None:
    """Two ranks, three steps each: the rank is 20 ms late in each of its three."""
    costs = Costs(whole_ns=0, steps=3, ranks=2)
    scales = Scales(is_device=False, steps=3, ranks=2, device_ns=0, wall_ns=600_000_000, idle_ns=0, costs=costs)
    late = {"straggling_rank": "1", "excess_ns": 60_000_000, "late_steps": 3}
    assert evidence_words(late, scales) == "straggling rank 1, excess 20 ms, late steps 3"
    assert evidence_words({"wait_ns": 60_000_000}, scales) == "wait 10 ms"


def test_a_hover_on_a_call_names_what_it_calls(index: ProfileIndex) -> None:
    hover = line_hover(line(index, "call"), HoverContext(index, nowhere))
    assert "Calls:\n\n- train.py:6 Net.forward 30 ms\n- train.py:7 Net.forward 15 ms" in hover
    assert "Called from" not in hover


def test_the_line_that_ran_the_backward_pass_is_no_caller(index: ProfileIndex) -> None:
    ms = 10**6
    profile = index.profile
    profile.call_tree = [
        CallNode(-1, 2, 0, ms),
        CallNode(0, 0, 50 * ms, 5 * ms),
        CallNode(-1, 3, 0, 3 * ms),
        CallNode(2, 0, 10 * ms, 0, 10 * ms),
    ]
    hover = line_hover(line(index, "project"), HoverContext(ProfileIndex(profile), nowhere))
    assert "- train.py:11 train 25 ms\n- train.py:12 train 5 ms (its backward pass)\n" in hover
    of_backward = line_hover(line(index, "backward"), HoverContext(ProfileIndex(profile), nowhere))
    assert "Calls:\n\n- train.py:6 Net.forward 5 ms (its backward pass)\n" in of_backward
    of_function = function_hover(profile.functions[0], HoverContext(ProfileIndex(profile), nowhere))
    assert "- train.py:12 train 5 ms (its backward pass)\n" in of_function


def test_a_hover_on_a_function_has_its_callers(index: ProfileIndex) -> None:
    hover = function_hover(index.profile.functions[0], HoverContext(index, nowhere))
    assert "| cost | 45 ms | 90 % of the run's cost |" in hover
    assert "- train.py:11 train 45 ms" in hover


def test_a_hover_on_a_function_has_its_ranks_kernels_and_operators(index: ProfileIndex) -> None:
    line(index, "relu").top_kernels = [Top("relu_kernel", 30_000_000, 2), Top("sgemm", 2_000_000, 1)]
    function = msgspec.structs.replace(
        index.profile.functions[0], spread=RankSpread(60_000_000, 2, 80_000_000, 90_000_000, 0)
    )
    hover = function_hover(function, HoverContext(index, nowhere))
    assert "Ranks: min 30 ms (rank 2), median 40 ms, max 45 ms (rank 0, the slowest)" in hover
    assert "Kernels:\n\n- `sgemm` 31 ms (7 calls)\n- `relu_kernel` 15 ms (2 calls)" in hover
    assert "Operators:\n\n- `aten::mm` 30 ms (2 calls)" in hover


def test_a_hover_shows_ranks_libraries_and_what_is_not_exact(index: ProfileIndex) -> None:
    record = msgspec.structs.replace(
        line(index, "relu"),
        exact=False,
        in_compiled_region=True,
        spread=RankSpread(10_000_000, 3, 12_000_000, 20_000_000, 1),
        libraries=[Library("lib.models", "run", "aten::mm", 8_000_000, "lib/*")],
        collective_ns=4_000_000,
        collective_exposed_ns=2_000_000,
        h2d_ns=1_000_000,
        h2d_bytes=1 << 21,
    )
    hover = line_hover(record, HoverContext(index, nowhere))
    assert "Ranks: min 5 ms (rank 3), median 6 ms, max 10 ms (rank 1, the slowest)" in hover
    assert "- `lib.models.run` `aten::mm` 4 ms; record with `include=['lib/*']` to see its lines" in hover
    assert "| collectives not overlapped | 1 ms | 2.0 % of the run's cost |" in hover
    assert "| copies to the device | 1 MiB in 500 µs |  |" in hover
    assert "numbers are those of the whole function" in hover
    assert "Inside a compiled region" in hover


def test_a_line_says_what_it_was_fused_with(index: ProfileIndex) -> None:
    partners = [Partner(FILE, 19, 9), Partner("/job/other.py", 3, 4), Partner(FILE, 8, 4), Partner(FILE, 30, 1)]
    whole = line(index, "relu")
    record = msgspec.structs.replace(
        whole, exact=False, fused=True, shared_ns=whole.self_device_ns, shared_with=partners
    )
    assert annotate(record, index.scales).label == "15 ms · 30 % · fused with lines 8, 19 and 2 more"
    hover = line_hover(record, HoverContext(index, nowhere))
    assert "Its time is parts of kernels fused with lines 8, 19, 30, other.py:3, divided by their operations." in hover
    assert "whole function" not in hover
    part = msgspec.structs.replace(whole, shared_ns=4_000_000, shared_with=partners[:1])
    assert annotate(part, index.scales).label == annotate(whole, index.scales).label
    assert "2 ms of it is parts of kernels fused with line 19, divided" in line_hover(
        part, HoverContext(index, nowhere)
    )


def test_names_in_a_hover_are_escaped(index: ProfileIndex) -> None:
    evil = "[click](command:evil) <img src=x>"
    record = msgspec.structs.replace(line(index, "relu"), function=evil, top_kernels=[Top(evil + "`", 1, 1)])
    hover = line_hover(record, HoverContext(index, nowhere))
    assert r"**\[click\](command:evil) \<img src=x\>, line 7**" in hover
    assert "- `` [click](command:evil) <img src=x>` ``" in hover


def test_hot_lines_come_by_cost_then_by_waiting(index: ProfileIndex) -> None:
    found = hot_lines(index, nowhere, limit=3).lines
    assert [(one.line, one.share, one.uri) for one in found] == [
        (6, 0.6, None),
        (7, 0.3, None),
        (12, 0.0, None),
    ]
    assert found[0].numbers["self_device_ns"] == 60_000_000
    assert "line" not in found[0].numbers
    assert hot_lines(index, nowhere, limit=9, files={"/other.py"}).lines == []


def test_call_paths_sum_to_the_whole(index: ProfileIndex) -> None:
    roots = call_paths(index, nowhere).roots
    assert [(root.line, root.self_ns, root.total_ns) for root in roots] == [
        (11, 0, 90_000_000),
        (0, 10_000_000, 10_000_000),
    ]
    assert [(one.line, one.total_ns) for one in roots[0].children] == [(6, 60_000_000), (7, 30_000_000)]
    assert sum(root.total_ns for root in roots) == index.profile.totals.device_ns


def test_times_of_a_subtree_are_summed_upwards() -> None:
    tree = [CallNode(-1, 0, 5, 1), CallNode(0, 1, 5, 1), CallNode(1, 2, 1, 0), CallNode(-1, 2, 7, 0)]
    assert [times[:2] for times in subtree_times(tree)] == [(11, 2), (6, 1), (1, 0), (7, 0)]


def test_the_hot_path_goes_from_the_outermost_line_to_the_innermost(index: ProfileIndex) -> None:
    assert [one.line for one in index.hot_path(FILE, NET["call"])] == [NET["call"], NET["project"]]
    assert [one.line for one in index.hot_path(FILE, NET["relu"])] == [NET["call"], NET["relu"]]


def test_records_of_one_line_are_summed_and_totals_overlap() -> None:
    one = Line(file="a", line=1, function="f", exact=True, self_device_ns=10, total_device_ns=30)
    inner = Line(file="a", line=1, function="f.<listcomp>", exact=True, self_device_ns=20, total_device_ns=20)
    both = merged([one, inner])
    assert (both.function, both.self_device_ns, both.total_device_ns) == ("f.<listcomp>", 30, 30)


def older() -> Profile:
    text = "# one line more\n" + SOURCE.replace("y.relu()", "y.relu().relu()")
    profile = make_profile("/other/place/train.py", text=text, root="/other/place")
    profile.lines = [msgspec.structs.replace(one, line=one.line + 1) for one in profile.lines]
    profile.lines[0].self_device_ns = profile.lines[0].cost_ns = 40_000_000
    return profile


def test_a_baseline_is_compared_line_by_line_of_text(index: ProfileIndex) -> None:
    baseline = Baseline(ProfileIndex(older()), index)
    assert baseline.cost_per_step_ns(FILE, NET["project"]) == 20_000_000
    assert baseline.cost_per_step_ns(FILE, NET["relu"]) == 15_000_000  # the line that was edited
    hover = line_hover(line(index, "project"), HoverContext(index, nowhere, baseline=baseline))
    assert "|  | per step | share | baseline | change |" in hover
    assert "| cost | 30 ms | 60 % of the run's cost | 20 ms | +10 ms (+50 %) |" in hover
    assert "| CPU | 2.50 ms | 3.3 % of wall | 2.50 ms | unchanged |" in hover
    assert "| launches | 3 | 75 % of all | 3 |  |" in hover
    assert "Baseline: w.pt.trace.json, on Test GPU" in hover
    new = line_hover(line(index, "relu"), HoverContext(index, nowhere, baseline=baseline))
    assert "| cost | 15 ms | 30 % of the run's cost | 15 ms | unchanged |" in new


def test_a_baseline_stands_beside_a_function_too(index: ProfileIndex) -> None:
    old = older()
    old.functions[0].total_device_ns = old.functions[0].self_device_ns = old.functions[0].cost_ns = 60_000_000
    hover = function_hover(
        index.profile.functions[0],
        HoverContext(index, nowhere, baseline=Baseline(ProfileIndex(old), index)),
    )
    assert "| cost | 45 ms | 90 % of the run's cost | 30 ms | +15 ms (+50 %) |" in hover


def test_a_baseline_without_texts_is_compared_by_numbers(tmp_path: Path) -> None:
    current = ProfileIndex(make_profile(FILE, text=None, root="/job"))
    baseline = Baseline(ProfileIndex(make_profile(FILE, text=None, root="/job")), current)
    assert baseline.cost_per_step_ns(FILE, NET["relu"]) == 15_000_000
    assert baseline.cost_per_step_ns("/job/unknown.py", 3) == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [(1e6, 1e6, "unchanged"), (2e6, 1e6, "-1 ms (-50 %)"), (0, 1e6, "+1 ms (new)"), (1e6, 0, "-1 ms (gone)")],
)
def test_changes_in_words(old: float, new: float, words: str) -> None:
    assert quantities.change(old, new) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0, "0 %"), (0.0001, "<0.1 %"), (0.042, "4.2 %"), (0.0996, "10 %"), (0.38, "38 %"), (1, "100 %")],
)
def test_shares_in_words(ratio: float, words: str) -> None:
    assert quantities.share(ratio) == words


@pytest.mark.parametrize("path", each_trace())
def test_hint_hover_report_and_comparison_tell_the_same_time_a_step(path: Path) -> None:
    check_time_a_step(profile_of(path))


def test_work_outside_the_steps_is_no_part_of_a_step() -> None:
    """Of 60 ms in the trace 20 ms were launched before the first step; two lines run there alone and everywhere."""
    profile = make_profile(FILE, root="/job")
    project, relu = (next(one for one in profile.lines if one.line == NET[name]) for name in ("project", "relu"))
    project.outside_ns = project.total_outside_ns = 20_000_000
    relu.outside_ns = relu.total_outside_ns = relu.self_device_ns
    check_time_a_step(profile)
    index = ProfileIndex(profile)
    assert annotate(line(index, "project"), index.scales).label == "20 ms · 60 %"
    assert annotate(line(index, "relu"), index.scales).label == "30 ms outside the steps · 30 %"
    hover = line_hover(line(index, "project"), HoverContext(index, nowhere))
    assert "outside the steps, in all | 20 ms" in hover


def check_time_a_step(profile: Profile) -> None:
    """The cost of each line."""
    index = ProfileIndex(profile)
    column = next(
        (one for one in columns("line", profile.lines, [], profile, sort=None, width=200, styles=Styles(False))
         if one.title == "/step"), None,
    )  # fmt: skip
    compared = samples_of_rows(profile, "lines", "cost")
    for place, record in enumerate(profile.lines):
        if record.framework_ns:  # a comparison has the framework's own at the line that calls it
            continue
        time_ns = compared[place].mean_ns
        assert index.scales.costs.per_step_ns(record) == pytest.approx(time_ns, abs=100)  # parts of steps are rounded
        time_ns = index.scales.costs.per_step_ns(record)
        if column is not None and index.scales.steps * index.scales.ranks > 1:
            assert column.cells[place] == time_text(time_ns)
        if round(time_ns):
            words = quantities.duration(time_ns)
            assert annotate(record, index.scales).label.startswith(words)
            assert f"| {words} |" in numbers_table(record, index.scales, profile.totals)


def test_findings_write_units_apart_in_the_editor() -> None:
    (finding, *_) = built_profiles.training().findings
    finding.message = "net_3s.py:7 has 3.10ms of it, 38.0% more"
    words = finding_words(finding, ProfileIndex(built_profiles.training()).scales)
    assert "net_3s.py:7 has 3.10 ms of it, 38.0 % more." in words
