"""Python's own time in four parts: on the CPU, waiting for the data loader's workers, blocked, without a core."""

from __future__ import annotations

import random

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def line(builder: TraceBuilder, number: int, start: int, duration: int) -> TraceBuilder:
    return builder.line(FILE, number, "main", start, duration)


def mark(builder: TraceBuilder, at: int, off_cpu_ns: object) -> TraceBuilder:
    return builder.event("python_off_cpu", f"@do:{off_cpu_ns}", at, 1, off_cpu_ns=off_cpu_ns)


def parts(numbers) -> tuple[int, int, int]:
    assert numbers.core_wait_ns == 0
    return numbers.python_cpu_ns, numbers.loader_wait_ns, numbers.blocked_ns


def test_what_a_line_was_off_the_cpu_is_blocked(profile_of, at):
    builder = mark(line(TraceBuilder(), 1, 0, 1_000), 990, 700)
    profile = profile_of(line(builder, 2, 1_000, 500))
    assert parts(at(profile, 1)) == (300, 0, 700)
    assert parts(at(profile, 2)) == (500, 0, 0)


def test_it_belongs_to_the_line_that_was_open_and_not_to_its_callers(profile_of, at):
    builder = line(line(TraceBuilder(), 1, 0, 1_000), 5, 100, 600)
    profile = profile_of(mark(builder, 690, 550))
    assert parts(at(profile, 5)) == (50, 0, 550)
    assert parts(at(profile, 1)) == (400, 0, 0)


def test_what_operators_and_runtime_calls_may_have_waited_is_taken_off_first(profile_of, at):
    builder = line(TraceBuilder(), 1, 0, 1_000).op("aten::mm", 100, 300).runtime("cudaDeviceSynchronize", 500, 200)
    profile = profile_of(mark(builder, 990, 700))
    assert parts(at(profile, 1)) == (300, 0, 200)


def test_inside_a_loader_with_workers_it_waits_for_them(profile_of, at):
    builder = line(TraceBuilder(), 1, 0, 1_000).annotation(WORKERS, 100, 600)
    profile = profile_of(mark(builder, 990, 800))
    assert parts(at(profile, 1)) == (200, 600, 200)
    builder = line(TraceBuilder(), 1, 0, 1_000).annotation(WORKERS.replace("Multi", "Single"), 100, 600)
    assert parts(at(profile_of(mark(builder, 990, 800)), 1)) == (200, 0, 800)


def with_core(numbers) -> tuple[int, int, int]:
    return numbers.python_cpu_ns, numbers.blocked_ns, numbers.core_wait_ns


def test_time_without_a_core_is_neither_work_nor_blocked(profile_of, at):
    profile = profile_of(mark(line(TraceBuilder(), 1, 0, 1_000), 990, "700:600"))
    assert with_core(at(profile, 1)) == (300, 100, 600)
    assert at(profile, 1).why.core_wait_ns == 600


def test_without_a_core_python_and_calls_share_by_their_lengths(profile_of, at):
    # 600 of Python, 400 of an operator, 200 without a core, which may have been in either.
    profile = profile_of(mark(line(TraceBuilder(), 1, 0, 1_000).op("aten::mm", 0, 400), 990, "200:200"))
    assert with_core(at(profile, 1)) == (480, 0, 120)


def test_what_is_longer_than_a_line_was_between_it_and_the_line_before(profile_of, at):
    # The thread lost its core after line 5 had ended and before line 6 began, inside the function that line 1 calls.
    builder = line(line(line(TraceBuilder(), 1, 0, 1_000), 5, 0, 100), 6, 800, 200)
    profile = profile_of(mark(builder, 990, "690:690"))
    assert with_core(at(profile, 6)) == (0, 0, 200)
    assert with_core(at(profile, 1)) == (210, 0, 490)


def test_what_is_longer_than_the_operators_was_pythons(profile_of, at):
    profile = profile_of(mark(line(TraceBuilder(), 1, 0, 1_000).op("aten::mm", 0, 170), 990, "800:800"))
    assert with_core(at(profile, 1)) == (30, 0, 800)


def test_what_is_longer_than_python_was_the_operators(profile_of, at):
    profile = profile_of(mark(line(TraceBuilder(), 1, 0, 1_000).op("aten::mm", 0, 900), 990, "500:500"))
    assert with_core(at(profile, 1)) == (100, 0, 0)


@pytest.mark.parametrize("off_cpu_ns", ["", "x", "-5", "1.5", "9" * 30, "٣", "700:", ":700", "7:x", "1:2:3", 10**15])
def test_a_mark_that_cannot_be_true_is_cut_or_passed_over(profile_of, at, off_cpu_ns):
    cpu_ns, loader_ns, blocked_ns = parts(at(profile_of(mark(line(TraceBuilder(), 1, 0, 1_000), 990, off_cpu_ns)), 1))
    assert (cpu_ns, loader_ns, blocked_ns) in {(1_000, 0, 0), (0, 0, 1_000)}


def test_marks_outside_all_lines_and_on_other_threads_change_nothing(profile_of, at):
    builder = mark(line(TraceBuilder(), 1, 0, 1_000), 5_000, 700)
    builder.event("python_off_cpu", "@do:700", 500, 1, tid=999, off_cpu_ns=700)
    assert parts(at(profile_of(builder), 1)) == (1_000, 0, 0)


def test_a_single_step_has_its_own_marks(profile_of, at):
    builder = TraceBuilder().step(1, 0, 1_000).step(2, 1_000, 1_000)
    mark(line(builder, 1, 0, 1_000), 990, 700)
    mark(line(builder, 1, 1_000, 1_000), 1_990, 100)
    assert parts(at(profile_of(builder), 1)) == (1_200, 0, 800)
    assert parts(at(profile_of(builder, step=2), 1)) == (900, 0, 100)


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_sum_to_pythons_time_whatever_the_marks_say(profile_of, seed):
    chance = random.Random(seed)
    builder = TraceBuilder()
    for number in range(1, 30):
        start, duration = chance.randrange(5_000), chance.randrange(1, 2_000)
        line(builder, number % 7 + 1, start, duration)
        builder.annotation(WORKERS, chance.randrange(5_000), chance.randrange(500))
        builder.op("aten::mm", chance.randrange(5_000), chance.randrange(300))
        mark(builder, chance.randrange(7_000), f"{chance.randrange(3_000)}:{chance.randrange(3_000)}")
    for numbers in profile_of(builder).lines:
        found = numbers.loader_wait_ns, *with_core(numbers)
        assert sum(found) == numbers.python_ns <= numbers.self_cpu_ns
        assert min(found) >= 0
