"""Where the training thread is while no step ends, as samples by a clock of the test's own tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deepscope.capture.lines import UserCode
from deepscope.capture.whole_run import pause_sampler, run_timer
from deepscope.capture.whole_run.pause_sampler import PauseSampler
from deepscope.capture.whole_run.run_timer import RunTimer
from deepscope.trace.format.run_account import PauseAccount, RunPartName

MS = 1_000_000
HERE = Path(__file__)


class Run:
    """A run whose sampler wakes as the clock goes on; the thread that is sampled is in a function of the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        for module in (pause_sampler, run_timer):
            monkeypatch.setattr(module, "perf_counter_ns", lambda: self.now_ns)
        self.timer = RunTimer()
        self.thread = threading.get_ident()
        self.sampler = PauseSampler(self.timer, lambda: self.thread, UserCode(HERE.parent))
        self.sampler._before_ns = self.sampler._parts_ns()

    def pass_ms(self, time_ms: int) -> None:
        for _ in range(time_ms // 25):
            self.now_ns += 25 * MS
            self.sampler._wake()
        self.now_ns += time_ms % 25 * MS

    def steps(self, count: int, time_ms: int = 10) -> None:
        for _ in range(count):
            self.timer.turn_to("steps")
            self.pass_ms(time_ms)
            self.timer.turn_to("rest")
            self.timer.count("steps")
        self.sampler._wake()

    def found(self) -> dict[RunPartName, PauseAccount]:
        return {one.part: one for one in self.sampler.account()}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch)


@contextmanager
def thread_in(run: Run, function: Callable[[threading.Event], object]) -> Iterator[None]:
    """Another thread is in a function while the block runs, and is the one that is sampled."""
    done, mine = threading.Event(), run.thread
    thread = threading.Thread(target=function, args=(done,))
    thread.start()
    assert thread.ident is not None
    run.thread = thread.ident
    try:
        yield
    finally:
        run.thread = mine
        done.set()
        thread.join()


def consolidate(done: threading.Event) -> None:
    done.wait()


def evaluate(done: threading.Event) -> None:
    consolidate(done)


def validate(done: threading.Event) -> None:
    done.wait()


def save(done: threading.Event) -> None:
    done.wait()


def each(done: threading.Event, number: int) -> None:
    (consolidate, validate, save)[number](done)


def line_of(function: Callable[..., object]) -> int:
    return function.__code__.co_firstlineno + 1


def test_nothing_is_noted_while_steps_follow_each_other(run: Run) -> None:
    run.steps(50)
    run.steps(5, 35)
    assert run.found() == {}


def test_what_lies_between_steps_is_at_its_line_with_all_of_its_time(run: Run) -> None:
    for _ in range(3):
        run.steps(10)
        with thread_in(run, consolidate):
            run.pass_ms(200)
        run.timer.turn_to("rest")
    run.steps(10)
    (one,) = run.found().values()
    assert (one.part, one.line, one.function, one.times) == ("rest", line_of(consolidate), "consolidate", 3)
    assert one.file == str(HERE)
    assert one.time_ns == pytest.approx(600 * MS, abs=30 * MS)


def test_a_pause_counts_for_the_part_that_its_time_was_given_to(run: Run) -> None:
    run.steps(10)
    run.timer.turn_to("rest")
    with thread_in(run, evaluate):
        run.pass_ms(300)
    run.timer.turn_to("rest")
    run.timer.move("rest", "evaluation", run.timer.so_far_ns("rest"))
    run.steps(1)
    assert list(run.found()) == ["evaluation"]


def test_the_innermost_line_that_most_went_through_is_named(run: Run) -> None:
    run.steps(10)
    for function in (evaluate, consolidate, evaluate):
        with thread_in(run, function):
            run.pass_ms(200)
    one = run.found()["rest"]
    assert one.line == line_of(consolidate)
    assert one.time_ns == pytest.approx(400 * MS, abs=30 * MS)


def test_a_line_is_named_where_what_it_calls_differs(run: Run) -> None:
    run.steps(10)
    for number in range(3):
        with thread_in(run, lambda done, number=number: each(done, number)):
            run.pass_ms(200)
    one = run.found()["rest"]
    assert (one.function, one.line) == ("each", line_of(each))


def test_steps_as_long_as_usual_ones_are_no_pause(run: Run) -> None:
    run.steps(5, 1000)
    assert run.found().get("steps") is None or run.found()["steps"].time_ns <= 1100 * MS


def test_code_of_libraries_alone_has_no_line(run: Run) -> None:
    run.steps(10)
    with thread_in(run, threading.Event.wait):
        run.pass_ms(200)
    assert run.found() == {}


def test_the_thread_ends_when_it_is_stopped() -> None:
    sampler = PauseSampler(RunTimer(), threading.get_ident, UserCode(HERE.parent))
    sampler.start()
    (thread,) = [one for one in threading.enumerate() if one.name == "deepscope-pauses"]
    sampler.stop()
    thread.join(5)
    assert not thread.is_alive()
