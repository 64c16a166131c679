"""What must hold of the numbers of every recorded trace there is: the parts sum to the whole, to the nanosecond."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import pytest

from deepscope.analysis import build
from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.array_ops.intervals import union
from deepscope.analysis.critical.lines import KINDS as KINDS_OF_PATH
from deepscope.analysis.critical.lines import Timelines, find_parts
from deepscope.analysis.critical.path import critical_path
from deepscope.analysis.critical.shortening import Shortening
from deepscope.analysis.critical.tables import find_dependencies
from deepscope.analysis.numbers.flops import flops_of_operators
from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.analysis.ownership.attribution import Attribution, attribute, call_stacks
from deepscope.analysis.peaks import peaks_of
from deepscope.analysis.tables.why import roofline
from deepscope.analysis.verdict import Reason, judgement
from deepscope.dashboard.page_answer import Choice
from deepscope.dashboard.pages.operators import ModulesAsked, OperatorsAsked, kernels, modules, operators
from deepscope.dashboard.pages.overview import overview
from deepscope.ranks.rank_summary import summary_of
from deepscope.ranks.side_by_side import rank_rows
from deepscope.records import NO_OPERATOR, Profile, Verdict, View, Why
from deepscope.report.tables import TABLES, table
from deepscope.report.text_report import text_report
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from deepscope_lsp.engine.profile_index import Scales
from recorded_traces import each_trace


# At the module's scope, so that all tests of one trace run in a row and it is read once.
@pytest.fixture(scope="module", params=each_trace(always=True))
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


Record = TypeVar("Record")


def arrays_of(record: Any) -> Iterator[np.ndarray]:
    """Every array in a record, however deep."""
    if isinstance(record, np.ndarray):
        yield record
    elif is_dataclass(record):
        for field in fields(record):
            yield from arrays_of(getattr(record, field.name))
    elif isinstance(record, dict):
        for value in record.values():
            yield from arrays_of(value)


def read_only(record: Record) -> Record:
    """The record, whose arrays raise when they are written to."""
    for array in arrays_of(record):
        array.setflags(write=False)
    return record


@lru_cache(maxsize=1)
def read(path: Path) -> Trace:
    return read_only(read_trace(path))


@lru_cache(maxsize=1)
def attributed(path: Path) -> Attribution:
    return read_only(attribute(read(path)))


@lru_cache(maxsize=1)
def profile_of(path: Path) -> Profile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "attribute", lambda _: attributed(path))
        patch.setattr(build, "analyse", lambda *given: read_only(analyse(*given)))
        return build.build_profile(read(path))


def test_no_analysis_writes_to_what_others_read(path):
    """Nor do those of the other tests here, which share these records."""
    assert not any(array.flags.writeable for array in arrays_of(attributed(path)))
    assert len(list(arrays_of(attributed(path)))) > 50
    profile_of(path)
    call_stacks(attributed(path))


def work_ns(trace: Trace) -> int:
    """All device time; without any, the operators' own time, found with a stack in plain Python."""
    events = trace.events
    device = np.isin(events.kind, (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET))
    if device.any():
        return int(events.duration_ns[device].sum())
    operators = np.flatnonzero(events.kind == Kind.OPERATOR).tolist()
    start, duration = events.start_ns.tolist(), events.duration_ns.tolist()
    operators.sort(key=lambda i: (events.thread[i], start[i], -duration[i]))
    inside: dict[int, int] = dict.fromkeys(operators, 0)
    stack: list[int] = []
    for i in operators:
        while stack and (
            events.thread[stack[-1]] != events.thread[i] or start[stack[-1]] + duration[stack[-1]] <= start[i]
        ):
            stack.pop()
        if stack:
            inside[stack[-1]] += duration[i]
        stack.append(i)
    return sum(max(duration[i] - inside[i], 0) for i in operators)


def test_lines_and_no_line_sum_to_all_device_time(path):
    profile = profile_of(path)
    total = sum(line.self_device_ns for line in profile.lines) + profile.no_line.self_device_ns
    assert total == profile.totals.device_ns == work_ns(read(path))


