"""Remedies of Lightning's Trainer: logging and validation less often."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from deepscope.trials.messages import TRAINERS, ProgramFacts, Settings, TrainerFacts
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.hooks import RemedyHooks

_LOG_EVERY = 50
"""Lightning's default."""
_TIMES_RARER = 4
_NO_TRAINER = "the program makes no Lightning Trainer"


def _logging(facts: ProgramFacts) -> Decision:
    trainer = facts.trainer
    if trainer is None:
        return _NO_TRAINER
    if not trainer.has_logger:
        return "the Trainer has no logger"
    if trainer.log_every_n_steps >= _LOG_EVERY:
        return f"the Trainer logs every {trainer.log_every_n_steps} steps already"
    return {"log_every_n_steps": _LOG_EVERY}


def _validation(facts: ProgramFacts) -> TrainerFacts | str:
    trainer = facts.trainer
    if trainer is None:
        return _NO_TRAINER
    if not trainer.validations:
        return "no validation begins within the steps that are run; ask for more with --steps"
    return trainer


def _within_epochs(facts: ProgramFacts) -> Decision:
    trainer = _validation(facts)
    if isinstance(trainer, str):
        return trainer
    if trainer.val_check_interval == 1.0:
        return "the Trainer validates once an epoch, not within"
    interval = trainer.val_check_interval
    if interval < 1.0:
        return {"val_check_interval": min(1.0, interval * _TIMES_RARER)}
    return {"val_check_interval": int(interval * _TIMES_RARER)}


def _epochs(facts: ProgramFacts) -> Decision:
    trainer = _validation(facts)
    if isinstance(trainer, str):
        return trainer
    if trainer.check_val_every_n_epoch is None or trainer.val_check_interval != 1.0:
        return "the Trainer validates within epochs"
    return {"check_val_every_n_epoch": trainer.check_val_every_n_epoch * _TIMES_RARER}


def _batches(facts: ProgramFacts) -> Decision:
    trainer = _validation(facts)
    return trainer if isinstance(trainer, str) else {"limit_val_batches": 0.25}


def _set(settings: Settings, hooks: RemedyHooks) -> None:
    for module in TRAINERS:
        hooks.imports.when_imported(
            module,
            lambda found: hooks.construct_with(
                found.Trainer, lambda given: {} if given.get("fast_dev_run") else settings
            ),
        )


_TRAINER = partial(AppliedRemedy, apply=_set, draws_otherwise=True)

REMEDIES = (
    _TRAINER(
        name="log-less",
        written="Trainer(log_every_n_steps={log_every_n_steps})",
        findings=("DS019",),
        decide=_logging,
    ),
    _TRAINER(
        name="validate-less",
        written="Trainer(val_check_interval={val_check_interval})",
        decide=_within_epochs,
    ),
    _TRAINER(
        name="validate-fewer-epochs",
        written="Trainer(check_val_every_n_epoch={check_val_every_n_epoch})",
        decide=_epochs,
    ),
    _TRAINER(
        name="validate-fewer-batches",
        written="Trainer(limit_val_batches={limit_val_batches})",
        decide=_batches,
    ),
)
