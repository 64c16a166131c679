"""The windows of one stage of a Trainer, counted in that stage's own batches, whose number is known or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture.on_demand.start import OnDemand, current
from deepscope.capture.schedule import Plan, StepAction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepscope.capture.on_demand.idle_recorder import IdleRecorder, MakeRecorder
    from deepscope.capture.recorder import Recorder


class Stage(Enum):
    """What a Trainer runs; the value stands in the trace and in its file's name."""

    FIT = "fit"
    SANITY_CHECK = "sanity_check"
    VALIDATE = "validate"
    TEST = "test"
    PREDICT = "predict"


class _StageRecorder:
    """What a stage passes on to the recorder of its window."""

    _in_batch = _batch_done = False

    @property
    def _recorder(self) -> Recorder | None:
        """The one of the window that is open, or comes next; None for none."""
        raise NotImplementedError

    def end_batch(self) -> None:
        """The batch's work is done; what follows until the next batch begins still belongs to its step."""
        self._batch_done = self._in_batch

    def fail(self, error: BaseException) -> None:
        if (recorder := self._recorder) is not None:
            recorder.fail(error)

    def push(self, name: str) -> None:
        if (recorder := self._recorder) is not None:
            recorder.push(name)

    def pop(self, name: str) -> None:
        """End an annotation; nothing happens where the window it stood in has ended."""
        if (recorder := self._recorder) is not None:
            recorder.pop(name)


class StageWindows(_StageRecorder):
    """Follows the schedule of one stage while other stages come in between.

    torch has room for one recording at a time. When another stage takes over, `suspend` ends this stage's window with
    the batches that it has, and the cycle of the schedule with it. When this stage goes on, so does its schedule: with
    the next cycle where a window was ended, else where it was. So a batch of one stage is never a step of another one,
    no window spans two stages, and no cycle yields two files.

    `make_recorder` makes one that follows a plan from its next step on, and whose first step has the given number.
    """

    _recorder: Recorder | None = None

    def __init__(self, plan: Plan, make_recorder: Callable[[Plan, int], Recorder]) -> None:
        self.recorders: list[Recorder] = []
        """One for each stretch that was not interrupted by another stage, oldest first."""
        self._begun = 0
        """Batches that the stage has come to; the numbers of its steps."""
        self._plan = plan
        """As far as the batch that runs, or that ran last."""
        self._make_recorder = make_recorder

    @property
    def finished(self) -> bool:
        """Whether the schedule has no window left; never so for a caller's own schedule or `repeat=0`."""
        return self._plan.is_over

    def begin_batch(self) -> None:
        """The next batch begins; called again within the same batch this does nothing."""
        if self._batch_done:
            self._advance()
        if self._in_batch:
            return
        self._in_batch = True
        if self._recorder is None and not self.finished:
            self._open()
        self._plan = self._plan.next()
        self._begun += 1

    def end_epoch(self) -> None:
        """The epoch has no more batches; a window that this batch fills ends here, before the work between epochs."""
        if self._batch_done and self._plan.action is StepAction.RECORD_LAST:
            self._advance()

    def suspend(self, *, complete: bool = True) -> None:
        """Another stage takes over, or the run ends; a window that is open is saved with what it has."""
        self._in_batch = self._batch_done = False
        self._plan = self._plan.cut_short()
        self._close(complete=complete)

    def wait(self) -> None:
        """Return once every file is complete; where there are several ranks, no later than they have patience for."""
        for recorder in self.recorders:
            recorder.wait(recorder.patience_s)

    def _advance(self) -> None:
        self._in_batch = self._batch_done = False
        if self._recorder is not None:
            self._recorder.step()
            if self.finished and not self._recorder.is_stopped:  # its plan has waited for another one's window
                self._close(complete=True)

    def _open(self) -> None:
        self._recorder = self._make_recorder(self._plan, self._begun)
        self.recorders.append(self._recorder)
        self._recorder.start()

    def _close(self, *, complete: bool) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.stop(complete=complete)


def batches_of(trainer: Any, stage: Stage) -> int | None:
    """How many batches `stage` will run; None where Lightning cannot say (a stream, manual optimization).

    A callback of the user's may still end the run early, so this is an upper bound.
    """
    try:
        return _finite(_training_batches(trainer) if stage is Stage.FIT else _evaluation_batches(trainer, stage))
    except (AttributeError, TypeError):
        return None  # a Lightning that names these differently: the schedule is then taken as it is


def planned_batches(trainer: Any) -> int | None:
    """How many batches fit will run if nothing fails; None where that is not certain."""
    with suppress(Exception):  # a Lightning that names its callbacks differently
        return None if _has_callback(trainer, "EarlyStopping") else batches_of(trainer, Stage.FIT)
    return None


