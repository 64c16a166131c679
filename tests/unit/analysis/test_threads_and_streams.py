"""Where work runs: the threads of the CPU and the streams of devices; and what makes a step long."""

from __future__ import annotations

from typing import Any

from deepscope.records.ranks import merge_profiles
from trace_builder import BACKWARD, MAIN, TraceBuilder

US = 1000


def test_each_instant_of_a_thread_is_an_operators_the_runtimes_pythons_an_annotations_or_nothings(
    profile_of: Any,
) -> None:
    builder = TraceBuilder().name_thread(100, MAIN, "python")
    builder.annotation("mine", 0, 90 * US)
    builder.line("/p/a.py", 3, "f", 10 * US, 50 * US)
    builder.op("aten::mm", 20 * US, 20 * US).op("aten::addmm", 22 * US, 4 * US)
    builder.kernel("gemm", 30 * US, 50 * US, 100 * US, launch_duration=5 * US)
    builder.runtime("cudaStreamSynchronize", 95 * US, 5 * US)
    (thread,) = profile_of(builder).threads
    assert (thread.role, thread.thread, thread.name, thread.span_ns) == ("training", str(MAIN), "python", 100 * US)
    assert [thread.operator_ns, thread.runtime_ns, thread.python_ns, thread.annotation_ns, thread.rest_ns] == [
        15 * US, 10 * US, 30 * US, 40 * US, 5 * US,
    ]  # fmt: skip
    assert (thread.operators, thread.runtime_calls, thread.launches, thread.device_ns, thread.wait_ns) == (
        2, 2, 1, 100 * US, 5 * US,
    )  # fmt: skip


def test_autograds_threads_and_others_have_numbers_by_their_start(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 100 * US).op("aten::mm", 0, 10 * US, sequence=1)
    builder.backward("MmBackward0", 20 * US, 10 * US, 1).op("loader", 40 * US, US, tid=7).op(
        "loader", 5 * US, US, tid=8
    )
    profile = profile_of(builder)
    assert [(one.role, one.number, one.thread) for one in profile.threads] == [
        ("training", 0, str(MAIN)), ("autograd", 0, str(BACKWARD)), ("other", 0, "8"), ("other", 1, "7"),
    ]  # fmt: skip
    merged = merge_profiles([profile, profile])
    assert [(one.role, one.number, one.threads) for one in merged.threads] == [
        ("training", 0, 2), ("autograd", 0, 2), ("other", 0, 2), ("other", 1, 2),
    ]  # fmt: skip
    assert merged.threads[0].span_ns == 2 * profile.threads[0].span_ns


def test_a_chosen_step_has_its_part_of_each_thread(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 50 * US).step(2, 50 * US, 50 * US)
    builder.op("aten::mm", 40 * US, 20 * US).op("aten::mm", 80 * US, 10 * US).op("elsewhere", 0, 10 * US, tid=9)
    (thread,) = profile_of(builder, step=2).threads
    assert (thread.operator_ns, thread.operators, thread.span_ns) == (20 * US, 1, 40 * US)


def test_a_streams_busy_time_may_be_shared_with_others_of_its_device(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 100 * US)
    builder.kernel("a", 0, 10 * US, 20 * US).kernel("b", US, 20 * US, 20 * US, stream=9)
    builder.memcpy("HtoD", 8, 2 * US, 50 * US, 5 * US, stream=9)
    builder.kernel("c", 3 * US, 10 * US, 20 * US, device=1)
    found = profile_of(builder).streams
    assert [(one.device, one.stream, one.busy_ns, one.overlapped_ns, one.idle_ns) for one in found] == [
        (0, 7, 20 * US, 10 * US, 80 * US), (0, 9, 25 * US, 10 * US, 75 * US), (1, 7, 20 * US, 0, 80 * US),
    ]  # fmt: skip
    assert [(one.kernels, one.copies, one.kernel_ns, one.copy_ns) for one in found] == [
        (1, 0, 20 * US, 0), (1, 1, 20 * US, 5 * US), (1, 0, 20 * US, 0),
    ]  # fmt: skip


def test_the_line_that_makes_a_step_long_is_longest_over_its_own_median(profile_of: Any) -> None:
    builder = TraceBuilder()
    at = 0
    for number, (load, train) in enumerate([(10, 60), (12, 60), (40, 61), (11, 62)]):
        length = load + train
        builder.step(number, at * US, length * US)
        builder.line("/p/a.py", 3, "main", at * US, load * US)
        builder.line("/p/a.py", 4, "main", (at + load) * US, train * US)
        builder.op("aten::mm", (at + load) * US, US)
        at += length
    steps = profile_of(builder).steps
    # Medians: 11 µs of line 3 (the mean of 11 and 12, rounded down), 60 of line 4.
    assert [(one.slow_line, one.slow_ns) for one in steps] == [(0, 0), (3, 500), (3, 28 * US + 500), (4, 1500)]
    assert {one.slow_file for one in steps} == {"", "/p/a.py"}


def test_two_steps_have_no_usual_length(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 10 * US).step(2, 10 * US, 90 * US).line("/p/a.py", 3, "main", 0, 100 * US)
    assert [one.slow_ns for one in profile_of(builder).steps] == [0, 0]


def test_of_several_ranks_the_one_with_the_largest_excess_names_the_line(profile_of: Any) -> None:
    def rank(longest: int) -> Any:
        builder = TraceBuilder()
        for number in range(3):
            spent = longest if number == 1 else 10
            builder.step(number, number * 100 * US, 100 * US).line(
                "/p/a.py", longest, "f", number * 100 * US, spent * US
            )
        return profile_of(builder)

    merged = merge_profiles([rank(30), rank(50)])
    assert (merged.steps[1].slow_line, merged.steps[1].slow_ns) == (50, 40 * US)
