"""The critical path: what it is made of, the lines on it, and what each would save."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from critical_truth import Truth, run_program
from deepscope.analysis.analysis import analyse
from deepscope.analysis.critical import tables
from deepscope.analysis.critical.lines import KINDS, PieceParts
from deepscope.analysis.ownership.attribution import attribute
from deepscope.records import CriticalLine, CriticalPath, CriticalTimes, Profile
from deepscope.records.ranks import merge_profiles
from trace_builder import TraceBuilder

US = 1_000
FILE = "/home/me/train.py"
many = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def times(row: CriticalTimes) -> dict[str, int]:
    """What is not zero of a row, by kind."""
    return {kind: getattr(row, kind) for kind in KINDS if getattr(row, kind)}


@pytest.fixture
def path_of(read) -> Callable[[TraceBuilder], CriticalPath]:
    """The path of a builder's trace without the rest of its profile."""

    def find(builder: TraceBuilder) -> CriticalPath:
        paths = tables.step_paths(analyse(attribute(read(builder))))
        return tables.critical_path_table(paths, paths.columns(np.arange(len(paths.steps))))

    return find


@many
@given(st.integers(0, 10**6))
def test_the_path_and_what_each_line_would_save_are_those_of_plain_python(path_of, seed):
    machine = run_program(seed)
    truth = Truth(machine)
    path = path_of(machine.builder)
    found = {row.line: times(row) for row in path.lines}
    assert found | {None: times(path.no_line)} == {None: {}} | {k: dict(v) for k, v in truth.by_line().items()}
    assert path.steps == len(machine.steps)
    assert path.evaluated_steps == (path.steps if path.lines else 0)
    for row in path.lines:
        assert row.would_shorten_ns == truth.shorter_ns(row.line), row.line
        assert 0 <= row.would_shorten_ns <= row.critical_ns


@many
@given(st.integers(0, 10**6))
def test_a_line_saves_what_the_program_is_faster_without_it(path_of, seed):
    machine = run_program(seed, synchronised=True)
    path = path_of(machine.builder)
    assert path.critical_ns == machine.steps[-1][1]
    for row in path.lines:
        faster = run_program(seed, synchronised=True, without=row.line)
        assert row.would_shorten_ns == machine.steps[-1][1] - faster.steps[-1][1], row.line


def by_line(builder_profile: Profile) -> dict[int, CriticalLine]:
    return {row.line: row for row in builder_profile.critical.lines}


def device_bound(steps: int = 3) -> TraceBuilder:
    """Each step the CPU takes 20 µs, the device 100 µs; the CPU runs ahead and never waits."""
    builder = TraceBuilder()
    for number in range(steps):
        begin = number * 20 * US
        builder.step(number, begin, 20 * US)
        builder.line(FILE, 1, "f", begin, 10 * US).line(FILE, 2, "f", begin + 10 * US, 10 * US)
        start = 5 * US + number * 100 * US
        builder.kernel("gemm", begin + 2 * US, start, 60 * US, launch_duration=US)
        builder.kernel("add", begin + 12 * US, start + 60 * US, 40 * US, launch_duration=US)
    return builder


def test_a_loop_that_the_device_holds_up_is_on_the_path_with_its_kernels(profile_of):
    profile = profile_of(device_bound())
    path = profile.critical
    # The first kernel starts 5 µs after the first step begins, and was launched after 2 µs.
    assert times(path) == {"cpu_ns": 2 * US, "launch_ns": 3 * US, "kernel_ns": 55 * US}
    assert by_line(profile)[1].would_shorten_ns == by_line(profile)[1].critical_ns == 60 * US
    assert 2 not in by_line(profile)


def test_a_loop_that_python_holds_up_is_on_the_path_with_its_lines(profile_of):
    builder = TraceBuilder()
    for number in range(3):
        begin = number * 100 * US
        builder.step(number, begin, 100 * US)
        builder.line(FILE, 1, "f", begin, 70 * US).line(FILE, 2, "f", begin + 70 * US, 30 * US)
        builder.kernel("gemm", begin + 80 * US, begin + 85 * US, 5 * US, launch_duration=US)
        builder.runtime("cudaStreamSynchronize", begin + 82 * US, 10 * US)
    profile = profile_of(builder)
    assert times(profile.critical) == {
        "cpu_ns": 3 * 88 * US, "launch_ns": 3 * 5 * US, "kernel_ns": 3 * 5 * US, "return_ns": 3 * 2 * US,
    }  # fmt: skip
    assert by_line(profile)[1].would_shorten_ns == 3 * 70 * US
    # The kernel, its launch and the return go with the line that launches it and waits.
    assert by_line(profile)[2].would_shorten_ns == 3 * 30 * US


