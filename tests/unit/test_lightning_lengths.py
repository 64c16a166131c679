import math
from types import SimpleNamespace

import pytest

from deepscope.lightning.stages import Stage, batches_of


class Timer:
    """As Lightning's, which `max_time` adds."""


class EarlyStopping:
    pass


class PatientStopping(EarlyStopping):
    pass


def trainer(**changes: object) -> SimpleNamespace:
    progress = SimpleNamespace(current=SimpleNamespace(ready=changes.pop("ready", 0)))
    fields: dict[str, object] = {
        "max_epochs": 3,
        "max_steps": -1,
        "current_epoch": 0,
        "global_step": 0,
        "accumulate_grad_batches": 1,
        "num_training_batches": 10,
        "num_val_batches": [4, 5],
        "num_sanity_val_batches": [2, 2],
        "num_test_batches": [math.inf],
        "num_predict_batches": [0],
        "callbacks": [],
        "lightning_module": SimpleNamespace(automatic_optimization=changes.pop("automatic", True)),
        "fit_loop": SimpleNamespace(epoch_loop=SimpleNamespace(batch_progress=progress)),
    }
    return SimpleNamespace(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "batches"),
    [
        ({}, 30),
        ({"current_epoch": 2, "ready": 4}, 6),
        ({"max_steps": 7}, 7),
        ({"max_steps": 3, "accumulate_grad_batches": 3}, 9),
        ({"max_steps": 5, "accumulate_grad_batches": 3}, 13),  # 3 + 3 + 3 + 1, then 3
        ({"max_steps": 2, "accumulate_grad_batches": 4, "num_training_batches": 1}, 2),
        ({"max_steps": 7, "global_step": 5}, 2),
        ({"max_epochs": -1, "max_steps": 8}, 8),
        ({"max_epochs": None}, None),
        ({"num_training_batches": math.inf}, None),
        ({"num_training_batches": math.inf, "max_steps": 4}, 4),
        ({"max_steps": 7, "automatic": False}, None),
        ({"max_steps": 7, "automatic": False, "max_epochs": -1}, None),
        ({"automatic": False}, 30),
        ({"callbacks": [Timer()]}, None),
        ({"callbacks": [PatientStopping()]}, 10),
        ({"callbacks": [PatientStopping()], "max_steps": 7}, 7),
    ],
)
def test_fit_has_the_batches_that_epochs_and_steps_allow(changes: dict[str, object], batches: int | None) -> None:
    assert batches_of(trainer(**changes), Stage.FIT) == batches


@pytest.mark.parametrize(
    ("stage", "batches"),
    [(Stage.VALIDATE, 9), (Stage.SANITY_CHECK, 4), (Stage.TEST, None), (Stage.PREDICT, None)],
)
def test_other_stages_have_those_of_all_their_loaders(stage: Stage, batches: int | None) -> None:
    assert batches_of(trainer(), stage) == batches


def test_a_trainer_that_names_things_differently_has_an_unknown_length() -> None:
    assert batches_of(SimpleNamespace(), Stage.FIT) is None
