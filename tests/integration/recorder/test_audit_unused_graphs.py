"""Graphs of autograd that no backward pass goes through, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from audited_programs import looked_at_all, recorded_and_looked_at, training
from deepscope.trace.format.audit import UnusedGraph
from recorded import PlainSGD

pytestmark = pytest.mark.usefixtures("nothing_compiled")

WIDTH = 16


def graphs(step: Callable[[], object]) -> list[UnusedGraph]:
    return looked_at_all(step).account.graphs


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


def distillation(*, grad: bool, frozen: bool = False) -> Callable[[], None]:
    """A student that learns of a teacher, which is called with autograd or without."""
    teacher, student = model(), model()
    teacher.requires_grad_(not frozen)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

    def step() -> None:
        x = torch.randn(8, WIDTH)
        with torch.set_grad_enabled(grad):
            wanted = teacher(x).detach()
        optimizer.zero_grad()
        F.mse_loss(student(x), wanted).backward()
        optimizer.step()

    return step


def test_a_teacher_that_is_detached_behind_its_call_is_named_at_the_call():
    audited = looked_at_all(distillation(grad=True))
    (found,) = audited.account.graphs
    assert audited.places[found.place].function.endswith("step")
    assert sum(use.unused for use in found.operators) == 3
    assert found.result_bytes == 3 * 8 * WIDTH * 4


@pytest.mark.parametrize("how", [{"grad": False}, {"grad": True, "frozen": True}])
def test_without_autograd_or_with_frozen_parameters_there_is_no_graph(how: dict[str, bool]):
    assert graphs(distillation(**how)) == []


def test_a_generator_whose_output_the_critic_gets_detached_has_one_for_nothing():
    generator, critic = model(), model()
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
    of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)

    def step(grad: bool = True) -> None:
        of_critic.zero_grad()
        with torch.set_grad_enabled(grad):
            fake = generator(torch.randn(8, WIDTH))
        critic(fake.detach()).mean().backward()
        of_critic.step()
        of_generator.zero_grad()
        critic(generator(torch.randn(8, WIDTH))).mean().neg().backward()
        of_generator.step()

    (found,) = graphs(step)
    assert sum(use.unused for use in found.operators) == 3
    assert graphs(lambda: step(grad=False)) == []


def test_an_evaluation_within_a_step_is_found_and_under_no_grad_it_is_not():
    net = model()
    train = training(net, lambda: net(torch.randn(8, WIDTH)).square().mean())

    def evaluate() -> float:
        return net(torch.randn(8, WIDTH)).square().mean().item()

    def step() -> None:
        train()
        evaluate()

    def mended() -> None:
        train()
        with torch.inference_mode():
            evaluate()

    (found,) = graphs(step)
    assert sum(use.unused for use in found.operators) >= 3
    assert graphs(mended) == []


def test_what_is_computed_of_a_trained_output_is_none():
    net = model()

    def loss() -> torch.Tensor:
        out = net(torch.randn(8, WIDTH))
        (out - 1).abs().mean().item()
        return out.square().mean()

    assert graphs(training(net, loss)) == []


def test_the_sum_of_losses_and_additions_without_backward_work_are_none():
    net = model()

    def loss() -> torch.Tensor:
        x = torch.randn(8, WIDTH)
        y = x + net(x)
        z = x + net(y)
        first, second = y.square().mean(), z.square().mean()
        return first + second

    assert graphs(training(net, loss)) == []


def test_a_graph_that_a_later_step_goes_through_is_used():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    waiting: list[torch.Tensor] = []
    kept: list[torch.Tensor] = []

    def step() -> None:
        loss = net(torch.randn(8, WIDTH)).square().mean()
        waiting.append(loss)
        kept.append(loss)
        if len(waiting) == 5:
            optimizer.zero_grad()
            sum(waiting, torch.zeros(())).backward()
            waiting.clear()
            optimizer.step()

    assert graphs(step) == []


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_gone_through_in_their_own_way(reentrant: bool):
    net = model()

    def loss() -> torch.Tensor:
        x = torch.randn(8, WIDTH, requires_grad=True)
        out = checkpoint(net, x, use_reentrant=reentrant)
        return out.square().mean()

    optimizer = PlainSGD(net.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    assert graphs(step) == []


def test_the_finding_stands_at_the_call_and_says_how_much_memory(tmp_path: Path):
    teacher = nn.Sequential(*(nn.Linear(256, 256) for _ in range(6)))  # most of a step, however busy the machine is
    student = nn.Linear(256, 256)

    def loss() -> torch.Tensor:
        x = torch.randn(512, 256)
        wanted = teacher(x).detach()
        return F.mse_loss(student(x), wanted)

    profile = recorded_and_looked_at(training(student, loss), tmp_path)
    (found,) = (one for one in profile.findings if one.code == "DS038")
    assert found.function.endswith("loss")
    assert found.evidence["result_bytes_per_step"] == 6 * 512 * 256 * 4
    assert "no_grad" in found.remedy.text
    assert 0 < found.saving_ns < 0.2 * profile.totals.wall_ns


def test_lines_that_both_a_teacher_and_a_student_run_count_by_the_teachers_calls():
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).relu()

    teachers, student = [Block() for _ in range(3)], Block()

    def loss() -> torch.Tensor:
        x = torch.randn(8, WIDTH)
        wanted = torch.zeros(())
        for teacher in teachers:
            wanted = wanted + teacher(x).detach()
        return F.mse_loss(student(x), wanted)

    (found,) = graphs(training(student, loss))
    assert {(use.name, use.times, use.unused) for use in found.operators} == {
        ("aten::addmm", 4, 3),
        ("aten::relu", 4, 3),
    }


def test_what_is_computed_of_a_detached_output_is_no_part_of_its_graph():
    net, other = model(), model()

    def loss() -> torch.Tensor:
        out = net(torch.randn(8, WIDTH))
        other(out.detach()).mean().item()
        return out.square().mean()

    (found,) = graphs(training(net, loss))
    assert sum(use.unused for use in found.operators if use.name == "aten::addmm") == 2
