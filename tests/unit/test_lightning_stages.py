"""Windows of a stage, recorded by a recorder that only counts."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deepscope.capture.options import RecordingOptions
from deepscope.capture.schedule import Move, Plan, Schedule
from deepscope.lightning.stages import StageWindows


class CountingRecorder:
    """Follows its plan as the real one does; `windows` holds, for each window, the calls of `step` it lasted."""

    def __init__(self, plan: Plan, first_step: int) -> None:
        self.plan = plan
        self.first_step = first_step
        self.is_open = False
        self.moves: list[Move] = []
        self.completed: list[bool] = []
        self.windows: list[int] = []
        self.profile = None

    @property
    def recording(self) -> bool:
        return self.is_open and self.plan.action.is_recorded

    @property
    def is_stopped(self) -> bool:
        return not self.is_open or self.plan.is_over

    @property
    def traces(self) -> list[Path]:
        return [Path(str(index)) for index in range(len(self.windows))]

    def start(self) -> None:
        self.is_open = True
        self.step()

    def step(self) -> None:
        self.plan = self.plan.next()
        self.moves += self.plan.moves
        if Move.OPEN in self.plan.moves:
            self.windows.append(0)
        if self.recording:
            self.windows[-1] += 1

    def stop(self, *, complete: bool = True) -> None:
        self.is_open = False
        self.completed.append(complete)

    patience_s = None

    def wait(self, timeout_s: float | None = None) -> bool:
        return True

    def push(self, name: str) -> None: ...
    def pop(self, name: str) -> None: ...


def stage(total: int | None = None, **options: int) -> StageWindows:
    return StageWindows(Plan(Schedule.of(RecordingOptions(**options), total)), CountingRecorder)


def run(windows: StageWindows, batches: int) -> None:
    for _ in range(batches):
        windows.begin_batch()
        windows.end_batch()


def recorded(windows: StageWindows) -> list[int]:
    return [steps for recorder in windows.recorders for steps in recorder.windows]


def test_steps_have_the_numbers_of_the_stages_own_batches() -> None:
    windows = stage(wait=0, warmup=0, active=4, repeat=0)
    for batches in (3, 5, 2):
        run(windows, batches)
        windows.suspend()
    assert [recorder.first_step for recorder in windows.recorders] == [0, 3, 8]


def test_the_schedule_counts_batches() -> None:
    windows = stage()
    run(windows, 10)
    windows.suspend()
    assert recorded(windows) == [3]
    assert windows.finished


def test_a_batch_may_begin_twice() -> None:
    windows = stage(wait=0, warmup=0, active=2)
    for _ in range(2):
        windows.begin_batch()
        windows.begin_batch()
        windows.end_batch()
    windows.suspend()
    assert recorded(windows) == [2]


def test_once_finished_no_recorder_is_made() -> None:
    windows = stage(wait=0, warmup=0, active=1)
    run(windows, 2)
    windows.suspend()
    run(windows, 5)
    windows.suspend()
    assert len(windows.recorders) == 1


def test_a_window_that_another_stage_cuts_short_is_all_of_its_cycle() -> None:
    windows = stage(active=3)
    run(windows, 4)  # wait, warmup, two active ones
    windows.suspend()
    run(windows, 10)
    windows.suspend()
    assert recorded(windows) == [2]


def test_the_next_cycle_follows_a_window_cut_short() -> None:
    windows = stage(wait=1, warmup=1, active=3, repeat=2)
    run(windows, 3)  # one active batch
    windows.suspend()
    run(windows, 20)
    windows.suspend()
    assert recorded(windows) == [1, 3]


def test_waiting_goes_on_where_another_stage_came_in_between() -> None:
    windows = stage(wait=3, warmup=1, active=2)
    for _ in range(3):
        run(windows, 2)
        windows.suspend()
    assert recorded(windows) == [2]


def test_a_stretch_that_goes_on_records_no_batch_in_reserve() -> None:
    windows = stage(wait=5)
    run(windows, 2)
    windows.suspend()
    run(windows, 1)
    assert [Move.OPEN_IN_RESERVE in recorder.moves for recorder in windows.recorders] == [True, False]


def test_the_epochs_last_batch_closes_the_window_that_it_fills() -> None:
    windows = stage(wait=0, warmup=0, active=2)
    run(windows, 2)
    assert windows.recorders[-1].recording
    windows.end_epoch()
    assert not windows.recorders[-1].recording


def test_a_window_that_the_epoch_does_not_fill_stays_open() -> None:
    windows = stage(wait=0, warmup=0, active=3)
    run(windows, 2)
    windows.end_epoch()
    assert windows.recorders[-1].recording
    run(windows, 1)
    windows.end_epoch()
    assert recorded(windows) == [3]


def test_an_interrupted_window_is_marked() -> None:
    windows = stage(wait=0, warmup=0, active=3)
    windows.begin_batch()
    windows.suspend(complete=False)
    assert windows.recorders[0].completed == [False]


def test_a_known_length_makes_the_schedule_give_way() -> None:
    windows = stage(total=1)
    run(windows, 1)
    windows.suspend()
    assert recorded(windows) == [1]


def test_endless_cycles_never_finish() -> None:
    windows = stage(wait=1, warmup=0, active=1, repeat=0)
    run(windows, 9)
    assert not windows.finished
    assert recorded(windows) == [1, 1, 1, 1]


@given(
    stretches=st.lists(st.integers(1, 7), min_size=1, max_size=12),
    numbers=st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3)),
)
def test_no_cycle_yields_two_windows_and_none_is_longer_than_active(
    stretches: list[int], numbers: tuple[int, int, int, int, int]
) -> None:
    wait, warmup, active, repeat, skip_first = numbers
    windows = stage(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
    for batches in stretches:
        run(windows, batches)
        windows.suspend()
    found = recorded(windows)
    assert len(found) <= repeat
    assert all(1 <= steps <= active for steps in found)
    assert sum(found) <= sum(stretches)
    if sum(stretches) >= skip_first + wait + warmup + active + sum(stretches[:-1]):
        assert found
