"""What may not matter: the order of the events in the file, and when it all happened."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from deepscope.records import Profile
from deepscope.report.line_tree import below
from trace_builder import BACKWARD, TraceBuilder

FILE = "/home/me/train.py"


def random_run(seed: int) -> TraceBuilder:
    """Nested lines, operators, launches, waits, memory, modules and a backward pass, no two events alike in time."""
    dice = random.Random(seed)
    builder = TraceBuilder().step(1, 0, 40_000).step(2, 40_000, 60_000)
    clock = iter(range(10, 99_000, 7))
    device_free = 500
    sequence = 0
    made: list[tuple[int, int]] = []

    def work(tid: Any) -> None:
        nonlocal device_free
        at = next(clock)
        kind = dice.choice(["kernel", "kernel", "memcpy", "sync", "memory"])
        if kind == "sync":
            builder.runtime("cudaStreamSynchronize", at, 5, tid=tid)
        elif kind == "memory":
            builder.memory(at, dice.choice([64, 128, -64]), address=dice.randrange(6), tid=tid)
        else:
            start = max(device_free, at) + dice.randrange(200)
            device_free = start + dice.randrange(1, 300)
            stream = dice.choice([7, 8])
            if kind == "memcpy":
                builder.memcpy("HtoD", dice.randrange(99), at, start, device_free - start, tid=tid, stream=stream)
            else:
                name = dice.choice(["gemm", "add", "ncclKernel_AllReduce"])
                builder.kernel(name, at, start, device_free - start, tid=tid, stream=stream)

    def call(depth: int) -> None:
        nonlocal sequence
        begin = next(clock)
        for _ in range(dice.randrange(1, 4)):
            choice = dice.random()
            if depth < 6 and choice < 0.6:
                call(depth + 1)
            elif choice < 0.8:
                at = next(clock)
                work("main")
                sequence += 1
                made.append((sequence, at))
                builder.op(dice.choice(["aten::mm", "aten::add"]), at, next(clock) - at, tid="main", sequence=sequence)
            else:
                work("main")
        builder.line(FILE, dice.randrange(1, 9), "f", begin, next(clock) - begin, tid="main")

    while next(clock) < 30_000:
        call(0)
    for number, at in made:
        begin = next(clock)
        builder.flow(at, begin, tid="main")
        work(BACKWARD)
        builder.backward("MmBackward0", begin, next(clock) - begin, number)
    for event in builder.events:
        if event.get("name", "").startswith("ProfilerStep"):
            event["tid"] = "main"
    return builder


def comparable(profile: Profile) -> dict[str, Any]:
    """All numbers; rows that tie may stand in any order."""
    found = msgspec.to_builtins(profile)
    del found["trace"], found["call_tree"], found["parts"], found["places"]
    found["trees"] = [below(profile, line) for line in range(-1, len(profile.lines))]
    for step in found["steps"]:
        del step["start_ns"]
    for call in found["collective_calls"]:
        call[1] -= call[0]
        call[0] = 0
    for device in found["memory"]["devices"]:
        start = device["curve"][0][0]
        device["peak_at_ns"] -= start
        device["curve"] = [[at - start, *sizes] for at, *sizes in device["curve"]]
    return {k: sorted(v, key=repr) if isinstance(v, list) else v for k, v in found.items()}


quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(st.integers(0, 10_000))
@example(108)  # two kernels of one line tie
def test_the_order_of_events_in_the_file_changes_nothing(profile_of, seed):
    builder = random_run(seed)
    expected = comparable(profile_of(builder))
    random.Random(seed + 1).shuffle(builder.events)
    assert comparable(profile_of(builder)) == expected


@quick
@given(st.integers(0, 10_000), st.integers(1, 10**9))
def test_a_shift_in_time_changes_nothing(profile_of, seed, shift):
    builder = random_run(seed)
    expected = comparable(profile_of(builder))
    for event in builder.events:
        event["ts"] += shift
    assert comparable(profile_of(builder)) == expected


@quick
@given(st.integers(0, 10_000))
def test_everything_sums_to_the_whole(profile_of, seed):
    builder = random_run(seed)
    profile = profile_of(builder)
    rows = [*profile.lines, profile.no_line]
    assert sum(row.self_device_ns for row in rows) == profile.totals.device_ns
    assert sum(row.idle_ns for row in rows) == profile.totals.idle_ns == 100_000 - profile.totals.busy_ns
    assert sum(row.wait_ns for row in rows) == profile.totals.wait_ns
    assert sum(row.peak_bytes for row in rows) == profile.totals.peak_bytes
    steps = [profile_of(builder, step=number) for number in (1, 2)]
    for name in ("self_device_ns", "backward_device_ns", "self_cpu_ns", "total_cpu_ns", "wait_ns", "launches", "calls"):
        for line in profile.lines:
            parts = [getattr(found, name) for step in steps for found in step.lines if found.line == line.line]
            assert sum(parts) == getattr(line, name), name