def test_the_critical_path_fills_the_steps_and_no_line_saves_more_than_it_has_of_it(path):
    found = profile_of(path).critical
    totals = profile_of(path).totals
    wall_ns = totals.wall_ns + totals.added_ns  # of the steps as they were recorded
    rows = [*found.lines, found.others, found.no_line]
    assert sum(getattr(found, kind) for kind in KINDS_OF_PATH) == found.critical_ns == wall_ns
    for kind in KINDS_OF_PATH:
        assert sum(getattr(row, kind) for row in rows) == getattr(found, kind)
    for row in found.lines:
        assert sum(getattr(row, kind) for kind in KINDS_OF_PATH) == row.critical_ns
        assert row.would_shorten_ns is None or 0 <= row.would_shorten_ns <= row.critical_ns


def test_own_times_of_lines_and_communication_fill_every_block_of_steps(path):
    profile = profile_of(path)
    own = profile.own_times
    if own is None:
        assert profile.critical.critical_ns == 0
        return
    for place in range(len(own.blocks)):
        lines = sum(row.times_ns[place] for row in own.lines)
        assert lines + own.communication_ns[place] == own.wall_ns[place]
    for row in own.lines:
        assert row.operator_ns + row.python_ns + row.data_ns + row.device_ns + row.delay_ns == sum(row.times_ns)
    recording_ns = profile.critical.critical_ns - sum(own.wall_ns)
    assert 0 <= recording_ns <= profile.totals.recording_ns
    assert sum(own.communication_ns) == profile.critical.communication_ns
    assert sum(own.steps) == profile.critical.steps


def test_the_longest_path_of_each_step_is_the_step(path):
    """Evaluated without a line that does nothing, each step is as long as it is."""
    of = attributed(path)
    analysis = analyse(of)
    found, steps = find_dependencies(of), of.training.steps.spans
    if not len(steps.start):
        return
    timelines = Timelines(of, analysis.phases)
    calls = np.full(len(found.joins), -1, np.int64)
    whole = Shortening(found, find_parts(of.work, found.pieces), timelines, calls, [len(of.scopes.locations)])
    begin, end = int(of.training.window.start[0]), int(of.training.window.end[-1])
    along = critical_path(found, of.training.thread, begin, end, ran_until=end)
    for span in list(zip(steps.start.tolist(), steps.end.tolist(), strict=True))[:4]:
        assert whole.shorter_ns(along, *span).tolist() == [0]


def test_idle_blame_sums_to_the_idle_time(path):
    profile = profile_of(path)
    assert sum(line.idle_ns for line in profile.lines) + profile.no_line.idle_ns == profile.totals.idle_ns
    devices = len(np.unique(attributed(path).work.device)) if profile.metric == "device" else 0
    assert profile.totals.idle_ns + profile.totals.busy_ns == devices * profile.totals.wall_ns or not devices


def test_memory_of_lines_and_no_line_sums_to_all_memory(path):
    profile, memory = profile_of(path), read(path).memory
    ours = memory.size_bytes[(memory.device_type == 0) == (profile.metric == "cpu_self")]
    rows = [*profile.lines, profile.no_line]
    assert sum(row.bytes_allocated for row in rows) == ours[ours > 0].sum()
    assert sum(row.bytes_freed for row in rows) == -ours[ours < 0].sum()
    assert sum(row.peak_bytes for row in rows) == profile.totals.peak_bytes


def test_what_was_live_at_the_peak_is_partitioned_by_what_held_it_and_the_curve_reaches_it(path):
    profile, memory = profile_of(path), read(path).memory
    for row in [*profile.lines, profile.no_line]:
        assert sum(getattr(row, f"peak_{kind}_bytes") for kind in KINDS) == row.peak_bytes
    on_cpu = profile.metric == "cpu_self"
    assert bool(profile.memory.devices) == bool(((memory.device_type == 0) == on_cpu).any())
    assert sum(one.peak.size_bytes for one in profile.memory.devices) == profile.totals.peak_bytes
    for device in profile.memory.devices:
        assert sum(getattr(device.peak, f"{kind}_bytes") for kind in KINDS) == device.peak.size_bytes
        (highest,) = {point.allocated_bytes for point in device.curve if point.at_ns == device.peak_at_ns} & {
            max(point.allocated_bytes for point in device.curve)
        }
        assert highest <= device.largest_peak_bytes
        assert len(device.curve) <= 500
        assert all(a.at_ns <= b.at_ns for a, b in pairwise(device.curve))
        ours = memory.total_allocated_bytes[(memory.device_type != 0) & (memory.total_allocated_bytes >= 0)]
        if not on_cpu and len(profile.memory.devices) == 1 and len(ours):
            assert highest == ours.max()


