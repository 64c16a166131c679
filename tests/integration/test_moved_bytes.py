"""Bytes of real runs, exactly those of the tensors that torch hands to its operators and gets back from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import deepscope
from deepscope.analysis.numbers.byte_formulas import BYTES
from deepscope.analysis.ownership.calls import nest
from deepscope.analysis.ownership.owners import find_operators
from deepscope.analysis.tables.why import moved_by
from deepscope.trace.arrays import nearest, pick
from deepscope.trace.names import VIEWS
from deepscope.trace.read import read_trace
from recorded import TESTS


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def real_bytes(tensor: torch.Tensor) -> int:
    """Of the elements that it is made of: an expanded dimension has one. A number is not counted."""
    if not tensor.dim():
        return 0
    sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or not size]
    return tensor.element_size() * int(torch.Size(sizes).numel())


_WRITTEN_ALONE = {"copy_", "fill_", "zero_", "bernoulli_", "uniform_"}
_SMALL_RESULTS = {"sum", "mean", "amax", "argmax", "var"}


class ByteCounter(TorchDispatchMode):
    """Adds up what the operators read and write, by their tensors alone."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: Counter[str] = Counter()
        self.unknown: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function._schema.name
        if name not in BYTES:
            self.unknown.add(name)
            return result
        given = list(tensors([args, kwargs or {}]))
        short = name.removeprefix("aten::")
        read = given[1:] if short in _WRITTEN_ALONE else given
        written = [] if short in _SMALL_RESULTS else list(tensors(result))[:1]
        if short == "native_dropout":
            written = list(tensors(result))
        self.moved[name] += sum(map(real_bytes, read)) + sum(one.numel() * one.element_size() for one in written)
        return result


def element_wise() -> None:
    x, row = torch.randn(64, 32), torch.randn(32)
    half, count = x.bfloat16(), torch.arange(32)
    torch.relu(x + row * 2)
    functional.gelu(half.mul(row))
    (x > row).logical_not()
    torch.where(x > 0, half, half).sigmoid()
    functional.silu(x)
    x.mul_(row).add_(1).clamp_(0, 1)
    (count + 1) * row[0]
    row.expand(64, 32) * x
    torch.addcmul(x, x, row)
    x.masked_fill(x > 0, 1.0)
    x.tril().cumsum(0)


def copies() -> None:
    x = torch.randn(64, 32)
    x.bfloat16().float()
    torch.empty(64, 32).copy_(x)
    torch.zeros(16, 16).fill_(3).zero_()
    x.t().contiguous()


def reductions() -> None:
    x = torch.randn(64, 32)
    x.sum(), x.mean(1), x.amax(0), x.argmax(), x.bfloat16().sum(0)
    x.softmax(1), x.log_softmax(0)


def products() -> None:
    a, b = torch.randn(16, 24), torch.randn(24, 8)
    a @ b
    torch.addmm(torch.randn(8), a, b)
    torch.bmm(torch.randn(3, 4, 5), torch.randn(3, 5, 6))
    a.bfloat16() @ b.bfloat16()


def convolutions() -> None:
    x = torch.randn(2, 4, 9, 9)
    nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2)(x)
    nn.Conv2d(4, 6, (3, 2), dilation=(2, 1), bias=False)(x)


def layers() -> None:
    x = torch.randn(8, 16, 32)
    functional.dropout(x, 0.5, training=True)
    functional.relu(nn.Linear(32, 8)(x))


@pytest.mark.parametrize("work", [element_wise, copies, reductions, products, convolutions, layers])
def test_bytes_are_those_of_the_tensors(tmp_path: Path, work: Callable[[], None]):
    counter = ByteCounter()
    with torch.no_grad():
        with counter:
            work()
        with deepscope.profile(tmp_path, root=TESTS, record_shapes=True) as recording:
            work()
    trace = read_trace(recording.traces[0])
    found: Counter[str] = Counter()
    operators = find_operators(trace, nest(trace).parent)
    names = [trace.strings[name] for name in trace.events.name[operators.nodes]]
    # The mode sees no operator that another one of those it sees calls.
    seen = np.array([name in counter.moved or name in counter.unknown for name in names])
    outermost = seen & (pick(nearest(operators.caller, seen), operators.caller) < 0)
    bytes_of = moved_by(trace, operators.nodes, operators.nodes * 0).size_bytes
    for place in np.flatnonzero(outermost).tolist():
        if names[place] in counter.moved:
            assert bytes_of[place] > 0, names[place]
            found[names[place]] += int(bytes_of[place])
    assert {name: found[name] for name in counter.moved} == dict(counter.moved)
    assert counter.moved


def test_what_torch_calls_pointwise_has_a_formula():
    """But for rare functions, which nobody's training spends its time in."""
    rare = ("special_", "float_power", "bitwise", "igamma", "_conj", "xlogy", "rrelu", "mvlgamma", "polygamma", "frexp",
            "isin", "__", "max", "min", "equal", "logical")  # fmt: skip
    lacking = []
    for full in torch._C._dispatch_get_all_op_names():
        name, _, overload = full.partition(".")
        if not name.startswith("aten::") or name[6:].startswith(rare):
            continue
        packet = getattr(torch.ops.aten, name[6:], None)
        overload_of = getattr(packet, overload or "default", None)
        if overload_of is not None and torch.Tag.pointwise in overload_of.tags and name not in {*BYTES, *VIEWS}:
            lacking.append(name)
    assert set(lacking) == set()


def test_views_move_nothing_and_have_no_formula():
    assert not VIEWS & set(BYTES)
