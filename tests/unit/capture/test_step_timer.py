"""How long steps take, recorded and plain."""

from __future__ import annotations

import statistics
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepscope.capture import step_timer as module
from deepscope.capture.step_timer import StepKind, StepTimer
from deepscope.trace.format.header import Spread, UnrecordedStepTimes

PLAIN, RECORDED, OTHER = StepKind.PLAIN, StepKind.RECORDED, StepKind.OTHER


class Clocks:
    """The wall's clock and the thread's, set by the test: a step of n ns is on the CPU for half of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall = 1_000
        monkeypatch.setattr(module, "perf_counter_ns", lambda: self.wall)
        monkeypatch.setattr(module, "thread_time_ns", lambda: self.wall // 2)

    def run(self, timer: StepTimer, kind: StepKind, *lengths: int) -> None:
        """Steps of these lengths, after a second in which the recorder was at work."""
        self.wall += 1_000_000_000
        timer.begin(kind)
        for length in lengths:
            self.wall += length
            timer.next(kind)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_plain_and_recorded_steps_stand_apart_without_the_first_and_those_of_a_warm_up(clocks: Clocks) -> None:
    timer = StepTimer()
    plain = [10, 20, 30, 40, 100]
    clocks.run(timer, PLAIN, 5_000, *plain[:2])
    clocks.run(timer, OTHER, 7_000)
    clocks.run(timer, RECORDED, 300, 300)
    assert timer.recorded == UnrecordedStepTimes(2, Spread(300, (300, 300, 300)), Spread(150, (150, 150, 150)))
    assert timer.plain is None  # two are too few
    clocks.run(timer, PLAIN, *plain[2:])
    assert timer.plain == UnrecordedStepTimes(5, Spread(40, (20, 30, 40)), Spread(20, (10, 15, 20)))
    assert timer.plain.wall.mean_ns == statistics.mean(plain)


def test_a_step_in_which_a_trace_is_written_or_on_another_thread_is_not_kept(clocks: Clocks) -> None:
    timer = StepTimer()
    clocks.run(timer, PLAIN, 1, *[10] * 5)
    clocks.wall += 900
    timer.next(OTHER)  # writing has begun
    clocks.wall += 900
    timer.next(PLAIN)  # writing has ended
    clocks.wall += 900
    thread = threading.Thread(target=timer.next, args=(PLAIN,))
    thread.start()
    thread.join()
    assert timer.plain == UnrecordedStepTimes(5, Spread(10, (10, 10, 10)), Spread(5, (5, 5, 5)))


def test_a_trace_waits_for_plain_steps_behind_its_window_and_no_longer(clocks: Clocks) -> None:
    timer = StepTimer()
    clocks.run(timer, RECORDED, 1, 300)
    later = timer.plain_later()
    found: list[UnrecordedStepTimes | None] = []
    thread = threading.Thread(target=lambda: found.append(later()))
    thread.start()
    clocks.run(timer, PLAIN, *[10] * 4)
    assert timer.is_awaited
    assert not found
    clocks.run(timer, PLAIN, 10)
    thread.join(60)
    assert found == [UnrecordedStepTimes(5, Spread(10, (10, 10, 10)), Spread(5, (5, 5, 5)))]
    assert not timer.is_awaited


@pytest.mark.parametrize("how", ["released", "ended", "another window ended", "steps are long", "enough before"])
def test_nothing_waits_where_somebody_waits_for_the_trace_or_no_step_will_come(
    clocks: Clocks, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 1e9)
    timer = StepTimer()
    clocks.run(timer, PLAIN, 1, *[10] * (5 if how == "enough before" else 3))
    clocks.run(timer, RECORDED, 5_000_000_000 if how == "steps are long" else 300)
    later = timer.plain_later()
    if how == "released":
        timer.release()
    elif how == "ended":
        timer.end()
    elif how == "another window ended":
        timer.plain_later()
    monkeypatch.setattr(module, "LONGEST_S", 1e9)
    with ThreadPoolExecutor(1) as saver:
        answer = saver.submit(later).result(60)  # at once
    assert (answer is not None) == (how == "enough before")


def test_the_end_of_the_training_thread_ends_the_wait() -> None:
    timer, waits = StepTimer(), []
    training = threading.Thread(target=lambda: waits.append(timer.plain_later()))
    training.start()
    training.join()
    assert waits[0]() is None


def test_the_training_thread_itself_never_waits_for_its_own_steps(clocks: Clocks) -> None:
    timer = StepTimer()
    clocks.run(timer, RECORDED, 1, 300)
    assert timer.plain_later()() is None  # at once: nobody else makes a step


def test_a_pause_in_which_no_step_ends_ends_the_wait(clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1_000, 1))
    monkeypatch.setattr(module, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(module, "LONGEST_S", 1e9)
    monkeypatch.setattr(module, "_EVERY_S", 0.0)
    timer, found = StepTimer(), []
    clocks.run(timer, RECORDED, 1, 300)
    later = timer.plain_later()
    thread = threading.Thread(target=lambda: found.append(later()), daemon=True)
    thread.start()
    thread.join(60)
    assert found == [None]
