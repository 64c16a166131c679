"""What Lightning's action names mean: where a batch or a stage begins and ends, and which phase of a step it is.

Lightning reports what it does to the profiler by name: `run_training_batch`, `[LightningModule]Net.on_train_batch_end`,
`[Strategy]DDPStrategy.backward`, `[_TrainingEpochLoop].train_dataloader_next`. The part after the last dot is the hook.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Protocol

from deepscope.lightning.stages import OnDemandStage, StageWindows
from deepscope.trace.format.run_account import RunPartName


class Loop(Enum):
    """Lightning's loops; the sanity check runs in the same one as validation."""

    TRAIN = "train"
    VALIDATE = "validate"
    TEST = "test"
    PREDICT = "predict"


class LoopMark(Enum):
    """What an action says about the progress of its loop."""

    NONE = 0
    ENTER = 1
    """At its start the loop takes over from another one."""
    BATCH_START = 2
    """At its start the next batch begins, unless it has begun already."""
    BATCH_END = 3
    """At its stop all work on the batch is done."""
    EPOCH_END = 4
    """At its stop the epoch's batches are done."""
    LOOP_END = 5
    """At its start the loop has run all of its batches."""
    EXCEPTION = 6
    """At its start an exception is ending the run."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action name, understood."""

    mark: LoopMark
    loop: Loop | None
    annotation: str | None
    """The name of its annotation in the trace; None for an action that encloses whole steps."""
    phase: str | None
    """The phase of its time, less nested actions with a phase of their own; None for that of its parent."""
    begins: RunPartName | None = None
    """The part of the whole run that begins at its start."""
    ends: RunPartName | None = None
    """The part that ends at its stop."""


_MARKS = {
    "on_exception": (LoopMark.EXCEPTION, None),
    "run_training_epoch": (LoopMark.EPOCH_END, Loop.TRAIN),
    "train_dataloader_next": (LoopMark.BATCH_START, Loop.TRAIN),
    "on_train_batch_start": (LoopMark.BATCH_START, Loop.TRAIN),
    "on_train_batch_end": (LoopMark.BATCH_END, Loop.TRAIN),
    "on_train_end": (LoopMark.LOOP_END, Loop.TRAIN),
    "on_sanity_check_start": (LoopMark.ENTER, Loop.VALIDATE),
    "on_sanity_check_end": (LoopMark.LOOP_END, Loop.VALIDATE),
    # The first signs of a validation within fit, on any version of Lightning 2.
    "on_validation_model_zero_grad": (LoopMark.ENTER, Loop.VALIDATE),
    "on_validation_model_eval": (LoopMark.ENTER, Loop.VALIDATE),
    "on_validation_start": (LoopMark.ENTER, Loop.VALIDATE),
    "val_next": (LoopMark.BATCH_START, Loop.VALIDATE),
    "on_validation_batch_start": (LoopMark.BATCH_START, Loop.VALIDATE),
    "on_validation_batch_end": (LoopMark.BATCH_END, Loop.VALIDATE),
    "on_validation_epoch_end": (LoopMark.LOOP_END, Loop.VALIDATE),
    "on_validation_model_train": (LoopMark.LOOP_END, Loop.VALIDATE),
    "test_next": (LoopMark.BATCH_START, Loop.TEST),
    "on_test_batch_start": (LoopMark.BATCH_START, Loop.TEST),
    "on_test_batch_end": (LoopMark.BATCH_END, Loop.TEST),
    "on_test_epoch_end": (LoopMark.LOOP_END, Loop.TEST),
    "predict_next": (LoopMark.BATCH_START, Loop.PREDICT),
    "on_predict_batch_start": (LoopMark.BATCH_START, Loop.PREDICT),
    "on_predict_batch_end": (LoopMark.BATCH_END, Loop.PREDICT),
    "on_predict_epoch_end": (LoopMark.LOOP_END, Loop.PREDICT),
}

_DATA, _FORWARD, _BACKWARD, _OPTIMIZER, _OTHER = PHASES = ("data", "forward", "backward", "optimizer", "other")