@pytest.mark.parametrize("pause", [10 * US, 100 * US])
def test_a_busy_device_whose_work_ran_out_once_waited_for_all_that_the_cpu_did_before_that(profile_of, pause):
    """The device is 40 µs behind the CPU, which never waits; one launch comes late."""
    builder, at, free = TraceBuilder(), 0, 140 * US
    for number in range(20):
        is_late = number == 9
        length = 140 * US + pause if is_late else 100 * US if number < 9 else 50 * US
        builder.line(FILE, 1 + is_late, "f", at, length)
        at += length
        start = max(free, at)
        builder.kernel("gemm", at - 2 * US, start, 100 * US, launch_duration=US)
        free = start + 100 * US
        if is_late:
            late_ns = start
    profile = profile_of(builder.step(0, 0, at))
    path, lines = profile.critical, by_line(profile)
    assert late_ns == 900 * US + 140 * US + pause
    assert profile.totals.idle_ns == 140 * US + pause
    assert path.critical_ns == at == sum(times(path).values())
    assert path.kernel_ns == at - late_ns
    assert (lines[1].cpu_ns, lines[2].cpu_ns, path.launch_ns) == (900 * US, 140 * US + pause - 2 * US, 2 * US)


def test_a_loop_that_data_holds_up_is_on_the_path_with_its_loader(profile_of):
    builder = TraceBuilder()
    for number in range(3):
        begin = number * 100 * US
        builder.step(number, begin, 100 * US)
        builder.line(FILE, 1, "f", begin, 90 * US).line(FILE, 2, "f", begin + 90 * US, 10 * US)
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        builder.annotation(name, begin + 5 * US, 80 * US)
        builder.kernel("gemm", begin + 92 * US, begin + 95 * US, 5 * US, launch_duration=US)
    profile = profile_of(builder)
    assert profile.critical.data_ns == 3 * 80 * US
    assert times(by_line(profile)[1]) == {"data_ns": 3 * 80 * US, "cpu_ns": 3 * 10 * US}
    assert by_line(profile)[1].would_shorten_ns == 3 * 90 * US


def test_a_line_beside_another_that_is_as_long_saves_nothing(profile_of):
    """Two streams run 50 µs each; without one of the two lines the other still holds the step up."""
    builder = TraceBuilder().step(0, 0, 60 * US)
    for line, stream in ((1, 7), (2, 8)):
        builder.line(FILE, line, "f", (line - 1) * 2, 2)
        builder.kernel("gemm", (line - 1) * 2, 4, 50 * US, launch_duration=1, stream=stream)
    builder.line(FILE, 3, "f", 4, 60 * US - 4).runtime("cudaDeviceSynchronize", 4, 50 * US)
    rows = by_line(profile_of(builder))
    assert set(rows) == {1, 3}
    assert times(rows[1]) == {"kernel_ns": 50 * US, "launch_ns": 4}
    # What remains is the launch of the other, which comes 2 ns sooner.
    assert rows[1].would_shorten_ns == 2


def test_a_single_step_has_its_own_part_of_the_path(profile_of):
    builder = device_bound()
    whole = profile_of(builder).critical
    steps = [profile_of(builder, step=number).critical for number in range(3)]
    for kind in (*KINDS, "critical_ns", "steps", "evaluated_steps"):
        assert sum(getattr(one, kind) for one in steps) == getattr(whole, kind)
    saved = [row.would_shorten_ns for one in steps for row in one.lines if row.line == 1]
    assert sum(saved) == by_line(profile_of(builder))[1].would_shorten_ns


def test_without_spans_of_synchronisation_a_stream_that_was_told_to_wait_waited_for_what_ended_last(profile_of):
    builder = TraceBuilder().step(0, 0, 200 * US)
    builder.line(FILE, 1, "f", 0, 10 * US).kernel("gemm", US, 2 * US, 50 * US, launch_duration=US)
    builder.line(FILE, 2, "f", 10 * US, 20 * US).runtime("cudaStreamWaitEvent", 12 * US, US)
    builder.kernel("ncclKernel_AllReduce", 15 * US, 53 * US, 100 * US, launch_duration=US, stream=20)
    builder.line(FILE, 3, "f", 30 * US, 170 * US).runtime("cudaStreamSynchronize", 31 * US, 125 * US)
    path = profile_of(builder).critical
    assert times(path) == {
        "cpu_ns": US + 44 * US, "launch_ns": US, "kernel_ns": 50 * US, "gap_ns": US, "communication_ns": 100 * US,
        "return_ns": 3 * US,
    }  # fmt: skip


