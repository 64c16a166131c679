"""Waiting for other ranks on the CPU (gloo) is communication on the critical path, work beside it is not."""

from __future__ import annotations

from collections.abc import Callable

from deepscope.records import Profile
from trace_builder import TraceBuilder

US = 1_000
GLOO = 105


def by_line(profile: Profile) -> dict[int, tuple[int, int]]:
    """Line → CPU time and communication on the path, in microseconds."""
    return {row.line: (row.cpu_ns // US, row.communication_ns // US) for row in profile.critical.lines}


def test_between_operators_a_thread_waits_for_the_span_that_ends_meanwhile(
    profile_of: Callable[..., Profile],
) -> None:
    builder = TraceBuilder().step(1, 0, 1000 * US)
    builder.line("/t.py", 1, "main", 0, 300 * US).op("aten::mm", 0, 200 * US)
    builder.line("/t.py", 2, "main", 300 * US, 700 * US).op("c10d::allreduce_", 300 * US, 20 * US)
    builder.op("aten::add", 900 * US, 50 * US)
    builder.annotation("gloo:all_reduce", 310 * US, 560 * US, tid=GLOO)
    profile = profile_of(builder)
    # Line 2: 10 us before the span, 30 us from its end to the operator, 50 in it and 50 behind it.
    assert by_line(profile) == {1: (300, 0), 2: (140, 560)}
    assert profile.critical.communication_ns == 560 * US
    own = profile.own_times
    assert own is not None
    assert (own.wall_ns, own.communication_ns) == ([1000 * US], [560 * US])
    assert {profile.lines[row.line].line: (row.operator_ns // US, row.python_ns // US) for row in own.lines} == {
        1: (200, 100),
        2: (50, 90),
    }


def test_what_a_thread_computes_or_sleeps_while_data_travels_is_its_own(profile_of: Callable[..., Profile]) -> None:
    builder = TraceBuilder().step(1, 0, 1000 * US)
    builder.line("/t.py", 1, "main", 0, 20 * US).op("c10d::allreduce_", 0, 10 * US)
    builder.line("/t.py", 2, "main", 20 * US, 380 * US).op("aten::mm", 20 * US, 380 * US)
    builder.line("/t.py", 3, "main", 400 * US, 100 * US)
    builder.line("/t.py", 4, "main", 500 * US, 500 * US)
    builder.annotation("gloo:all_reduce", 5 * US, 905 * US, tid=GLOO)
    # It ends while line 4 waits for it: line 3 did not.
    assert by_line(profile_of(builder)) == {1: (20, 0), 2: (380, 0), 3: (100, 0), 4: (90, 410)}


def test_a_span_that_its_thread_closes_late_was_waited_for(profile_of: Callable[..., Profile]) -> None:
    builder = TraceBuilder().step(1, 0, 1000 * US)
    builder.line("/t.py", 1, "main", 0, 500 * US).op("c10d::allreduce_", 0, 10 * US)
    builder.line("/t.py", 2, "main", 500 * US, 500 * US).op("aten::mm", 500 * US, 500 * US)
    builder.annotation("gloo:all_reduce", 10 * US, 600 * US, tid=GLOO)
    assert by_line(profile_of(builder)) == {1: (10, 490), 2: (500, 0)}


def test_spans_of_a_device_are_launches_and_no_waiting(profile_of: Callable[..., Profile]) -> None:
    builder = TraceBuilder().step(1, 0, 1000 * US).line("/t.py", 1, "main", 0, 1000 * US)
    builder.annotation("nccl:all_reduce", 100 * US, 500 * US)
    assert by_line(profile_of(builder)) == {1: (1000, 0)}