def _finite(batches: float) -> int | None:
    return int(batches) if math.isfinite(batches) and batches > 0 else None


def _training_batches(trainer: Any) -> float:
    """The least of what epochs and steps allow; NaN where the steps cannot be told."""
    if _has_callback(trainer, "Timer"):
        return math.nan  # `max_time`: it may end with any batch
    by_epochs, by_steps = _batches_by_epochs(trainer), _batches_by_steps(trainer)
    if _has_callback(trainer, "EarlyStopping"):
        by_epochs = min(by_epochs, trainer.num_training_batches)  # all that is certain
    return by_steps if math.isnan(by_steps) else min(by_epochs, by_steps)


def _has_callback(trainer: Any, name: str) -> bool:
    """Whether a callback is one of Lightning's by that name, whichever of the two packages it comes from."""
    return any(kind.__name__ == name for callback in trainer.callbacks for kind in type(callback).__mro__)


def _batches_by_epochs(trainer: Any) -> float:
    if trainer.max_epochs in (None, -1):
        return math.inf
    epochs = trainer.max_epochs - trainer.current_epoch
    # What a checkpoint in the middle of an epoch has run of it.
    done = trainer.fit_loop.epoch_loop.batch_progress.current.ready
    return float(trainer.num_training_batches * epochs - done)


def _batches_by_steps(trainer: Any) -> float:
    if trainer.max_steps in (None, -1):
        return math.inf
    if not trainer.lightning_module.automatic_optimization:
        return math.nan  # the user's code decides how many steps of how many optimizers a batch takes
    steps, together = trainer.max_steps - trainer.global_step, trainer.accumulate_grad_batches
    epoch = trainer.num_training_batches
    if not math.isfinite(epoch):
        return float(steps * together)
    # The last batch of an epoch steps in any case, however few have accumulated.
    epochs, rest = divmod(steps, max(math.ceil(epoch / together), 1))
    return float(epochs * epoch + rest * together)


def _evaluation_batches(trainer: Any, stage: Stage) -> float:
    counts = {
        Stage.SANITY_CHECK: "num_sanity_val_batches",
        Stage.VALIDATE: "num_val_batches",
        Stage.TEST: "num_test_batches",
        Stage.PREDICT: "num_predict_batches",
    }
    batches = getattr(trainer, counts[stage])
    return float(sum(batches) if isinstance(batches, Iterable) else batches)


def open_control(folder: Path, name: str | None, options: Mapping[str, Any], make: MakeRecorder) -> OnDemand:
    """The control server of this process, from now on to windows that `make` makes; steps are Lightning's batches."""
    control = current()
    if control is None:
        control = OnDemand(folder, filename=name, **options)
        control.idle_recorder.counted_by = "Lightning"
        control.open(listen=lambda: None, counts_run=False)
    control.count_no_optimizers("Lightning")
    control.idle_recorder.make = make
    control.idle_recorder.folder = folder.absolute()
    control.idle_recorder.options = options
    return control


def counts(stage: Stage, trainer: Any) -> bool:
    """Whether a stage's batches are the run's steps: not those of validation within training."""
    if stage is Stage.FIT:
        return True
    function = None
    with suppress(Exception):
        function = trainer.state.fn
    return bool(getattr(function, "value", function) == stage.value)


class OnDemandStage(_StageRecorder):
    """Tells an idle recorder where batches begin, as `StageWindows` tells those of a schedule.

    A window ends where another stage takes over, and at the end of an epoch if it is full.
    """

    recorders: Sequence[Recorder] = ()
    """None: who asked for a window has its trace."""

    def __init__(self, idle: IdleRecorder, *, is_counted: bool) -> None:
        self._idle = idle
        self._is_counted = is_counted
        self._has_begun = False

    @property
    def _recorder(self) -> Recorder | None:
        return self._idle.recorder

    def begin_batch(self) -> None:
        """The next batch begins; called again within the same batch this does nothing."""
        if self._batch_done:
            self._in_batch = self._batch_done = False
        if self._in_batch or not self._is_counted:
            return
        self._in_batch = True
        if self._has_begun:
            self._idle.step()
        self._has_begun = True

    def end_epoch(self) -> None:
        """The epoch has no more batches; a window that this batch fills ends here, before the work between epochs."""
        if self._batch_done and self._idle.is_full:
            self._in_batch = self._batch_done = self._has_begun = False
            self._idle.step()

    def suspend(self, *, complete: bool = True) -> None:
        """Another stage takes over, or the run ends; a window that is open is saved with what it has."""
        if self._is_counted:
            self._idle.cut_short("another stage of the Trainer begins", complete=complete)

    def wait(self) -> None:
        """Nothing is waited for: the trace is written beside the training, and who asked for it waits."""
