"""How many batches a stage of a Trainer will have, where that is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from deepscope.lightning.stages import Stage


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