def three_streams() -> TraceBuilder:
    """The CPU queues 100 µs of calls and waits; the device works for 1 ms.

    Two streams wait for the first one by calls that stand together, before a launch to each; the first one then waits
    for both. The second launch is the longer one.
    """
    builder = TraceBuilder().step(0, 0, 1100 * US).line(FILE, 1, "f", 0, 100 * US)
    start = 5 * US
    for number in range(5):
        at = US + number * 20 * US
        if number:
            builder.runtime("cudaStreamWaitEvent", at, US).runtime("cudaStreamWaitEvent", at + US, US)
        builder.kernel("gemm", at + 3 * US, start, 98 * US, launch_duration=US)
        builder.runtime("cudaStreamWaitEvent", at + 5 * US, US).runtime("cudaStreamWaitEvent", at + 7 * US, US)
        builder.kernel("broadcast", at + 9 * US, start + 100 * US, 40 * US, launch_duration=US, stream=24)
        builder.kernel("ncclKernel_AllReduce", at + 11 * US, start + 100 * US, 98 * US, launch_duration=US, stream=20)
        start += 200 * US
    builder.line(FILE, 2, "f", 100 * US, 1000 * US).runtime("cudaStreamSynchronize", 101 * US, 903 * US)
    return builder


def test_launches_behind_the_same_calls_all_wait_so_that_the_device_is_the_path(profile_of):
    path = profile_of(three_streams()).critical
    assert path.kernel_ns == path.communication_ns == 5 * 98 * US
    assert path.cpu_ns < 110 * US
    assert path.launch_ns == US


def test_two_launches_behind_one_call_may_both_wait(profile_of):
    """The call of the second stream stands before the launch of the first, which its own stream explains."""
    builder = TraceBuilder().step(0, 0, 500 * US).line(FILE, 1, "f", 0, 500 * US)
    builder.kernel("gemm", US, 5 * US, 100 * US, launch_duration=US)
    builder.runtime("cudaStreamWaitEvent", 10 * US, US)
    builder.kernel("gemm", 12 * US, 107 * US, 50 * US, launch_duration=US)
    builder.kernel("ncclKernel_AllReduce", 15 * US, 158 * US, 200 * US, launch_duration=US, stream=20)
    builder.runtime("cudaDeviceSynchronize", 20 * US, 345 * US)
    path = profile_of(builder).critical
    assert (path.kernel_ns, path.communication_ns) == (150 * US, 200 * US)


def test_a_delay_far_above_the_least_is_no_launching(profile_of):
    builder = TraceBuilder().step(0, 0, 2000 * US).line(FILE, 1, "f", 0, 2000 * US)
    builder.kernel("gemm", US, 1500 * US, 100 * US, launch_duration=US)
    builder.runtime("cudaDeviceSynchronize", 5 * US, 1600 * US)
    builder.kernel("add", 1700 * US, 1705 * US, 50 * US, launch_duration=US)
    builder.runtime("cudaDeviceSynchronize", 1710 * US, 50 * US)
    path = profile_of(builder).critical
    assert path.kernel_ns == 150 * US
    assert path.launch_ns < 100 * US
    assert path.gap_ns > 1400 * US


def test_a_launch_that_is_late_while_another_stream_works_waited_for_it(profile_of):
    """A replayed graph, or another thread, may wait with no call in the trace."""
    builder = TraceBuilder().step(0, 0, 1000 * US).line(FILE, 1, "f", 0, 1000 * US)
    builder.kernel("gemm", US, 5 * US, 500 * US, launch_duration=US)
    builder.kernel("ncclKernel_AllReduce", 10 * US, 508 * US, 300 * US, launch_duration=US, stream=20)
    builder.runtime("cudaDeviceSynchronize", 20 * US, 795 * US)
    path = profile_of(builder).critical
    assert (path.kernel_ns, path.communication_ns) == (500 * US, 300 * US)


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaFree"])
def test_a_call_waits_for_the_stream_whose_work_ends_as_it_returns(profile_of, name):
    """The thread launched to another stream last; that one was done long before."""
    builder = TraceBuilder().step(0, 0, 1000 * US).line(FILE, 1, "f", 0, 1000 * US)
    builder.kernel("gemm", US, 5 * US, 700 * US, launch_duration=US)
    builder.kernel("copy_kernel", 10 * US, 15 * US, 10 * US, launch_duration=US, stream=20)
    builder.runtime(name, 30 * US, 680 * US)
    path = profile_of(builder).critical
    assert path.kernel_ns == 700 * US
    assert path.cpu_ns < 300 * US


