"""Accelerate's regression model in a user's own loop, under `accelerator.profile()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import deepscope
from deepscope.errors import OptionError
from trainer_runs import TESTS, are_same, is_complete, line_of, need, run_recorded, state_of, steps_of, times_of

need("accelerate", "accelerate")

from accelerate import Accelerator  # noqa: E402
from accelerate.test_utils.training import RegressionDataset, RegressionModel  # noqa: E402
from accelerate.utils import ProfileKwargs  # noqa: E402

from deepscope.trainers.accelerate import DeepProfileKwargs  # noqa: E402

FORWARD = 'outputs = model(batch["x"])'


class Mine(Exception):
    """Of the user's."""


def train(
    accelerator: Accelerator, profile: Any = None, *, fails_at: int | None = None, batches: int = 8
) -> tuple[Any, list[torch.Tensor]]:
    """The recording, and what the model came to."""
    torch.manual_seed(0)
    loader = DataLoader(RegressionDataset(length=4 * batches, seed=1), batch_size=4)
    model = RegressionModel()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), loader)
    with accelerator.profile(profile) as prof:
        for number, batch in enumerate(loader):
            with accelerator.accumulate(model):
                outputs = model(batch["x"])
                if number == fails_at:
                    raise Mine
                accelerator.backward((outputs - batch["y"]).square().mean())
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                prof.step()
    return prof, state_of(model)


def kwargs(**options: Any) -> DeepProfileKwargs:
    return DeepProfileKwargs("runs", root=TESTS, **options)


def accelerator(*handlers: Any, **options: Any) -> Accelerator:
    return Accelerator(cpu=True, kwargs_handlers=list(handlers), **options)


def test_a_loop_under_the_accelerators_profile_is_recorded_by_its_own_steps() -> None:
    handler = kwargs(wait=1, warmup=1, active=2)
    prof, _ = train(accelerator(handler, gradient_accumulation_steps=2), batches=12)
    assert isinstance(prof, deepscope.Recording)
    assert isinstance(handler, ProfileKwargs)
    assert steps_of(prof.profile) == [2, 3]
    assert line_of(prof.profile, FORWARD).calls == 4
    assert times_of(prof.profile) == {"steps": 6, "data": 6}
    assert is_complete(prof.traces[-1])


def test_a_handler_of_one_block_records_this_one() -> None:
    prof, _ = train(accelerator(), kwargs(wait=0, warmup=0, active=1))
    assert steps_of(prof.profile) == [0]


def test_without_a_schedule_the_whole_block_is_recorded() -> None:
    prof, _ = train(accelerator(kwargs()))
    assert line_of(prof.profile, FORWARD).calls == 8


def test_an_exception_in_the_block_saves_what_was_recorded_and_goes_on() -> None:
    with pytest.raises(Mine):
        train(accelerator(kwargs(wait=1, warmup=1, active=5)), fails_at=4)
    [trace] = Path("runs").glob("*.pt.trace.json.gz")
    assert not is_complete(trace)
    assert steps_of(deepscope.load_profile(trace, cache=False))[:2] == [2, 3]
    prof, _ = train(accelerator(kwargs(wait=0, active=1)))
    assert is_complete(prof.traces[-1]), "nothing of the one before is in the way"


def test_training_comes_to_the_same_with_and_without_a_recording() -> None:
    torches = ProfileKwargs(schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 1})
    assert are_same([train(accelerator(handler))[1] for handler in (torches, kwargs(wait=1, active=2))])


def test_an_option_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(OptionError):
        DeepProfileKwargs(actve=3)  # type: ignore[call-arg]


PROGRAM = """\
import torch
from accelerate import Accelerator
from accelerate.test_utils.training import RegressionDataset, RegressionModel

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2{handlers})
model = RegressionModel()
loader = torch.utils.data.DataLoader(RegressionDataset(length=48, seed=1), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), loader)
with accelerator.profile() as prof:
    for batch in loader:
        with accelerator.accumulate(model):
            outputs = model(batch["x"])
            accelerator.backward((outputs - batch["y"]).square().mean())
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            prof.step()
accelerator.save_state("state")
"""


@pytest.mark.thorough
def test_a_program_is_recorded_without_a_change(tmp_path: Path) -> None:
    program = PROGRAM.replace("with accelerator.profile() as prof:", "if True:").replace("prof.step()", "pass")
    [trace] = run_recorded(tmp_path, program.format(handlers=""))
    profile = deepscope.load_profile(trace, cache=False)
    assert steps_of(profile) == [2, 3, 4]
    assert line_of(profile, FORWARD).calls == 6
    assert times_of(profile)["steps"] == 6


def test_a_program_that_records_itself_is_left_to_it_so_that_no_step_counts_twice(tmp_path: Path) -> None:
    program = "from deepscope.trainers.accelerate import DeepProfileKwargs\n" + PROGRAM
    handlers = ", kwargs_handlers=[DeepProfileKwargs('own', wait=1)]"
    assert run_recorded(tmp_path, program.format(handlers=handlers)) == []
    assert times_of(deepscope.load_profile(tmp_path / "own", cache=False))["steps"] == 6
