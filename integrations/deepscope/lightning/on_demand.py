"""A stage of a Trainer whose windows `deepscope attach` asks for, in place of a schedule."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture.on_demand.start import OnDemand, current
from deepscope.lightning.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepscope.capture.on_demand.idle_recorder import IdleRecorder, MakeRecorder
    from deepscope.capture.recorder import Recorder


def open_control(folder: Path, name: str | None, options: Mapping[str, Any], make: MakeRecorder) -> OnDemand:
    """The control server of this process, from now on to windows that `make` makes; steps are Lightning's batches."""
    control = current()
    if control is None:
        control = OnDemand(folder, filename=name, **options)
        control.dormant.counted_by = "Lightning"
        control.open(listen=lambda: None, counts_run=False)
    control.count_no_optimizers("Lightning")
    control.dormant.make = make
    control.dormant.folder = folder.absolute()
    control.dormant.options = options
    return control


def counts(stage: Stage, trainer: Any) -> bool:
    """Whether a stage's batches are the run's steps: not those of validation within training."""
    if stage is Stage.FIT:
        return True
    function = None
    with suppress(Exception):
        function = trainer.state.fn
    return bool(getattr(function, "value", function) == stage.value)


class OnDemandStage:
    """What `StageWindows` does for a schedule: tells a dormant recorder where batches begin.

    A window ends where another stage takes over, and at the end of an epoch if it is full.
    """

    def __init__(self, dormant: IdleRecorder, *, is_counted: bool) -> None:
        self.recorders: list[Recorder] = []
        """None: who asked for a window has its trace."""
        self.finished = False
        self._dormant = dormant
        self._is_counted = is_counted
        self._in_batch = False
        self._batch_done = False
        self._has_begun = False

    @property
    def recording(self) -> bool:
        """Whether a window is open now."""
        recorder = self._dormant.recorder
        return recorder is not None and recorder.recording

    def begin_batch(self) -> None:
        """The next batch begins; called again within the same batch this does nothing."""
        if self._batch_done:
            self._in_batch = self._batch_done = False
        if self._in_batch or not self._is_counted:
            return
        self._in_batch = True
        if self._has_begun:
            self._dormant.step()
        self._has_begun = True

    def end_batch(self) -> None:
        """The batch's work is done; what follows until the next batch begins still belongs to its step."""
        self._batch_done = self._in_batch

    def end_epoch(self) -> None:
        """The epoch has no more batches; a window that this batch fills ends here, before the work between epochs."""
        if self._batch_done and self._dormant.is_full:
            self._in_batch = self._batch_done = self._has_begun = False
            self._dormant.step()

    def fail(self, error: BaseException) -> None:
        """An exception leaves the batch."""
        recorder = self._dormant.recorder
        if recorder is not None:
            recorder.fail(error)

    def suspend(self, *, complete: bool = True) -> None:
        """Another stage takes over, or the run ends; a window that is open is saved with what it has."""
        if self._is_counted:
            self._dormant.cut_short("another stage of the Trainer begins", complete=complete)

    def wait(self) -> None:
        """Nothing is waited for: the trace is written beside the training, and who asked for it waits."""

    def push(self, name: str) -> None:
        """Open an annotation in the window."""
        recorder = self._dormant.recorder
        if recorder is not None:
            recorder.push(name)

    def pop(self, name: str) -> None:
        """End an annotation; nothing happens where the window it stood in has ended."""
        recorder = self._dormant.recorder
        if recorder is not None:
            recorder.pop(name)