def test_what_a_fused_kernel_has_of_each_line_is_on_the_path_as_it_is_divided():
    """Parts of a piece follow each other; a stretch of the piece has what lies in it."""
    parts = PieceParts(
        piece=np.array([0, 0, 1]),
        start=np.array([10, 30, 60]),
        end=np.array([30, 60, 80]),
        location=np.array([4, 5, 4]),
        begin=np.array([0, 2, 3]),
    )
    assert parts.of_line(4, 2).tolist() == [20, 20]
    assert (parts.within(0, 4, 20, 50), parts.within(0, 5, 20, 50), parts.within(1, 5, 0, 99)) == (10, 20, 0)
    location, length = parts.between(np.array([0, 1]), np.array([20, 70]), np.array([50, 75]))
    assert (location.tolist(), length.tolist()) == ([4, 5, 4], [10, 20, 5])


def test_ranks_have_a_path_each_and_their_sums_are_shown(profile_of):
    one, other = profile_of(device_bound()), profile_of(device_bound(2))
    one.trace.ranks, other.trace.ranks = [0], [1]
    merged = merge_profiles([one, other])
    assert merged.critical.steps == 5
    assert merged.critical.critical_ns == one.critical.critical_ns + other.critical.critical_ns
    assert by_line(merged)[1].would_shorten_ns == sum(by_line(rank)[1].would_shorten_ns for rank in (one, other))
    other.critical.lines[0].would_shorten_ns = None
    assert by_line(merge_profiles([one, other]))[1].would_shorten_ns == by_line(one)[1].would_shorten_ns


@pytest.mark.parametrize("junk", ["x", -5, 1.5, None, [1], {"a": 1}, 2**70, True])
def test_spans_of_synchronisation_with_junk_in_them_do_no_harm(profile_of, junk):
    builder = run_program(3).builder
    for event in builder.events:
        if event.get("cat") == "cuda_sync":
            event["args"] |= {"wait_on_stream": junk, "wait_on_cuda_event_record_corr_id": junk, "stream": junk}
    path = profile_of(builder).critical
    assert sum(times(path).values()) == path.critical_ns > 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 100])
def test_steps_that_are_evaluated_are_evenly_spread(count):
    order = tables._spread(count)
    assert sorted(order) == list(range(count))
    assert order[:1] == [count // 2] * bool(count)


@pytest.mark.parametrize("thread", [103, 101])
def test_a_thread_of_a_pool_that_has_no_task_is_no_cpu_time(profile_of, thread):
    """The one that launches most is the training thread, whose Python need not be recorded."""
    builder = TraceBuilder().op("aten::empty", 0, 10 * US, tid=101).op("aten::empty", 0, 10 * US, tid=103)
    for at in range(3):
        builder.kernel("small", 2 * US * at, 20 * US + at * US, US)
    builder.op("aten::cat", 100_000 * US, 1_000 * US, tid=thread)
    builder.op("aten::mm", 101_500 * US, 2_500 * US, tid=thread)  # half a millisecond later: it may be Python
    builder.kernel("gemm", 103_000 * US, 103_020 * US, 10_000 * US, launch_duration=US, tid=thread)
    path = profile_of(builder).critical
    idle_us = (100_000 - 10) * (thread == 103)
    assert times(path) == {
        key: us * US
        for key, us in {"cpu_ns": 103_000 - idle_us, "launch_ns": 20, "kernel_ns": 10_000, "gap_ns": idle_us}.items()
        if us
    }


def test_without_steps_the_path_ends_with_what_ends_last(profile_of):
    builder = TraceBuilder().op("aten::mm", 0, 10 * US)
    builder.kernel("gemm", 2 * US, 7 * US, 93 * US, launch_duration=US)
    assert times(profile_of(builder).critical) == {"cpu_ns": 2 * US, "launch_ns": 5 * US, "kernel_ns": 93 * US}
    builder.op("aten::add", 105 * US, 5 * US)
    assert times(profile_of(builder).critical) == {"cpu_ns": 110 * US}


def test_a_first_launch_that_is_very_late_is_no_launching(profile_of):
    """What the device did before the trace begins it does not tell."""
    builder = TraceBuilder().op("aten::mm", 0, 10 * US)
    builder.kernel("gemm", 2 * US, 150_000 * US, 100 * US, launch_duration=US)
    path = profile_of(builder).critical
    assert times(path) == {
        "cpu_ns": 2 * US, "launch_ns": 1_005 * US, "gap_ns": (150_000 - 1_007) * US, "kernel_ns": 100 * US,
    }  # fmt: skip
