"""DS005, idle device with a line to blame; and that idle time is given to one finding alone."""

from __future__ import annotations

from pathlib import Path

from deepscope.analysis.build import build_profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def steps(busy: int, *, annotate: str = "") -> TraceBuilder:
    """Steps of 1,000 µs: line 2 launches `busy` µs of kernel, then line 3 computes on the CPU from 100 µs on."""
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, 100 * US)
        builder.line(FILE, 3, "augment", at + 100 * US, 900 * US)
        builder.kernel("gemm", at + 1 * US, at + 5 * US, busy * US)
        if annotate:
            builder.annotation(annotate, at + 100 * US, 900 * US)
    return builder


def test_the_line_that_the_cpu_was_on_is_found(findings_of):
    (found,) = findings_of(steps(200), "DS005")
    assert (found.file, found.line, found.function) == (FILE, 3, "augment")
    assert found.evidence == {"device_idle_ns": 3 * 795 * US}
    assert found.saving_ns == 3 * 795 * US


def test_idle_time_while_an_operator_launches_or_the_cpu_waits_is_not_this_rule_s(findings_of):
    launching, waiting = steps(200), steps(200)
    for number in range(3):
        at = number * 1000 * US
        launching.op("aten::conv2d", at + 700 * US, 250 * US)
        launching.kernel("conv", at + 945 * US, at + 948 * US, 1 * US)
        waiting.runtime("cudaDeviceSynchronize", at + 700 * US, 290 * US)
    (found,) = findings_of(launching, "DS005")
    assert found.saving_ns == 3 * (700 - 205) * US  # what is left behind the operator is no long gap
    # DS001 has as much of the front of the gap as the wait takes, and the wait itself is no work.
    assert 0 < sum(one.saving_ns for one in findings_of(waiting, "DS005")) <= 3 * (800 - 2 * 290) * US


def test_a_line_whose_idle_time_is_mostly_launching_has_no_finding_of_other_work(findings_of):
    builder = steps(200)
    for number in range(3):
        builder.op("aten::conv2d", number * 1000 * US + 400 * US, 550 * US)
        builder.kernel("conv", number * 1000 * US + 945 * US, number * 1000 * US + 948 * US, 1 * US)
    assert findings_of(builder, "DS005") == []


def test_the_advice_names_no_loader_where_there_is_none(findings_of):
    (found,) = findings_of(steps(200), "DS005")
    assert "loader" not in found.remedy.text


def test_a_busy_device_is_not_found(findings_of):
    assert findings_of(steps(980), "DS005") == []


def test_idle_time_while_data_is_loaded_is_the_loaders(findings_of):
    builder = steps(200, annotate="[pl][profile][_TrainingEpochLoop].train_dataloader_next")
    assert findings_of(builder, "DS005") == []
    assert findings_of(builder, "DS003")[0].saving_ns == 3 * 795 * US


def test_several_devices_idle_time_is_divided_among_them(findings_of):
    builder = steps(200)
    builder.kernel("other", 2 * US, 5 * US, 200 * US, device=1, stream=3)
    found = next(one for one in findings_of(builder, "DS005") if one.line == 3)
    # The second device works from 5 µs to 205 µs and never again.
    assert found.evidence["device_idle_ns"] == (3 * 795 + 795 + 2 * 900) * US
    assert found.saving_ns == 2490 * US


def test_a_gap_of_three_causes_is_shared_out_and_promised_once(tmp_path: Path):
    builder = steps(200)
    for number in range(3):
        at = number * 1000 * US
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 500 * US, 500 * US)
        builder.op("aten::item", at + 20 * US, 200 * US).op("aten::_local_scalar_dense", at + 20 * US, 200 * US)
    profile = build_profile(read_trace(builder.write(tmp_path / "built.json")))
    # Idle from 205 µs on: 200 µs after the wait (as long as that took), up to 500 µs on line 3, then the loader.
    assert {one.code: one.saving_ns for one in profile.findings} == {
        "DS001": 3 * 200 * US,
        "DS005": 3 * 95 * US,
        "DS003": 3 * 500 * US,
    }
    assert sum(one.saving_ns for one in profile.findings) <= profile.totals.idle_ns


def recorded(entries: int, cost_ns: int) -> TraceBuilder:
    """`steps(200)`, in which line 3 calls line 9 so often in each step, for 1 µs each, and recording costs as much."""
    builder = steps(200)
    builder.metadata["deepscope"] = {"lines": {"cost_ns": cost_ns, "entries": 3 * (entries + 2)}}
    for number in range(3):
        for entry in range(entries):
            builder.line(FILE, 9, "one", number * 1000 * US + (210 + entry) * US, 1 * US)
    return builder


def test_idle_time_that_recording_took_is_not_blamed_on_the_program(findings_of):
    # 400 of the 795 µs are entries of line 9, for which recording alone took 1 µs each.
    (found,) = findings_of(recorded(400, cost_ns=1 * US), "DS005")
    assert (found.line, found.evidence["device_idle_ns"]) == (3, 3 * 395 * US)
    # Half of each entry is the program's.
    found, other = findings_of(recorded(400, cost_ns=US // 2), "DS005")
    assert (found.line, found.saving_ns) == (3, 3 * 395 * US)
    assert (other.line, other.saving_ns) == (9, 3 * 200 * US)


def test_recording_while_the_device_works_takes_nothing_off_its_idle_time(findings_of):
    builder = steps(200)
    builder.metadata["deepscope"] = {"lines": {"cost_ns": 50 * US, "entries": 6}}
    # Line 3 is entered at 100 µs, while the kernel runs.
    (found,) = findings_of(builder, "DS005")
    assert found.saving_ns == 3 * 795 * US
