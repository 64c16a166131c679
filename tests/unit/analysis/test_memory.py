"""What was live at the peak, and what held it, as surveys of the recorder tell; traces built by hand."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.records import HeldMemory
from trace_builder import TraceBuilder

PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS = range(5)
CPU, CUDA = (0, -1), (1, 0)


def survey(at: int, occasion: str, *held: tuple[int, int, int], device: tuple[int, int] = CUDA) -> dict[str, Any]:
    """A survey that found (kind, address, size)."""
    rows = [[kind, *device, address, size] for kind, address, size in held]
    return {"at_ns": at, "occasion": occasion, "held": rows}


def told(builder: TraceBuilder, *surveys: dict[str, Any], **rest: Any) -> TraceBuilder:
    builder.metadata["deepscope"] = {"format": 2, "memory": {"surveys": list(surveys), **rest}}
    return builder


def lines(*spans: tuple[int, int, int], on_cpu: bool = False) -> TraceBuilder:
    builder = TraceBuilder()
    for line, start, duration in spans:
        builder.line("/p/a.py", line, "f", start, duration)
    return builder if on_cpu else builder.kernel("k", spans[0][1], 1000, 1)


def parts(held: Any, prefix: str = "") -> dict[str, int]:
    """What is not 0, by kind."""
    found = {kind: getattr(held, f"{prefix}{kind}_bytes") for kind in KINDS}
    return {kind: size for kind, size in found.items() if size}


def at_peak(line: Any) -> dict[str, int]:
    return parts(line, "peak_")


def test_a_block_is_what_a_survey_found_at_its_address_while_it_lived(profile_of, at):
    builder = lines((10, 0, 100), (11, 100, 200))
    builder.memory(10, 1000, address=1).memory(20, 500, address=2).memory(30, 70, address=3)
    builder.memory(120, -1000, address=1).memory(130, 40, address=1).memory(200, -500, address=2)
    profile = profile_of(
        told(
            builder,
            survey(5, "begin"),
            survey(40, "backward", (ACTIVATIONS, 1, 1000), (GRADIENTS, 2, 500)),
            survey(140, "gradients", (GRADIENTS, 1, 40)),  # another block by now
        )
    )
    assert at_peak(at(profile, 10)) == {"activations": 1000, "gradients": 500, "unknown": 70}
    assert at_peak(at(profile, 11)) == {}
    assert profile.memory.owners_known


def test_of_a_block_that_is_several_things_the_first_counts(profile_of, at):
    builder = lines((10, 0, 100)).memory(10, 1000, address=1)
    profile = profile_of(
        told(builder, survey(20, "backward", (ACTIVATIONS, 1, 1000)), survey(30, "end", (PARAMETERS, 1, 1000)))
    )
    assert at_peak(at(profile, 10)) == {"parameters": 1000}


def test_what_no_survey_saw_live_was_a_temporary_and_what_nobody_known_held_is_unknown(profile_of, at):
    builder = lines((10, 0, 100), (11, 100, 200))
    builder.memory(10, 100, address=1).memory(20, 30, address=2).memory(50, -30, address=2)
    profile = profile_of(told(builder, survey(5, "begin"), survey(60, "backward"), survey(400, "end")))
    assert at_peak(at(profile, 10)) == {"temporaries": 30, "unknown": 100}


def test_a_survey_of_inputs_alone_makes_nothing_unknown(profile_of, at):
    builder = lines((10, 0, 100)).memory(10, 30, address=2).memory(50, -30, address=2)
    profile = profile_of(told(builder, survey(5, "begin"), survey(20, "inputs", (INPUTS, 9, 4))))
    assert at_peak(at(profile, 10)) == {"temporaries": 30}


def test_without_surveys_nothing_is_known(profile_of, at):
    profile = profile_of(lines((10, 0, 100)).memory(10, 30, address=2).memory(50, -30, address=2))
    assert at_peak(at(profile, 10)) == {"unknown": 30}
    assert not profile.memory.owners_known


def test_what_was_there_before_the_window_is_told_by_the_first_survey_on_no_line(profile_of, at):
    builder = lines((10, 0, 100), (11, 100, 100))
    builder.memory(20, 1000, address=1, total=71_000).memory(120, -300, address=7, total=70_700)
    first = survey(5, "begin", (PARAMETERS, 5, 2000), (GRADIENTS, 7, 300), (OPTIMIZER, 6, 4000), (PARAMETERS, 5, 2000))
    profile = profile_of(told(builder, first))
    assert at_peak(at(profile, 10)) == {"unknown": 1000}
    assert at_peak(profile.no_line) == {
        "parameters": 2000, "gradients": 300, "optimizer": 4000, "unknown": 71_000 - 1000 - 6300,
    }  # fmt: skip
    assert profile.totals.peak_bytes == 71_000


def test_the_cpus_allocator_forgets_what_was_there_before_so_the_recorder_tells_until_when(profile_of, at):
    builder = lines((10, 0, 100), (11, 100, 100), on_cpu=True).op("aten::mm", 1, 5)
    cpu: dict[str, Any] = {"device_type": 0, "device": -1}
    builder.memory(20, 100, address=1, total=100, **cpu).memory(120, 150, address=2, total=250, **cpu)
    first = survey(2, "begin", (PARAMETERS, 5, 2000), (GRADIENTS, 6, 700), device=CPU)
    profile = profile_of(told(builder, first, releases=[[50, 0, -1, 6]]))
    (device,) = profile.memory.devices
    assert [tuple(getattr(p, n) for n in p.__struct_fields__) for p in device.curve] == [
        (20, 2800, -1), (120, 2250, -1),
    ]  # fmt: skip
    assert (device.device, device.peak_at_ns) == ("cpu", 20)
    assert parts(device.peak) == {"parameters": 2000, "gradients": 700, "unknown": 100}
    kept = profile_of(
        told(lines((10, 0, 100), on_cpu=True).op("aten::mm", 1, 5).memory(20, 100, address=6, **cpu), first)
    )
    assert parts(kept.memory.devices[0].peak) == {"parameters": 2000, "unknown": 100}, "its address was used anew"


def test_each_device_has_its_own_peak_and_the_same_address_may_be_of_both(profile_of, at):
    builder = lines((10, 0, 100)).memory(10, 100, address=1, device=0).memory(20, 300, address=1, device=1)
    builder.memory(30, -100, address=1, device=0)
    profile = profile_of(told(builder, survey(25, "backward", (ACTIVATIONS, 1, 300), device=(1, 1))))
    assert [(one.device, one.peak.size_bytes) for one in profile.memory.devices] == [("cuda:1", 300), ("cuda:0", 100)]
    assert at_peak(at(profile, 10)) == {"activations": 300, "unknown": 100}


def test_a_long_curve_keeps_its_peak_its_ends_and_the_extremes_between(profile_of):
    builder = lines((10, 0, 50_000))
    for number in range(3000):
        builder.memory(10 * number + 5, 100 + number % 7, address=number)
        if number != 1717:
            builder.memory(10 * number + 9, -(100 + number % 7), address=number)
        else:
            builder.memory(10 * number + 6, 10**6, address=-5).memory(10 * number + 7, -(10**6), address=-5)
    (device,) = profile_of(builder).memory.devices
    assert len(device.curve) <= 500
    times = [point.at_ns for point in device.curve]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (5, 29_999)
    assert max(point.allocated_bytes for point in device.curve) == device.largest_peak_bytes == 10**6 + 100 + 1717 % 7
    assert {point.allocated_bytes for point in device.curve} >= {0, 106}


def test_what_was_live_as_an_allocation_failed_is_told_though_the_peak_was_before(profile_of):
    builder = lines((10, 0, 100), (11, 100, 100))
    builder.memory(10, 9000, address=1, total=9500).memory(20, -9000, address=1, total=500)
    builder.memory(110, 64, address=2, total=564).memory(120, 36, address=3, total=600).memory(
        190, -64, address=2, total=536
    )
    failure = {"at_ns": 150, "error": "OutOfMemoryError", "message": "CUDA out of memory"}
    surveys = survey(5, "begin", (PARAMETERS, 7, 200)), survey(150, "failure", (ACTIVATIONS, 2, 64))
    found = profile_of(told(builder, *surveys, failure=failure)).memory.failure
    assert (found.error, found.device, found.held) == (
        "OutOfMemoryError",
        "cuda:0",
        HeldMemory(size_bytes=600, parameters_bytes=200, activations_bytes=64, unknown_bytes=336),
    )
    assert [(row.file, row.line, row.size_bytes, parts(row)) for row in found.lines] == [
        ("", 0, 500, {"parameters": 200, "unknown": 300}),
        ("/p/a.py", 11, 100, {"activations": 64, "unknown": 36}),
    ]


def test_a_failure_on_the_cpu_is_told_of_the_cpu_beside_a_device(profile_of):
    builder = lines((10, 0, 100)).memory(10, 9000, address=1).memory(20, 70, address=1, device_type=0, device=-1)
    found = profile_of(told(builder, failure={"at_ns": 50, "on_cpu": True})).memory.failure
    assert (found.device, found.held.size_bytes) == ("cpu", 70)


@pytest.mark.parametrize("junk", [[[9, 1, 0, 1, 5]], [[0, 1, 0, -1, 5]], [[0, 1]], "x", [[0, 1, 0, 2**70, 5]]])
def test_a_survey_with_junk_in_it_is_left_out_and_the_others_count(junk: Any, profile_of, at):
    builder = lines((10, 0, 100)).memory(10, 1000, address=1)
    bad = {"at_ns": 15, "occasion": "backward", "held": junk}
    profile = profile_of(told(builder, bad, survey(20, "backward", (ACTIVATIONS, 1, 1000))))
    assert at_peak(at(profile, 10)) == {"activations": 1000}