_HOOK_PHASES = {
    **dict.fromkeys(("train_dataloader_next", "val_next", "test_next", "predict_next"), _DATA),
    **dict.fromkeys(
        ("on_before_batch_transfer", "batch_to_device", "transfer_batch_to_device", "on_after_batch_transfer"), _DATA
    ),
    **dict.fromkeys(("training_step", "validation_step", "test_step", "predict_step"), _FORWARD),
    "backward": _BACKWARD,
    # It encloses the closure, so training_step and backward too: they are nested and have phases of their own.
    "optimizer_step": _OPTIMIZER,
    **dict.fromkeys(
        (
            "on_before_zero_grad",
            "optimizer_zero_grad",
            "on_before_optimizer_step",
            "configure_gradient_clipping",
            "lr_scheduler_step",
        ),
        _OPTIMIZER,
    ),
    "save_checkpoint": _OTHER,
}

_BEGINS: dict[str, RunPartName] = {
    "run_training_epoch": "data",
    "train_dataloader_next": "data",
    "on_train_batch_start": "steps",
    "on_validation_model_zero_grad": "evaluation",
    "on_validation_model_eval": "evaluation",
    "on_validation_start": "evaluation",
    "save_checkpoint": "checkpoint",
}
_ENDS: dict[str, tuple[str, RunPartName]] = {
    "train_dataloader_next": ("", "data"),
    "on_train_batch_end": ("[LightningModule]", "steps"),
    "on_validation_end": ("[Strategy]", "evaluation"),
    "save_checkpoint": ("", "checkpoint"),
}
"""With whose hook it is, the last of those that have it."""

_ENCLOSING_STEPS = frozenset({"run_training_epoch"})


def classify(action_name: str) -> Action:
    """Understand an action name; an unknown one has no mark and no phase."""
    hook = action_name.rsplit(".", 1)[-1]
    mark, loop = _MARKS.get(hook, (LoopMark.NONE, None))
    if mark is LoopMark.BATCH_END and not action_name.startswith("[LightningModule]"):
        mark = LoopMark.NONE  # callbacks' hooks come first, the module's own is the last
    logging: RunPartName | None = "logging" if action_name.startswith("[Logger]") else None
    whose, ends = _ENDS.get(hook, ("", logging))
    return Action(
        mark=mark,
        loop=loop,
        annotation=None if hook in _ENCLOSING_STEPS else annotation_name(action_name),
        phase=_HOOK_PHASES.get(hook, _OTHER if action_name.startswith("[Callback]") else None),
        begins=_BEGINS.get(hook, logging),
        ends=ends if action_name.startswith(whose) else None,
    )


def annotation_name(action_name: str) -> str:
    """The name in the trace: as `PyTorchProfiler` writes it, without what Kineto's export cannot carry.

    A non-ASCII letter turns the whole name into `unknown` there, and a quote makes the file invalid JSON.
    """
    plain = action_name.encode("ascii", "backslashreplace").decode("ascii")
    return "[pl][profile]" + plain.replace("\\", "/").replace('"', "'")


class _Profiler(Protocol):
    """Who is told of the actions."""

    _current: StageWindows | OnDemandStage | None

    def start(self, action_name: str) -> None: ...
    def stop(self, action_name: str) -> None: ...
    def fail(self, action_name: str, error: BaseException) -> None: ...


class Profiled:
    """`with profiler.profile(action)`; one object for each action, for some forty are entered in a batch."""

    __slots__ = ("_action_name", "_annotation", "_profiler")

    def __init__(self, profiler: _Profiler, action_name: str, annotation: str) -> None:
        self._profiler = profiler
        self._action_name = action_name
        self._annotation = annotation

    def __enter__(self) -> str:
        self._profiler.start(self._action_name)
        return self._action_name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._profiler.fail(self._action_name, error)
        self._profiler.stop(self._action_name)


class Annotated(Profiled):
    """An action that says nothing of batches: outside the windows it costs next to nothing."""

    __slots__ = ()

    def __enter__(self) -> str:
        if (current := self._profiler._current) is not None:
            current.push(self._annotation)
        return self._action_name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._profiler.fail(self._action_name, error)
        if (current := self._profiler._current) is not None:
            current.pop(self._annotation)
