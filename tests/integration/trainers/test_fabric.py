"""Lightning Fabric: a user's loop that calls the hooks it has named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import deepscope
from trainer_runs import TESTS, are_same, is_complete, line_of, need, run_recorded, state_of, steps_of, times_of

need("lightning", "lightning")

from lightning.fabric import Fabric  # noqa: E402

from deepscope.trainers.fabric import FabricCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
FORWARD = "loss = model(batch).square().mean()"
VALIDATION = "model(batch).abs().sum()"


def train(callback: FabricCallback | None, *hooks: str, fails_at: int | None = None) -> list[torch.Tensor]:
    """Two epochs of six steps of two batches, a validation behind each; calls the hooks of these names."""
    torch.manual_seed(0)
    fabric = Fabric(accelerator="cpu", devices=1, callbacks=[callback] if callback is not None else [])

    def call(hook: str, **arguments: Any) -> None:
        if hook in hooks:
            fabric.call(hook, **arguments)

    net = torch.nn.Linear(8, 2)
    model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.01))
    loader = fabric.setup_dataloaders(DataLoader(torch.randn(24, 8), batch_size=2))
    call("on_train_start")
    for _ in range(2):
        for number, batch in enumerate(loader):
            loss = model(batch).square().mean()
            fabric.backward(loss)
            if number == fails_at:
                raise RuntimeError("mine")
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
                call("on_train_batch_end", outputs=loss, batch=batch, batch_idx=number)
        call("on_validation_start")
        with torch.no_grad():
            for batch in fabric.setup_dataloaders(DataLoader(torch.randn(8, 8), batch_size=2)):
                model(batch).abs().sum()
        call("on_validation_end")
        fabric.save("checkpoint.ckpt", {"model": model})
    call("on_train_end")
    return state_of(net)


def callback(**options: Any) -> FabricCallback:
    return FabricCallback("runs", root=TESTS, **options)


ALL = ("on_train_start", "on_train_batch_end", "on_validation_start", "on_validation_end", "on_train_end")


def test_each_call_of_the_hook_ends_a_step() -> None:
    recorded = callback(active=2)
    train(recorded, *ALL)
    assert steps_of(recorded.profile) == [2, 3]
    assert line_of(recorded.profile, FORWARD).calls == 4
    assert times_of(recorded.profile) == {"steps": 12, "data": 12, "evaluation": 2, "checkpoint": 2}
    assert is_complete(recorded.traces[-1])


def test_a_loop_that_calls_no_other_hook_is_recorded_behind_its_first_step() -> None:
    with callback(active=2) as recorded:
        train(recorded, "on_train_batch_end")
    assert steps_of(recorded.profile) == [2, 3]
    assert times_of(recorded.profile)["steps"] == 12


def test_a_training_of_one_step_is_recorded() -> None:
    recorded = callback()
    recorded.on_train_start()
    torch.ones(2).sum()
    recorded.on_train_batch_end()
    recorded.on_train_end()
    assert steps_of(recorded.profile) == [0]


def test_a_validation_is_part_of_no_step_and_ends_the_window_before_it() -> None:
    recorded = callback(active=8)
    train(recorded, *ALL)
    assert steps_of(recorded.profile) == [2, 3, 4, 5]
    assert recorded.profile is not None
    assert VALIDATION not in [line.text.strip() for line in recorded.profile.lines]


def test_the_next_window_opens_behind_the_validation() -> None:
    recorded = callback(active=8, repeat=2)
    train(recorded, *ALL)
    assert steps_of(recorded.profile) == [8, 9, 10, 11]
    assert len(recorded.traces) == 2


def test_an_exception_saves_what_was_recorded_and_goes_on() -> None:
    with pytest.raises(RuntimeError, match="mine"), callback(active=9) as recorded:
        train(recorded, *ALL, fails_at=8)
    assert not is_complete(recorded.traces[-1])
    assert steps_of(recorded.profile)[:2] == [2, 3]


def test_training_comes_to_the_same_with_and_without_a_recording() -> None:
    assert are_same([train(one, *ALL) for one in (None, callback())])


PROGRAM = """\
import torch
from lightning.fabric import Fabric
{imported}
fabric = Fabric(accelerator="cpu", devices=1, callbacks=[{callback}])
net = torch.nn.Linear(8, 2)
model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.01))
for batch in fabric.setup_dataloaders(torch.utils.data.DataLoader(torch.randn(24, 8), batch_size=4)):
    loss = model(batch).square().mean()
    fabric.backward(loss)
    optimizer.step()
    fabric.call("on_train_batch_end", loss=loss)
"""


@pytest.mark.thorough
def test_a_program_is_recorded_without_a_change(tmp_path: Path) -> None:
    [trace] = run_recorded(tmp_path, PROGRAM.format(imported="", callback=""))
    profile = deepscope.load_profile(trace, cache=False)
    assert steps_of(profile) == [2, 3, 4]
    assert line_of(profile, FORWARD).calls == 3
    assert times_of(profile)["steps"] == 6


def test_a_program_with_a_callback_is_left_to_it_and_its_trace_is_saved_at_the_end(tmp_path: Path) -> None:
    imported = "from deepscope.trainers.fabric import FabricCallback"
    program = PROGRAM.format(imported=imported, callback="FabricCallback('own', active=2)")
    assert run_recorded(tmp_path, program) == []
    profile = deepscope.load_profile(tmp_path / "own", cache=False)
    assert steps_of(profile) == [2, 3]
    assert times_of(profile)["steps"] == 6
