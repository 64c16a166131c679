"""On a CUDA device: work stands at the line that ran it, backward work at its forward line."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import deepscope
from deepscope.capture import torch_compat
from gpu.recorded import record, recorded, total_ns

pytestmark = pytest.mark.gpu

HERE = Path(__file__)
SIZE = 512

# settrace does not reach the threads that autograd runs on; there, work falls to the forward line.
sees_autograd_threads = sys.version_info >= (3, 12)


def matrix(*, grad: bool = False) -> Tensor:
    return torch.randn(SIZE, SIZE, device="cuda", requires_grad=grad)


def evaluate(node: str) -> str:
    return f"autograd::engine::evaluate_function: {node}"


def forward(x: Tensor) -> Tensor:
    y = torch.sin(x)  # @sin
    y = torch.exp(y) * 2  # @exp
    return y @ y  # @matmul


def test_forward_work_stands_at_the_line_that_ran_it(tmp_path: Path) -> None:
    x = matrix()

    def code() -> None:
        forward(x)  # @call

    found = record(code, tmp_path)
    assert found.at("sin").self_device_ns == total_ns(found.work_under("aten::sin")), found.describe_lines()
    assert found.at("exp").self_device_ns == total_ns(found.work_under("aten::exp", "aten::mul"))
    assert found.at("matmul").self_device_ns == total_ns(found.work_under("aten::matmul"))
    assert found.at("call").total_device_ns == total_ns(found.work)
    assert found.at("call").self_device_ns == 0
    assert found.at("sin").exact
    assert found.at("sin").launches == len(found.work_under("aten::sin"))


def test_backward_work_stands_at_its_forward_line(tmp_path: Path) -> None:
    x = matrix(grad=True)

    def code() -> None:
        x.grad = None
        a = torch.tanh(x)  # @tanh
        b = torch.sigmoid(a)  # @sigmoid
        loss = b.square().sum()  # @loss
        loss.backward()  # @backward

    found = record(code, tmp_path)
    tanh, sigmoid = found.at("tanh"), found.at("sigmoid")
    assert tanh.backward_device_ns == total_ns(found.work_under(evaluate("TanhBackward0"))), found.describe_lines()
    assert sigmoid.backward_device_ns == total_ns(found.work_under(evaluate("SigmoidBackward0")))
    assert tanh.self_device_ns == tanh.backward_device_ns + total_ns(found.work_under("aten::tanh"))
    nodes = [evaluate("PowBackward0"), evaluate("SumBackward0")]
    assert found.at("loss").backward_device_ns == total_ns(found.work_under(*nodes))
    everything = total_ns(found.work_under(evaluate("TanhBackward0"), evaluate("SigmoidBackward0"), *nodes))
    assert found.at("backward").total_device_ns >= everything


def test_a_training_loop_puts_each_phase_at_its_line(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, SIZE)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = matrix()
    with deepscope.profile(tmp_path, wait=1, warmup=1, active=3) as prof:
        for _ in range(6):
            optimizer.zero_grad()
            loss = net(x).square().mean()  # @train_forward
            loss.backward()  # @train_backward
            optimizer.step()  # @train_step
            prof.step()

    found = recorded(prof, HERE)
    assert found.profile.totals.steps == 3
    update = found.work_under("Optimizer.step#SGD.step")
    assert found.at("train_step").self_device_ns == total_ns(update), found.describe_lines()
    linear = found.work_under(evaluate("AddmmBackward0"), evaluate("ReluBackward0"))
    assert found.at("train_forward").backward_device_ns >= total_ns(linear)
    assert sum(step.device_ns for step in found.profile.steps) == total_ns(found.work)


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.sin(x)  # @custom_forward

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * torch.cos(x)  # @custom_backward


def test_a_custom_function_keeps_the_lines_of_its_backward(tmp_path: Path) -> None:
    x = matrix(grad=True)

    def code() -> None:
        x.grad = None
        y = Sine.apply(x)  # @apply
        y.sum().backward()

    found = record(code, tmp_path)
    assert found.at("custom_forward").self_device_ns == total_ns(found.work_under("aten::sin")), found.describe_lines()
    backward = total_ns(found.work_under("SineBackward"))
    if sees_autograd_threads:
        assert found.at("custom_backward").self_device_ns == backward
    else:
        lines = [found.at("custom_backward"), found.at("apply"), found.at("custom_forward")]
        assert any(line.backward_device_ns >= backward for line in lines)


def block(x: Tensor) -> Tensor:
    y = torch.sin(x)  # @recomputed
    return torch.tanh(y)  # @recomputed_tanh


def test_checkpointing_gives_recomputation_to_the_recomputed_lines(tmp_path: Path) -> None:
    x = matrix(grad=True)

    def code() -> None:
        x.grad = None
        y = checkpoint(block, x, use_reentrant=False)  # @checkpoint
        y.sum().backward()  # @checkpoint_backward

    found = record(code, tmp_path)
    runs = found.work_under("aten::sin")
    assert len(runs) == 2
    line = found.at("recomputed")
    if sees_autograd_threads:
        # Its own backward (SinBackward0: cos, mul) comes on top of both runs of the forward.
        backward = total_ns(found.work_under(evaluate("SinBackward0")))
        assert line.self_device_ns == total_ns(runs) + backward, found.describe_lines()
    else:
        assert line.self_device_ns >= min(run.duration_ns for run in runs)


def test_autocast_casts_and_scaler_stand_at_their_lines(tmp_path: Path) -> None:
    net = nn.Linear(SIZE, SIZE, bias=False).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    x = matrix()

    def code() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            y = net(x)  # @amp_forward
        loss = y.float().square().mean()  # @amp_loss
        scaler.scale(loss).backward()  # @amp_backward
        scaler.step(optimizer)  # @amp_step
        scaler.update()  # @amp_update

    found = record(code, tmp_path)
    forward_line = found.at("amp_forward")
    casts = found.work_under("aten::to")
    product = found.work_under("aten::linear")
    inside = {id(span): span for span in [*casts, *product]}
    in_loss = {id(span) for span in casts} - {id(span) for span in product}
    forward_ns = forward_line.self_device_ns - forward_line.backward_device_ns
    assert total_ns(product) <= forward_ns <= total_ns(list(inside.values())), found.describe_lines()
    assert in_loss, "y.float() casts on the next line"
    assert forward_line.backward_device_ns > 0
    assert found.at("amp_step").wait_ns > 0, "the scaler reads found_inf from the device"
    assert found.at("amp_step").d2h_bytes >= 4
    assert found.at("amp_update").self_device_ns > 0


def test_a_compiled_region_belongs_to_the_line_that_called_it_and_says_so(tmp_path: Path) -> None:
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("no C compiler")
    pytest.importorskip("triton", reason="no Triton")
    compiled = torch.compile(block)
    x = matrix()

    def code() -> None:
        compiled(x)  # @compiled

    found = record(code, tmp_path)
    line = found.at("compiled")
    assert line.self_device_ns == total_ns(found.work), found.describe_lines()
    assert line.in_compiled_region


def test_a_thread_of_the_user_has_lines_of_its_own(tmp_path: Path) -> None:
    if not torch_compat.all_threads_are_safe():
        pytest.skip(f"torch {torch.__version__} records no threads of the user's without a risk to the process")
    x = matrix()

    def in_thread() -> None:
        torch.cos(x)  # @thread

    def code() -> None:
        torch.sin(x)  # @main_thread
        worker = threading.Thread(target=in_thread)
        worker.start()
        worker.join()

    found = record(code, tmp_path)
    assert found.at("thread").self_device_ns == total_ns(found.work_under("aten::cos")), found.describe_lines()
    assert found.at("main_thread").self_device_ns == total_ns(found.work_under("aten::sin"))
