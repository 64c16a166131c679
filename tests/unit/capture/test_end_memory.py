"""A window ends while there still is the memory to end it: torch takes several times what it holds of it."""

import os

import pytest

from deepscope.capture.machine_use import EndMemory
from deepscope.capture.options import RecordingOptions
from deepscope.capture.schedule import WHOLE_BLOCK, Plan, Schedule, StepAction
from machine_folders import GIB, write

PAGES = GIB // os.sysconf("SC_PAGE_SIZE")
FREE = f"MemTotal: 1 kB\nMemAvailable: {20 * GIB >> 10} kB\n"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def grown(tmp_path):
    """The shortage where a process of 3 GiB, 2 of them files that are mapped, has grown to so many, a second later."""

    def shortage(gibibytes: float, mapped: float = 2, *, after_s: float = 1, processes: int = 1):
        clock = Clock()
        write(tmp_path, {"proc/meminfo": FREE, "proc/self/statm": f"0 {3 * PAGES} {2 * PAGES} 0 0 0 0\n"})
        memory = EndMemory(processes, root=tmp_path, clock=clock)
        write(tmp_path, {"proc/self/statm": f"0 {int(gibibytes * PAGES)} {int(mapped * PAGES)} 0 0 0 0\n"})
        clock.now = after_s
        return memory.shortage()

    return shortage


def test_half_of_what_is_free_is_left_to_others(grown):
    assert grown(3.9) is None
    assert grown(4.5) == (15 * GIB, 20 * GIB)


def test_files_that_are_mapped_are_no_memory_of_torchs(grown):
    assert grown(9, mapped=8) is None


def test_the_processes_of_a_host_end_at_once(grown):
    assert grown(3.9, processes=2) == (pytest.approx(9 * GIB, rel=1e-3), 10 * GIB)


def test_a_step_looks_once_a_second(grown):
    assert grown(9, after_s=0.9) is None


def test_a_process_that_shrank_has_room(grown):
    assert grown(2) is None


def test_where_nothing_is_told_nothing_is_limited(tmp_path):
    clock = Clock()
    memory = EndMemory(root=tmp_path, clock=clock)
    clock.now = 5
    assert memory.shortage() is None


def at(schedule: Schedule, step: int) -> Plan:
    plan = Plan(schedule)
    while plan.step < step:
        plan = plan.next()
    return plan


def test_the_next_cycle_is_recorded_again():
    plan = at(Schedule.of(RecordingOptions(wait=1, warmup=1, active=5, repeat=2), 20), 3).broken_off()
    actions = []
    while not plan.is_over:
        plan = plan.next()
        actions.append((plan.step, plan.action))
    assert actions == [
        *((step, StepAction.PASS) for step in range(4, 8)),
        (8, StepAction.WARM_UP),
        *((step, StepAction.RECORD) for step in range(9, 13)),
        (13, StepAction.RECORD_LAST),
    ]


@pytest.mark.parametrize("schedule", [WHOLE_BLOCK, Schedule.of(RecordingOptions(time=60.0))], ids=["whole", "time"])
def test_without_cycles_it_is_over(schedule):
    plan = at(schedule, 3).broken_off()
    assert (plan.moves, plan.is_over, plan.next().moves) == ((), True, ())
