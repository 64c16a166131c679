"""Who holds memory, told by identity: what is recorded against sizes known by other ways, on whichever Python runs."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import pytest
import torch
import torch._dynamo.testing
from torch import nn
from torch.utils.checkpoint import checkpoint

import deepscope
from deepscope.capture import torch_compat, window_memory
from deepscope.records import HeldMemory, Profile
from deepscope.report.json_csv import json_report
from deepscope.report.text_report import text_report
from recorded import TESTS, OutOfMemoryError, hide_what_is_alive, loader, needs_saved_values, needs_watched_backward

BATCH, WIDE, NARROW = 64, 96, 32
FLOAT = 4


@pytest.fixture(autouse=True)
def no_other_modules_are_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """What dynamo keeps of a test before counts as memory, too, and whatever other tests have left."""
    torch._dynamo.reset()
    gc.collect()
    hide_what_is_alive(monkeypatch)


def what_is_wrapped() -> tuple[Any, Any]:
    """The functions of torch that a recording of memory wraps; None for one that this torch lacks."""
    backward = getattr(torch.autograd, "_engine_run_backward", None)
    return backward, torch.utils.data.dataloader._BaseDataLoaderIter.__next__


@pytest.fixture(autouse=True)
def nothing_of_torchs_stays_wrapped() -> Iterator[None]:
    before = what_is_wrapped()
    yield
    assert before == what_is_wrapped()
    assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks  # type: ignore[attr-defined]


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW))


def bytes_of(tensors: Any) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


def profile(recording: Any) -> Profile:
    found: Profile | None = recording.profile
    assert found is not None
    return found


def failing(net: nn.Module, tmp_path: Path, run: Callable[[], None]) -> HeldMemory:
    """What was live when memory "ran out" in `run`, inside a recording that began while the net was there already."""
    recording = deepscope.profile(tmp_path, root=TESTS, profile_memory=True)
    with pytest.raises(OutOfMemoryError), recording:
        run()
    failure = profile(recording).memory.failure
    assert failure is not None
    assert sum(row.size_bytes for row in failure.lines) == failure.held.size_bytes
    return failure.held


@needs_saved_values
def test_activations_are_what_an_mlp_keeps_by_hand(tmp_path: Path) -> None:
    net = mlp()

    def run() -> None:
        x = torch.randn(BATCH, NARROW)
        out = net(x)
        loss = out.square().mean()
        raise OutOfMemoryError(f"CUDA out of memory {loss.shape}")

    held = failing(net, tmp_path, run)
    # Each ReLU keeps its result, which the next layer keeps, too; the square keeps what it is of.
    assert held.activations_bytes == FLOAT * BATCH * (WIDE + WIDE + NARROW)
    assert held.inputs_bytes == FLOAT * BATCH * NARROW
    assert held.parameters_bytes == bytes_of(net.parameters())
    assert (held.gradients_bytes, held.optimizer_bytes) == (0, 0)
    assert held.unknown_bytes == FLOAT, "the loss"
    assert held.size_bytes == sum(getattr(held, name) for name in held.__struct_fields__ if name != "size_bytes")


def test_parameters_gradients_and_adams_state_are_n_n_and_2n(tmp_path: Path) -> None:
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters())

    def run() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.randn(BATCH, NARROW)).square().mean().backward()
            optimizer.step()
        raise OutOfMemoryError("CUDA out of memory")

    held = failing(net, tmp_path, run)
    count = len(list(net.parameters()))
    size = bytes_of(net.parameters())
    assert (held.parameters_bytes, held.gradients_bytes) == (size, size)
    assert held.optimizer_bytes == 2 * size + FLOAT * count, "two moments, and a count of steps for each parameter"
    assert held.activations_bytes == 0


def test_what_was_made_before_the_window_and_what_is_made_in_it_counts_alike(tmp_path: Path) -> None:
    net = mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        net(torch.randn(BATCH, NARROW)).square().mean().backward()
        optimizer.step()

    step()  # the first gradients and momenta are there before the window

    def run() -> None:
        for _ in range(2):
            step()
        raise OutOfMemoryError("CUDA out of memory")

    held = failing(net, tmp_path, run)
    size = bytes_of(net.parameters())
    assert (held.parameters_bytes, held.gradients_bytes, held.optimizer_bytes) == (size, size, size)


def test_tensors_from_before_the_window_that_nothing_known_holds_count_until_they_are_released(tmp_path: Path) -> None:
    class Table:
        def __init__(self) -> None:
            self.rows = torch.zeros(13, 1_000_003)

    table, result = Table(), (torch.ones(1_000, requires_grad=True) * 2).exp()  # which keeps itself, and its leaf
    size = bytes_of([table.rows])
    recording = deepscope.profile(tmp_path, root=TESTS, profile_memory=True)
    with recording:
        first = torch.ones(256)
        del table
        second = torch.ones(256)
    (device,) = profile(recording).memory.devices
    levels = [point.allocated_bytes for point in device.curve]
    assert levels[0] - levels[-1] == size - bytes_of([second])
    assert levels[0] >= size + 2 * bytes_of([result]) + bytes_of([first])
    assert device.peak.unknown_bytes >= size


def test_gradients_from_before_the_window_count_until_they_are_released(tmp_path: Path) -> None:
    net = mlp()
    net(torch.randn(2, NARROW)).sum().backward()
    size = bytes_of(net.parameters())
    for is_kept in (True, False):

        def run(is_kept: bool = is_kept) -> None:
            net.zero_grad(set_to_none=not is_kept)
            torch.ones(8)
            raise OutOfMemoryError("CUDA out of memory")

        assert failing(net, tmp_path / str(is_kept), run).gradients_bytes == (size if is_kept else 0)


def test_all_that_is_alive_at_the_end_is_in_the_curve(tmp_path: Path) -> None:
    """The collector is the other witness: without gradients no storage hides from it."""
    recording = deepscope.profile(tmp_path, root=TESTS, profile_memory=True)
    kept: list[Any] = []
    before = {one.untyped_storage().data_ptr() for one in living_tensors()}
    with torch.no_grad(), recording:
        net = mlp()
        kept.append(net)
        for size in (3, 5, 7):
            kept.append(net(torch.randn(size, NARROW))[:1])
            torch.randn(999)
    alive = {
        one.untyped_storage().data_ptr(): one.untyped_storage().nbytes()
        for one in living_tensors()
        if one.untyped_storage().data_ptr() not in before
    }
    (device,) = profile(recording).memory.devices
    assert device.curve[-1].allocated_bytes == sum(alive.values())
    assert device.peak.parameters_bytes == bytes_of(net.parameters())


def living_tensors() -> list[torch.Tensor]:
    return [one for one in gc.get_objects() if type(one) in {torch.Tensor, nn.Parameter} and one.device.type == "cpu"]


def test_batches_of_a_loader_and_arguments_of_the_outermost_module_are_inputs(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    batches = loader(1)

    def run() -> None:
        for batch in batches:
            moved = batch + 1
            net(moved)
            raise OutOfMemoryError("CUDA out of memory")

    held = failing(net, tmp_path, run)
    assert held.inputs_bytes == 2 * FLOAT * 4 * 8


def test_the_peak_of_recorded_steps_is_partitioned_and_shown(tmp_path: Path) -> None:
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters())
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True, wait=1, warmup=0, active=2) as recording:
        for _ in range(4):
            optimizer.zero_grad()
            net(torch.randn(BATCH, NARROW)).square().mean().backward()
            optimizer.step()
            recording.step()
    found = profile(recording)
    (device,) = found.memory.devices
    size = bytes_of(net.parameters())
    assert (device.peak.parameters_bytes, device.peak.optimizer_bytes) == (size, 2 * size + FLOAT * 6)
    assert device.peak.size_bytes == found.totals.peak_bytes == max(point.allocated_bytes for point in device.curve)
    text = text_report(found, by="memory", width=160)
    assert "optimizer state" in text
    assert "(no user line)" in text
    assert f'"optimizer_bytes": {device.peak.optimizer_bytes}' in json_report(found, by="memory")


def test_losses_are_the_same_to_the_bit_and_nothing_is_computed_twice(tmp_path: Path) -> None:
    calls: list[int] = []

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(NARROW, NARROW)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return self.layer(x).relu()

    def train() -> list[float]:
        torch.manual_seed(1)
        net, losses = Counted(), []
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            out = checkpoint(net, torch.randn(4, NARROW), use_reentrant=False)
            with torch.autograd.graph.save_on_cpu():
                loss = net(out).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    plain, times = train(), len(calls)
    calls.clear()
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True):
        assert train() == plain
    assert len(calls) == times == 9


@needs_saved_values
@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")
def test_compiled_code_is_compiled_no_more_often_and_what_it_keeps_is_told(tmp_path: Path) -> None:
    counts = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    net = nn.Sequential(nn.Linear(NARROW, WIDE), nn.Tanh(), nn.Linear(WIDE, NARROW))
    compiled = torch.compile(net, backend=counts)
    x = torch.randn(BATCH, NARROW)
    compiled(x).square().mean().backward()
    assert counts.frame_count == 1

    def run() -> None:
        for _ in range(2):
            compiled(x).square().mean().backward()
        loss = compiled(x).square().mean()
        raise OutOfMemoryError(f"CUDA out of memory {loss.shape}")

    held = failing(net, tmp_path, run)
    assert counts.frame_count == 1
    # The result of Tanh and the output, which the square keeps; the batch was there before the window.
    assert held.activations_bytes == FLOAT * BATCH * (WIDE + NARROW)
    assert (held.parameters_bytes, held.gradients_bytes) == (bytes_of(net.parameters()),) * 2


@needs_watched_backward
@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")
def test_dynamo_looks_at_no_survey_while_it_runs_a_step_that_it_broke(tmp_path: Path) -> None:
    """It would warn of what it cannot trace, and compile the surveys themselves."""
    counts = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile(backend=counts)
    def step(x: torch.Tensor) -> None:
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        step(torch.randn(4, 8))
    before = counts.frame_count
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True) as recording:
        for _ in range(2):
            step(torch.randn(4, 8))
    step(torch.randn(4, 8))
    assert counts.frame_count == before
    assert profile(recording).memory.devices[0].peak.gradients_bytes == bytes_of(net.parameters())


def test_what_autograd_keeps_dies_with_its_graph_though_it_was_looked_at(tmp_path: Path) -> None:
    net = mlp()
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True) as recording:
        for _ in range(3):
            net(torch.randn(BATCH, NARROW)).square().mean().backward()
            net.zero_grad()
    (device,) = profile(recording).memory.devices
    assert device.curve[-1].allocated_bytes == bytes_of(net.parameters())


@needs_watched_backward
def test_a_survey_that_fails_costs_a_line_in_the_trace_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("a graph of a kind of its own")

    monkeypatch.setattr(window_memory, "walk", fail)
    net = mlp()
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True) as recording:
        net(torch.randn(2, NARROW)).sum().backward()
    found = profile(recording)
    assert found.memory.devices[0].peak.parameters_bytes == bytes_of(net.parameters())
    assert [one for one in found.trace.warnings if "a graph of a kind of its own" in one]


@needs_watched_backward
@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no SIGUSR1 on Windows")
@needs_saved_values
def test_what_a_signals_handler_raises_in_a_survey_reaches_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PreemptedError(Exception):
        pass

    def preempt(*_: Any) -> None:
        raise PreemptedError

    def beside_a_signal(*results: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return walk(*results)

    walk = window_memory.walk
    before = signal.signal(signal.SIGUSR1, preempt)
    net = mlp()
    try:
        with deepscope.profile(tmp_path, root=TESTS, profile_memory=True) as recording:
            monkeypatch.setattr(window_memory, "walk", beside_a_signal)
            loss = net(torch.randn(BATCH, NARROW)).sum()
            with pytest.raises(PreemptedError):
                loss.backward()
            loss = None
    finally:
        signal.signal(signal.SIGUSR1, before)
    found = profile(recording)
    assert found.memory.devices[0].peak.activations_bytes > 0  # the survey was made all the same
    assert not [one for one in found.trace.warnings if "Preempted" in one]


def test_a_torch_that_does_not_show_what_autograd_keeps_tells_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_compat, "shows_saved_values", lambda: False)
    monkeypatch.setattr(torch_compat, "saved_values", lambda _: ())
    net = mlp()
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True) as recording:
        net(torch.randn(BATCH, NARROW)).sum().backward()
    found = profile(recording)
    assert found.memory.devices[0].peak.activations_bytes == 0
    assert [one for one in found.trace.warnings if "does not show" in one]


def test_without_the_option_nothing_is_looked_at(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS) as recording:
        mlp()(torch.randn(2, NARROW)).sum().backward()
    assert profile(recording).memory.devices == []


def test_what_ran_out_is_found_behind_the_exception_that_it_caused() -> None:
    def wrapped() -> None:
        try:
            raise OutOfMemoryError("CUDA out of memory")
        except OutOfMemoryError as error:
            raise RuntimeError("rank 3 failed") from error

    with pytest.raises(RuntimeError) as caught:
        wrapped()
    assert isinstance(window_memory.is_out_of_memory(caught.value), OutOfMemoryError)
    assert window_memory.is_out_of_memory(ValueError("no")) is None
    with pytest.raises(RuntimeError) as of_cpu:
        torch.empty(1 << 50)
    assert window_memory.is_out_of_memory(of_cpu.value) is of_cpu.value


def test_no_survey_counts_twice_what_it_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_walk(_: Any) -> window_memory.Graph:
        until = perf_counter_ns() + 200_000_000
        while perf_counter_ns() < until:
            pass
        return window_memory.Graph()

    monkeypatch.setattr(window_memory, "walk", slow_walk)
    watched = window_memory.MemorySurveys()
    began_ns = perf_counter_ns()
    watched.begin()
    watched.end()
    assert 200_000_000 <= watched.account.cost_ns <= perf_counter_ns() - began_ns
