"""Results that are kept with their graphs beyond their step, as the audit of real steps finds them."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from audited_programs import looked_at_all, recorded_and_looked_at
from deepscope.capture.audit import gradients
from deepscope.trace.format.audit import KeptGraphs

pytestmark = pytest.mark.usefixtures("nothing_compiled")

WIDTH = 16
LOSSES: list[torch.Tensor | float] = []


class Loop:
    """A training loop that does something with the loss of each step, before its backward pass or behind it."""

    def __init__(self, behind: Callable[[torch.Tensor], object], before: Callable[[torch.Tensor], object] = id) -> None:
        self.model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.behind, self.before = behind, before

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = self.model(torch.randn(8, WIDTH)).square().mean()
        self.before(loss)
        loss.backward()
        self.optimizer.step()
        self.behind(loss)


def kept(step: Callable[[], object]) -> list[KeptGraphs]:
    return looked_at_all(step).account.kept


class Total:
    """The sum of what it gets."""

    def __init__(self, in_place: bool = False) -> None:
        self.sum = torch.zeros(())
        self.in_place = in_place

    def add(self, loss: torch.Tensor) -> None:
        if self.in_place:
            self.sum += loss
        else:
            self.sum = self.sum + loss


@pytest.mark.parametrize("in_place", [False, True])
def test_a_running_sum_of_losses_keeps_the_graph_of_each(in_place: bool):
    total = Total(in_place)
    audited = looked_at_all(Loop(total.add).step)
    found = audited.account.kept
    assert [audited.places[one.place].function.split(".")[-1] for one in found] == ["add"]
    assert found[0].results == 1


def test_a_list_of_losses_keeps_them():
    losses: list[torch.Tensor] = []
    (found,) = kept(Loop(losses.append).step)
    assert (found.results, found.name) == (1, "aten::mean")


def test_all_objects_are_looked_through_once_for_all_results(monkeypatch: pytest.MonkeyPatch):
    looks: list[int] = []

    def get_referrers(*objects: object) -> list[object]:
        looks.append(len(objects))
        return gc.get_referrers(*objects)

    monkeypatch.setattr(gradients, "gc", SimpleNamespace(**vars(gc) | {"get_referrers": get_referrers}))
    losses: list[torch.Tensor] = []
    found = kept(Loop(lambda loss: losses.extend([loss, loss * 1, loss * 2])).step)
    assert sum(one.results for one in found) == 2  # the loss itself is a part of the others' graphs
    assert looks == [3]


@pytest.mark.parametrize(
    "behind",
    [
        id,
        lambda loss: LOSSES.append(loss.detach()),
        lambda loss: LOSSES.append(loss.item()),
        lambda loss: Total().add(loss),
        deque(maxlen=1).append,
    ],
)
def test_what_is_detached_or_replaced_keeps_no_graph(behind: Callable[[torch.Tensor], object]):
    assert kept(Loop(behind).step) == []


def test_losses_that_wait_for_their_backward_pass_are_no_mistake():
    model = nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    waiting: list[torch.Tensor] = []

    def step() -> None:
        waiting.append(model(torch.randn(8, WIDTH)).square().mean())
        if len(waiting) == 5:
            optimizer.zero_grad()
            sum(waiting, torch.zeros(())).backward()
            optimizer.step()
            waiting.clear()

    assert kept(step) == []


def test_the_finding_stands_at_the_line_and_promises_no_time(tmp_path: Path):
    total = Total()
    profile = recorded_and_looked_at(Loop(total.add).step, tmp_path)
    (found,) = (one for one in profile.findings if one.code == "DS042")
    assert found.function.endswith("add")
    assert found.saving_ns == 0
    assert "memory grows" in found.message


def test_a_state_that_goes_on_detached_into_the_next_step_keeps_no_graph():
    cell, head = nn.GRUCell(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    state = torch.zeros(8, WIDTH)

    def step() -> None:
        nonlocal state
        optimizer.zero_grad()
        state = cell(torch.randn(8, WIDTH), state.detach())
        head(state).square().mean().backward()
        optimizer.step()

    assert kept(step) == []


@pytest.mark.parametrize("order", ["before", "behind"])
def test_a_sum_is_found_on_either_side_of_the_backward_pass(order: str):
    total = Total()
    loop = Loop(total.add if order == "behind" else id, total.add if order == "before" else id)
    assert len(kept(loop.step)) == 1


def test_a_fake_of_which_the_step_behind_the_critics_makes_use_is_no_mistake():
    """Steps are told as the critic's optimizer has stepped: each begins with the generator's half."""
    generator, critic = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
    of_generator, of_critic = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (generator, critic))
    fake = generator(torch.randn(8, WIDTH))

    def step() -> None:
        nonlocal fake
        of_generator.zero_grad()
        critic(fake).mean().neg().backward()
        of_generator.step()
        fake = generator(torch.randn(8, WIDTH))
        of_critic.zero_grad()
        critic(fake.detach()).mean().backward()
        of_critic.step()

    account = looked_at_all(step).account
    assert (account.kept, account.graphs, account.results) == ([], [], [])


@pytest.mark.parametrize(
    ("use", "times"), [(Total().add, 1), (lambda loss: loss * 2, 0), (lambda loss: (loss * 2).item(), 0)]
)
def test_steps_that_end_before_the_loss_is_used_are_told_apart_all_the_same(
    use: Callable[[torch.Tensor], object], times: int
):
    """As under `deepscope run`, where the optimizer's step ends them."""
    loop = Loop(id)
    loss, other = torch.zeros(()), None

    def step() -> None:
        nonlocal loss, other
        other = use(loss)
        loop.optimizer.zero_grad()
        loss = loop.model(torch.randn(8, WIDTH)).square().mean()
        loss.backward()
        loop.optimizer.step()

    audited = looked_at_all(step)
    assert len(audited.account.kept) == times
    assert all(audited.places[one.place].function.endswith("add") for one in audited.account.kept)


def test_a_loss_that_a_variable_has_until_another_one_comes_is_no_mistake():
    """As where an update returns its loss, and the step was over before that."""
    loop = Loop(id)
    newest = before = torch.zeros(())

    def step() -> None:
        nonlocal newest, before
        loop.optimizer.zero_grad()
        before, newest = newest, loop.model(torch.randn(8, WIDTH)).square().mean()
        newest.backward()
        loop.optimizer.step()

    assert kept(step) == []
