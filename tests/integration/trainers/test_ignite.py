"""PyTorch-Ignite: an engine that trains, and one that evaluates behind some of its epochs or iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import deepscope
from trainer_runs import TESTS, are_same, is_complete, line_of, need, run_recorded, state_of, steps_of, times_of

need("ignite", "pytorch-ignite")

from ignite.engine import Engine, Events  # noqa: E402

from deepscope.trainers.ignite import EngineRecording, attach  # noqa: E402

FORWARD = "loss = net(batch).square().mean()"
VALIDATION = "return net(batch).abs().sum()"


class Job:
    """Epochs of six iterations."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        torch.manual_seed(0)
        self.net = net = torch.nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        self.loader = DataLoader(torch.randn(12, 8), batch_size=2)

        def train(engine: Engine, batch: torch.Tensor) -> float:
            loss = net(batch).square().mean()
            loss.backward()
            if engine.state.iteration == fails_at:
                raise RuntimeError("mine")
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()

        @torch.no_grad()
        def evaluate(_engine: Engine, batch: torch.Tensor) -> torch.Tensor:
            return net(batch).abs().sum()

        self.trainer, self.evaluator = Engine(train), Engine(evaluate)

    def evaluate_at(self, event: Any) -> None:
        self.trainer.add_event_handler(event, lambda: self.evaluator.run(DataLoader(torch.ones(8, 8), batch_size=2)))

    def attach(self, **options: Any) -> EngineRecording:
        return attach(self.trainer, "runs", evaluators=[self.evaluator], root=TESTS, **options)


def test_each_iteration_of_the_engine_is_a_step() -> None:
    job = Job()
    recorded = job.attach(active=2)
    job.trainer.run(job.loader, max_epochs=2)
    assert steps_of(recorded.profile) == [2, 3]
    assert line_of(recorded.profile, FORWARD).calls == 2
    assert times_of(recorded.profile) == {"steps": 12, "data": 12}
    assert is_complete(recorded.traces[-1])


@pytest.mark.parametrize("is_attached_first", [True, False])
@pytest.mark.parametrize("event", [Events.EPOCH_COMPLETED, Events.ITERATION_COMPLETED(every=6)])
def test_an_evaluation_is_part_of_no_step_and_ends_the_window_before_it(event: Any, is_attached_first: bool) -> None:
    job = Job()
    if not is_attached_first:
        job.evaluate_at(event)
    recorded = job.attach(active=8)
    if is_attached_first:
        job.evaluate_at(event)
    job.trainer.run(job.loader, max_epochs=2)
    assert steps_of(recorded.profile) == [2, 3, 4, 5]
    assert recorded.profile is not None
    assert VALIDATION not in [line.text.strip() for line in recorded.profile.lines]
    assert times_of(recorded.profile) == {"steps": 12, "data": 12, "evaluation": 2}


@pytest.mark.parametrize("how", ["terminate", "terminate_epoch"])
def test_a_run_that_is_ended_early_is_saved(how: str) -> None:
    job = Job()
    recorded = job.attach(active=9)
    job.trainer.add_event_handler(Events.ITERATION_COMPLETED(once=4), getattr(job.trainer, how))
    job.trainer.run(job.loader, max_epochs=1)
    assert steps_of(recorded.profile) == [2, 3]


def test_a_run_of_one_iteration_is_recorded() -> None:
    job = Job()
    recorded = job.attach()
    job.trainer.run(job.loader, max_epochs=1, epoch_length=1)
    assert steps_of(recorded.profile) == [0]


def test_an_exception_saves_what_was_recorded_and_goes_on() -> None:
    job = Job(fails_at=5)
    recorded = job.attach(active=9)
    with pytest.raises(RuntimeError, match="mine"):
        job.trainer.run(job.loader, max_epochs=1)
    assert not is_complete(recorded.traces[-1])
    assert steps_of(recorded.profile)[:2] == [2, 3]


@pytest.mark.parametrize("is_attached_first", [True, False])
def test_an_exception_that_the_program_handles_stays_handled(is_attached_first: bool) -> None:
    job, handled = Job(fails_at=5), []
    if not is_attached_first:
        job.trainer.add_event_handler(Events.EXCEPTION_RAISED, handled.append)
    job.attach()
    if is_attached_first:
        job.trainer.add_event_handler(Events.EXCEPTION_RAISED, handled.append)
    job.trainer.run(job.loader, max_epochs=1)
    assert [str(error) for error in handled] == ["mine"]


def test_training_comes_to_the_same_with_and_without_a_recording() -> None:
    jobs = [Job(), Job()]
    jobs[1].attach()
    states = []
    for job in jobs:
        torch.manual_seed(1)
        job.evaluate_at(Events.ITERATION_COMPLETED(every=3))
        job.trainer.run(job.loader, max_epochs=2)
        states.append(state_of(job.net))
    assert are_same(states)


def test_an_engine_from_which_the_recording_is_detached_has_no_handler_of_it() -> None:
    job = Job()
    events = (Events.STARTED, Events.ITERATION_COMPLETED, Events.EXCEPTION_RAISED, Events.COMPLETED, Events.TERMINATE)
    recorded = job.attach()
    assert all(job.trainer.has_event_handler is not None and job.trainer._event_handlers[event] for event in events)
    recorded.detach()
    assert not any(one._event_handlers[event] for one in (job.trainer, job.evaluator) for event in events)
    job.trainer.run(job.loader, max_epochs=1)
    assert recorded.traces == []


PROGRAM = """\
import torch
from ignite.engine import create_supervised_trainer
{imported}
net = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
trainer = create_supervised_trainer(net, optimizer, torch.nn.functional.mse_loss, gradient_accumulation_steps=2)
{attached}
data = torch.utils.data.TensorDataset(torch.randn(24, 8), torch.randn(24, 2))
trainer.run(torch.utils.data.DataLoader(data, batch_size=2), max_epochs=1)
"""


def test_a_program_is_recorded_without_a_change(tmp_path: Path) -> None:
    [trace] = run_recorded(tmp_path, PROGRAM.format(imported="", attached=""))
    profile = deepscope.load_profile(trace, cache=False)
    assert steps_of(profile) == [2, 3, 4]
    assert times_of(profile)["steps"] == 6, "of the optimizer"


def test_a_program_with_an_attached_engine_is_left_to_it_so_that_no_step_counts_twice(tmp_path: Path) -> None:
    imported = "from deepscope.trainers.ignite import attach"
    program = PROGRAM.format(imported=imported, attached="attach(trainer, 'own')")
    assert run_recorded(tmp_path, program) == []
    assert times_of(deepscope.load_profile(tmp_path / "own", cache=False))["steps"] == 12, "of the engine"