def test_the_call_tree_functions_and_resolution_sum_to_the_same(path):
    profile = profile_of(path)
    rows = [*profile.functions, profile.no_line]
    for name in ("self_device_ns", "backward_device_ns", "self_cpu_ns"):
        expected = sum(getattr(line, name) for line in profile.lines) + getattr(profile.no_line, name)
        assert sum(getattr(node, name) for node in profile.call_tree) == expected, name
        assert sum(getattr(row, name) for row in rows) == expected, name
    resolved = profile.resolved
    assert resolved.line_ns + resolved.function_ns + resolved.module_ns + resolved.none_ns == profile.totals.device_ns


def test_each_line_of_the_call_tree_sums_to_the_line(path):
    profile = profile_of(path)
    sums: dict[int, tuple[int, int, int]] = {}
    for node in profile.call_tree:
        assert node.parent < len(profile.call_tree)
        before = sums.get(node.line, (0, 0, 0))
        sums[node.line] = (
            before[0] + node.self_device_ns,
            before[1] + node.backward_device_ns,
            before[2] + node.self_cpu_ns,
        )
    for i, line in enumerate(profile.lines):
        assert sums.get(i, (0, 0, 0)) == (line.self_device_ns, line.backward_device_ns, line.self_cpu_ns)


def test_totals_lie_between_self_and_the_whole(path):
    profile = profile_of(path)
    for line in profile.lines:
        assert 0 <= line.backward_device_ns <= line.self_device_ns <= line.total_device_ns <= profile.totals.device_ns
        assert 0 <= line.self_cpu_ns <= line.total_cpu_ns


def test_every_total_is_what_the_call_tree_says(path):
    """Recomputed by walking each node's path in plain Python."""
    profile = profile_of(path)
    totals = [0] * len(profile.lines)
    for node in profile.call_tree:
        seen, at = {node.line}, node
        while at.parent >= 0:
            at = profile.call_tree[at.parent]
            seen.add(at.line)
        for line in seen - {-1}:
            totals[line] += node.self_device_ns
    assert totals == [line.total_device_ns for line in profile.lines]


def test_phases_sum_to_the_window_and_to_each_step(path):
    profile = profile_of(path)
    assert sum(phase.wall_ns for phase in profile.phases) == profile.totals.wall_ns
    assert sum(phase.device_ns for phase in profile.phases) == profile.totals.device_ns
    for step in profile.steps:
        assert sum(step.phases.values()) == step.duration_ns


def test_the_steps_sum_to_the_whole(path):
    attribution = attributed(path)
    whole = analyse(attribution)
    numbers = np.unique(attribution.training.steps.number).tolist()
    steps = [analyse(attribution, View(step=number)) for number in numbers]
    if not steps:
        assert profile_of(path).steps == []
        return
    outside = attribution.work.step < 0
    for name, values in (("self_device_ns", attribution.work.duration_ns), ("launches", None)):
        rest = outside if values is not None else outside & (attribution.work.kind == Kind.KERNEL)
        lost = np.zeros(len(whole.columns[name]), np.int64)
        np.add.at(lost, attribution.work.location[rest], 1 if values is None else values[rest])
        assert (sum(step.columns[name] for step in steps) + lost == whole.columns[name]).all(), name
    assert (sum(step.columns["idle_ns"] for step in steps) == whole.columns["idle_ns"]).all()
    assert sum(step.window.total_ns for step in steps) == whole.window.total_ns
    for step in steps:
        assert_conserves(step)
    for name in ("calls", "wait_ns", "self_cpu_ns", "bytes_allocated", "operators", "flops"):
        assert (sum(step.columns[name] for step in steps) <= whole.columns[name]).all(), name


def assert_conserves(analysis: Analysis) -> None:
    work = analysis.attribution.work
    counted = analysis.counted
    assert analysis.columns["self_device_ns"].sum() == work.duration_ns[counted].sum()
    assert analysis.by_path[:, 0].sum() == work.duration_ns[counted].sum()
    assert analysis.columns["self_cpu_ns"].sum() == analysis.by_path[:, 2].sum()


