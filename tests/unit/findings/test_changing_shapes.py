"""DS023, algorithms sought for changing shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepscope.analysis.build import build_profile
from deepscope.analysis.findings.recognised_calls import convolution_searches
from deepscope.analysis.ownership.calls import nest
from deepscope.trace.read import read_trace
from recorded_traces import needs_shared_traces, shared_paths
from trace_builder import TraceBuilder

FILE = "/home/me/model.py"
US = 1_000


def steps(
    searching: tuple[int, ...] = (0, 1, 2, 3),
    *,
    timed: str = "cudaEventElapsedTime",
    shapes: list[Any] | None = None,
    header: dict[str, Any] | None = None,
) -> TraceBuilder:
    """Four steps of 1,000 µs, each with a kernel to 200 µs and a convolution at 100 µs on line 5.

    It takes 10 µs, and where it searches 600 µs: it waits for the device until 200 µs, and tries out two candidates.
    """
    builder = TraceBuilder(deepscope=header or {})
    for number in range(4):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 4, "forward", at, 100 * US)
        builder.line(FILE, 5, "forward", at + 100 * US, 850 * US)
        builder.kernel("before", at + 10 * US, at + 20 * US, 180 * US)
        searches = number in searching
        length = 600 if searches else 10
        dims = None if shapes is None else shapes[number]
        builder.op("aten::conv2d", at + 100 * US, (length + 2) * US, dims=dims)
        builder.op("aten::cudnn_convolution", at + 101 * US, length * US, dims=dims)
        if searches:
            builder.runtime("cudaDeviceSynchronize", at + 110 * US, 92 * US)
            for row, candidate in enumerate(("winograd", "implicit_gemm")):
                then = at + (220 + 200 * row) * US
                builder.kernel(candidate, then, then + 10 * US, 100 * US)
                builder.runtime("cudaEventSynchronize", then + 5 * US, 110 * US)
                if timed:
                    builder.runtime(timed, then + 120 * US, 2 * US)
        then = at + (103 + length) * US
        builder.kernel("winograd", then - 5 * US, max(then, at + 205 * US), 100 * US)
    return builder


def test_searches_in_several_steps_are_found_with_what_they_take_once_the_queue_is_empty(findings_of):
    (found,) = findings_of(steps(), "DS023")
    assert (found.file, found.line) == (FILE, 5)
    # From 200 µs, where the kernel before ends, to the end of `conv2d` at 702 µs.
    assert found.evidence == {"searching_ns": 4 * 502 * US, "searches": 4, "searches_per_step": 1.0}
    assert found.saving_ns == 4 * 502 * US
    assert "cudnn.benchmark = False" in found.remedy.text
    assert "Trainer" not in found.remedy.text


def test_its_waits_and_its_idle_time_are_no_other_findings(findings_of):
    assert [findings_of(steps(), code) for code in ("DS001", "DS004", "DS005")] == [[], [], []]
    assert findings_of(steps(timed=""), "DS001") != []


def test_shapes_are_counted_where_they_are_recorded(findings_of):
    shapes = [[[8, 3, size, size], [16, 3, 3, 3]] for size in (30, 32, 34, 36)]
    (found,) = findings_of(steps(shapes=shapes), "DS023")
    assert found.evidence["shapes"] == 4


def test_a_search_for_shapes_that_were_sought_before_is_not_for_their_sake(findings_of):
    shapes = [[[8, 3, 32, 32], [16, 3, 3, 3]]] * 4
    assert findings_of(steps(shapes=shapes), "DS023") == []


@pytest.mark.parametrize("searching", [(), (0,), (2,)])
def test_one_step_that_searches_is_what_benchmark_is_for(findings_of, searching):
    assert findings_of(steps(searching), "DS023") == []


def test_a_convolution_that_waits_and_measures_nothing_does_not_search(findings_of):
    assert findings_of(steps(timed=""), "DS023") == []


def test_a_time_read_by_a_function_that_kineto_has_no_name_for_is_one(findings_of):
    (found,) = findings_of(steps(timed="INVALID"), "DS023")
    assert found.evidence["searches"] == 4


def test_a_function_without_a_name_alone_is_no_search(findings_of):
    builder = steps(())
    for number in range(4):
        builder.runtime("INVALID", number * 1000 * US + 105 * US, US)
    assert findings_of(builder, "DS023") == []


def test_a_measurement_of_the_users_is_no_search(findings_of):
    builder = steps(())
    for number in range(4):
        builder.runtime("cudaEventElapsedTime", number * 1000 * US + 800 * US, 100 * US)
    assert findings_of(builder, "DS023") == []


def test_what_is_off_already_is_not_recommended(findings_of):
    assert findings_of(steps(header={"settings": {"cudnn_benchmark": False}}), "DS023") == []
    assert len(findings_of(steps(header={"settings": {"cudnn_benchmark": True}}), "DS023")) == 1


def test_lightning_has_an_option_of_its_own(findings_of):
    (found,) = findings_of(steps(header={"versions": {"lightning": "2.6.6"}}), "DS023")
    assert "Trainer(benchmark=False)" in found.remedy.text


def test_a_single_step_has_its_own_figures(findings_of):
    builder = steps()
    (found,) = findings_of(builder, "DS023", step=1)
    assert found.evidence["searching_ns"] == 502 * US


@needs_shared_traces
def test_in_a_recorded_first_step_every_measurement_lies_in_a_search_and_that_is_no_finding():
    (path,) = (one for one in shared_paths() if one.name.startswith("kineto-resnet50_autograd_api"))
    trace = read_trace(path)
    events, names = trace.events, np.array(trace.strings)[trace.events.name]
    found = convolution_searches(trace, nest(trace).parent)
    # A residual network of 50 layers has 53 convolutions, each of which searches forward and backward.
    assert sorted(set(names[found])) == ["aten::conv2d", "aten::cudnn_convolution_backward"]
    assert np.count_nonzero(names[found] == "aten::conv2d") <= 53
    measured = np.flatnonzero(names == "cudaEventElapsedTime")
    inside = (events.start_ns[found] <= events.start_ns[measured][:, None]) & (
        events.start_ns[measured][:, None] < events.end_ns[found]
    )
    inside &= events.thread[found] == events.thread[measured][:, None]
    assert len(measured) == 357
    assert inside.any(axis=1).all()
    codes = {one.code for one in build_profile(trace).findings}
    assert "DS023" not in codes
    assert "DS001" not in codes, "what waits here searches"
