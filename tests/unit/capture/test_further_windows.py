"""When a second window opens: at long steps that come regularly, and where steps get longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from deepscope.capture.whole_run import further_windows
from deepscope.capture.whole_run.further_windows import GROWN_STEPS, SecondWindow
from deepscope.trace.format.header import Spread, UnrecordedStepTimes

MS = 1_000_000


class Recorder:
    """Notes what it is asked; at rest once all its steps are over."""

    def __init__(self, steps: int) -> None:
        self.left, self.asked = steps + 1, [f"{steps} steps"]

    @property
    def traces(self) -> list[Path]:
        return [Path("trace")] if not self.left and "discard" not in self.asked else []

    @property
    def is_at_rest(self) -> bool:
        return self.left == 0

    def start(self) -> None:
        self.asked.append("start")

    def step(self) -> None:
        self.left -= 1

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")

    def stop(self, *, complete: bool = True) -> None:
        self.asked.append("stop")

    def discard(self) -> None:
        self.asked.append("discard")

    def wait(self) -> bool:
        return True


class Run:
    """A run whose first window had three steps of `recorded_ms`; the steps behind it follow."""

    def __init__(self, *, recorded_ms: float = 5, works_elsewhere: bool = False) -> None:
        self.recorders: list[tuple[int, Recorder]] = []
        """The number of steps that have ended as each one was made."""
        self.ended = 0
        first = UnrecordedStepTimes(3, Spread(int(recorded_ms * MS)))
        self.window = SecondWindow(self._make, lambda: True, lambda: first, lambda: works_elsewhere)
        self.window.follow()

    def _make(self, steps: int) -> Recorder:
        self.recorders.append((self.ended, Recorder(steps)))
        return self.recorders[-1][1]

    def steps(self, lengths_ms: Iterable[float]) -> Run:
        for length_ms in lengths_ms:
            self.ended += 1
            self.window.end_step(int(length_ms * MS))
        return self


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """How the thread's CPU time goes on, in ms."""
    now = 0.0

    def go_on(ms: float) -> None:
        nonlocal now
        now += ms

    monkeypatch.setattr(further_windows, "thread_time_ns", lambda: int(now * MS))
    return go_on


def rolled_out(steps: int, every: int, *, at: int = 3, long_ms: float = 60) -> list[float]:
    return [long_ms if number % every == at else 5.0 for number in range(steps)]


@pytest.mark.parametrize("every", [2, 5, 8, 40])
def test_a_whole_period_is_recorded_that_begins_with_its_long_step(every: int) -> None:
    run = Run().steps(rolled_out(every * 12, every, at=1, long_ms=30 * every))
    [(ended, recorder)] = run.recorders
    assert recorder.asked == [f"{every} steps", "start"]
    first_recorded = ended + 1  # behind the one that warms up
    assert first_recorded % every == 1
    assert run.window.traces == [Path("trace")]


@pytest.mark.parametrize(
    "lengths",
    [
        [5.0] * 300,
        rolled_out(300, 8, long_ms=12),  # 12 % of the time
        [60.0 if number in {9, 20, 28, 41, 47, 70} else 5.0 for number in range(300)],  # whatever held them up
        rolled_out(300, 70, long_ms=3_000),  # too long a period
        [60.0 * (1 + number // 8) if number % 8 == 3 else 5.0 for number in range(40)],  # no two alike
    ],
    ids=["alike", "small", "irregular", "long", "unlike"],
)
def test_no_window_opens_for(lengths: list[float]) -> None:
    assert not Run().steps(lengths).recorders


def test_no_window_opens_where_the_first_one_had_a_long_step() -> None:
    assert not Run(recorded_ms=(60 + 5 + 5) / 3).steps(rolled_out(200, 8)).recorders


def with_evaluations(steps: int, *, at: int) -> Run:
    """A run of periods of eight steps, the fourth of each long, with an evaluation behind one of them."""
    run = Run()
    for number, length_ms in enumerate(rolled_out(steps, 8)):
        run.steps([length_ms])
        if number % 8 == at:
            run.window.pause()
            run.window.resume()
    return run


def test_a_window_that_an_evaluation_cuts_is_not_kept_and_another_one_is_tried_once() -> None:
    run = with_evaluations(400, at=6)
    assert [recorder.asked[2:] for _, recorder in run.recorders] == [["discard", "stop"]] * 2
    assert not run.window.traces


def test_an_evaluation_before_the_long_step_leaves_the_window_to_begin_behind_it() -> None:
    run = with_evaluations(200, at=2)
    [(_, recorder)] = run.recorders
    assert recorder.asked[2:4] == ["pause", "resume"]
    assert "discard" not in recorder.asked


def test_a_window_in_which_the_run_ends_is_not_kept() -> None:
    run = Run()
    lengths = iter(rolled_out(400, 8))
    while not run.recorders:
        run.steps([next(lengths)])
    run.steps([5.0, 60.0])
    run.window.stop()
    assert run.recorders[0][1].asked[2:] == ["discard", "stop"]


@pytest.mark.parametrize("is_own", [True, False])
def test_steps_that_grow_are_recorded_where_the_threads_own_work_does(
    is_own: bool, cpu: Callable[[float], None]
) -> None:
    run = Run()
    for number in range(120):
        length_ms = 5 * 1.02**number
        cpu(length_ms if is_own else 5)
        run.steps([length_ms])
    assert [recorder.asked[0] for _, recorder in run.recorders] == ([f"{GROWN_STEPS} steps"] if is_own else [])


def test_steps_that_grow_on_a_device_are_recorded(cpu: Callable[[float], None]) -> None:
    run = Run(works_elsewhere=True).steps(5 * 1.02**number for number in range(120))
    assert [recorder.asked[0] for _, recorder in run.recorders] == [f"{GROWN_STEPS} steps"]