def test_a_line_owns_what_ends_its_call_path(path):
    attribution = attributed(path)
    location = attribution.paths.location
    assert (location[attribution.work.path] == attribution.work.location).all()


def test_each_nanosecond_of_a_lines_cost_has_one_cause(path):
    profile = profile_of(path)
    figures = {"rates", "kernels", "delay_ns", "queued", "occupied_ns", "occupancy_known_ns"}
    causes = [name for name in Why.__struct_fields__ if name not in figures]
    for line in profile.lines:
        rated = sum(rate.device_ns for rate in line.why.rates)
        assert rated + sum(getattr(line.why, name) for name in causes) == line.cost_ns - line.framework_ns, line
        assert all(getattr(line.why, name) >= 0 for name in Why.__struct_fields__ if name != "rates")
        assert line.why.occupied_ns <= line.why.occupancy_known_ns <= line.self_device_ns


def test_what_a_framework_costs_is_a_part_of_the_lines_that_call_it(path):
    profile = profile_of(path)
    beside = "idle_ns" if profile.metric == "device" else "python_ns"
    of_lines: Counter[tuple[str, int]] = Counter()
    for line in profile.lines:
        of_lines[line.file, line.line] += line.framework_ns
        assert 0 <= line.framework_ns <= getattr(line, beside)
    parts: Counter[tuple[str, int]] = Counter()
    for part in profile.framework:
        parts[part.file, part.line] += part.cost_ns
    assert +parts == +of_lines
    assert profile.no_line.framework_ns == 0


def test_each_line_with_device_time_has_a_word_or_a_reason_why_not(path):
    profile = profile_of(path)
    words = set(get_args(Verdict)) - {""}
    for peaks in (peaks_of(profile.trace.device), peaks_of("any", "fp32=10,bf16=100,bandwidth=1"), None):
        for line in profile.lines:
            found = judgement(line.why, peaks, wait_ns=line.wait_ns)
            assert (found.word in words) != bool(found.reason), line
            assert 0 <= found.share <= 1
            if peaks is not None and peaks.name == "any" and found.reason == Reason.NO_PEAKS:
                assert any(rate.dtype not in {"float32", "bfloat16", ""} for rate in line.why.rates)


CACHE_BYTES = {"V100": 6 << 20, "A100": 40 << 20, "H100": 50 << 20, "B200": 126 << 20, "MI300X": 256 << 20}
"""What stays in a device's last cache may be read faster than its memory allows. https://developer.nvidia.com/blog and
AMD's data sheets state the sizes."""


def test_no_operator_moves_bytes_faster_than_the_device_can(path):
    profile, of = profile_of(path), attributed(path)
    peaks = peaks_of(profile.trace.device)
    if profile.metric != "device" or peaks is None:
        return
    cache = next((size for name, size in CACHE_BYTES.items() if name in peaks.name), 0)
    trace, work = of.trace, of.work
    found = roofline(trace, of.operators, work, flops_of_operators(trace, of.operators).counted)
    known = np.flatnonzero((found.moved_bytes >= 0) & (found.unit >= 0))
    units = len(of.operators.nodes)
    moved = np.bincount(found.unit[known], found.moved_bytes[known], units)
    time = np.bincount(found.unit[known], work.duration_ns[known], units)
    flops = np.bincount(found.unit[known], found.flops[known], units)
    large = moved > cache
    # Without strides an input that was expanded seems to be read in whole.
    most = 1.03 if (trace.events.strides >= 0).any() else 1.25
    name = trace.events.name[of.operators.nodes]
    for one in np.unique(name[large]).tolist():
        rows = large & (name == one)
        assert moved[rows].sum() <= most * peaks.memory_bytes_per_s / 1e9 * time[rows].sum(), trace.strings[one]
    best = max(peaks.flops_per_s.values())
    assert (flops[large] <= 1.03 * best / 1e9 * time[large]).all()


def test_the_overview_partitions_the_steps_and_the_time_of_work(path):
    profile = profile_of(path)
    for section in ("step", "span", "idle"):
        rows = [row for row in profile.overview if row.section == section]
        assert sum(row.time_ns for row in rows) == (rows[0].whole_ns if rows else 0), section
        assert len({row.whole_ns for row in rows}) <= 1
    for row in profile.overview:
        assert 0 <= row.time_ns <= row.whole_ns, row
    assert any(row.section == "span" for row in profile.overview) == (profile.metric == "device")


def test_each_threads_time_is_partitioned_and_threads_sum_to_the_totals(path):
    profile, trace, work = profile_of(path), read(path), attributed(path).work
    for thread in profile.threads:
        parts = (
            thread.operator_ns,
            thread.runtime_ns,
            thread.python_ns,
            thread.annotation_ns,
            thread.rest_ns,
        )
        assert min(parts) >= 0
        assert sum(parts) == thread.span_ns
        assert 0 <= thread.wait_ns <= thread.operator_ns + thread.runtime_ns
    assert len({(thread.role, thread.number) for thread in profile.threads}) == len(profile.threads)
    assert sum(thread.operators for thread in profile.threads) == int((trace.events.kind == Kind.OPERATOR).sum())
    assert sum(thread.runtime_calls for thread in profile.threads) == int((trace.events.kind == Kind.RUNTIME).sum())
    assert sum(thread.wait_ns for thread in profile.threads) == profile.totals.wait_ns
    # Work whose launch is not in the file was launched from no thread.
    stray = work.node < 0
    assert sum(thread.device_ns for thread in profile.threads) == int(work.duration_ns[~stray].sum())
    lost = int((stray & work.counts & (work.kind == Kind.KERNEL)).sum())
    assert sum(thread.launches for thread in profile.threads) + lost == profile.totals.launches


def test_streams_sum_to_all_device_time_and_each_fills_the_window(path):
    profile, work = profile_of(path), attributed(path).work
    if profile.metric != "device":
        assert profile.streams == []
        return
    assert sum(stream.device_ns for stream in profile.streams) == profile.totals.device_ns
    for stream in profile.streams:
        kinds = (stream.kernel_ns, stream.copy_ns, stream.fill_ns, stream.collective_ns)
        assert sum(kinds) == stream.device_ns
        assert stream.busy_ns + stream.idle_ns == profile.totals.wall_ns
        assert 0 <= stream.overlapped_ns <= stream.busy_ns
    pieces = sum(one.kernels + one.copies + one.fills + one.collectives for one in profile.streams)
    assert pieces == int(work.counts.sum())
    for device in {stream.device for stream in profile.streams}:
        ours = [stream for stream in profile.streams if stream.device == device]
        inside = attributed(path).training.window
        busy = work.busy[device].intersection(inside).total_ns
        alone = sum(stream.busy_ns - stream.overlapped_ns for stream in ours)
        assert max(stream.busy_ns for stream in ours) <= busy <= sum(stream.busy_ns for stream in ours)
        assert alone <= busy
        if len(ours) < 3:
            assert 2 * (busy - alone) == sum(stream.overlapped_ns for stream in ours)
    gaps = {row.name: row.time_ns for row in profile.overview if row.section == "idle"}
    if len(profile.steps) < 2 and gaps:
        for name, field in (
            ("host wait", "host_wait_ns"),
            ("kernel wait", "kernel_wait_ns"),
            ("other wait", "other_wait_ns"),
        ):
            assert gaps[name] == sum(getattr(stream, field) for stream in profile.streams)


def test_collectives_sum_to_the_lines_and_kernels(path):
    profile = profile_of(path)
    on_device = [row for row in profile.collectives if row.on_device]
    rows = [*profile.lines, profile.no_line]
    if profile.metric == "device":
        assert sum(row.time_ns for row in on_device) == sum(row.collective_ns for row in rows)
        assert sum(row.exposed_ns for row in on_device) == sum(row.collective_exposed_ns for row in rows)
        kernels = [kernel for kernel in profile.kernels if kernel.kind == "collective"]
        assert sum(row.calls for row in on_device) == sum(kernel.calls for kernel in kernels)
        assert sum(row.collective_ns for row in profile.streams) == sum(row.time_ns for row in on_device)
    else:
        assert on_device == []
    for row in profile.collectives:
        assert 0 <= row.exposed_ns <= row.time_ns
        assert row.min_ns * row.calls <= row.time_ns <= row.max_ns * row.calls
        assert sum(row.shortest_ns) == row.time_ns
        assert bool(row.bytes) == bool(row.size_class_bytes) == bool(row.bytes_known_ns) or not row.time_ns
        assert row.size_class_bytes * row.calls <= row.bytes < 2 * row.size_class_bytes * row.calls or not row.bytes
        assert row.transfer_ns in {None, row.time_ns}


def test_what_makes_a_step_long_is_a_part_of_it(path):
    profile = profile_of(path)
    known = {(line.file, line.line, line.function) for line in profile.lines}
    for step in profile.steps:
        assert 0 <= step.slow_ns <= step.duration_ns
        assert bool(step.slow_ns) == bool(step.slow_file)
        assert not step.slow_ns or (step.slow_file, step.slow_line, step.slow_function) in known


class OneProfile:
    """A library of the dashboard that has one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def profile(self, _question: Any, **_details: Any) -> Profile:
        return self._profile


def test_no_share_on_any_face_is_over_a_hundred_percent(path):
    profile = profile_of(path)
    for by in set(TABLES) - {"counter"}:  # a process may have 136 % of a core
        text = text_report(profile, by=by, limit=0, width=400)
        found = re.findall(r"(?<![\w.+])([\d,]+(?:\.\d+)?)\s?%", text)
        too_much = [one for one in found if float(one.replace(",", "")) > 100]
        assert not too_much, (by, too_much)
    library = OneProfile(profile)
    pages = [
        overview(library, Choice()),
        operators(library, OperatorsAsked()),
        kernels(library, Choice()),
        modules(library, ModulesAsked()),
    ]
    for page in pages:
        for shown in tables_in(page):
            for at, column in enumerate(shown.columns):
                shares = [row[at] for row in shown.rows if column.kind == "share" and row[at] is not None]
                assert all(0 <= share <= 1 for share in shares), (shown.id, column.key)
    for figure in pages[0].figures:
        assert figure.kind != "share" or 0 <= figure.value <= 1, figure.label
    scales = Scales.of(profile)
    for line in profile.lines:
        assert scales.share(line.self_device_ns) <= scales.share(line.total_device_ns) <= 1


def tables_in(page: Any) -> list[Any]:
    return [one for name in page.__struct_fields__ if hasattr(one := getattr(page, name), "columns")]


def test_nothing_of_a_step_comes_from_outside_the_steps(path):
    profile = profile_of(path)
    attribution, events = attributed(path), read(path).events
    spans = attribution.training.steps.spans
    assert len(profile.steps) == len(spans.start)
    if not profile.steps:
        return
    figures = {figure.label: figure.value for figure in overview(OneProfile(profile), Choice()).figures}
    steps = len(profile.steps)
    waits = analyse(attribution).waits
    inside = [
        sum(
            union(np.maximum(events.start_ns[own], start), np.minimum(events.end_ns[own], end)).total_ns
            for thread in np.unique(events.thread[waits]).tolist()
            if len(own := waits[(events.thread[waits] == thread)])
        )
        for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True)
    ]
    assert figures.get("waiting a step", 0) == pytest.approx(sum(inside) / steps)
    work = attribution.work
    kernels_inside = work.counts & (work.kind == Kind.KERNEL) & (spans.locate(work.launch_ns) >= 0)
    assert figures.get("kernels a step", 0) == pytest.approx(kernels_inside.sum() / steps)


def test_no_communication_is_longer_than_its_step(path):
    profile = profile_of(path)
    for step in profile.steps:
        assert 0 <= step.exposed_ns <= step.communication_ns <= step.duration_ns
        assert 0 <= step.computing_ns <= step.duration_ns
    row = rank_rows([summary_of(profile)])[0]
    longest = max((step.duration_ns for step in profile.steps), default=profile.totals.wall_ns)
    assert row.exposed_ns <= row.communication_ns <= longest
    assert row.overlapped_ns >= 0
    assert row.compute_ns <= longest or profile.metric == "cpu_self"


def test_operators_and_work_without_an_operator_are_all_device_work(path):
    profile, of = profile_of(path), attributed(path)
    if profile.metric != "device":
        return
    rows = table("operator").rows(profile)
    assert sum(row.self_device_ns for row in rows) == profile.totals.device_ns
    launched = of.work.node >= 0
    without = ~launched | (of.operators.around[of.work.node] < 0)
    rest = [row.self_device_ns for row in rows if row.name == NO_OPERATOR]
    assert sum(rest) == int(of.work.duration_ns[without].sum())
