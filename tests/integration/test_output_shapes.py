"""Shapes of results that are worked out from a trace are those that torch gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from deepscope.analysis.build import build_profile
from deepscope.analysis.numbers.arguments import OUTPUTS
from deepscope.trace.read import read_trace


class Results(TorchDispatchMode):
    """Collects the shapes of each operator's arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[str, str], list[list[int]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        results = found if isinstance(found, (tuple, list)) else [found]
        shapes = [list(one.shape) for one in results if isinstance(one, torch.Tensor)]
        given = [list(one.shape) if isinstance(one, torch.Tensor) else [] for one in args]
        self.seen[f"aten::{func.overloadpacket.__name__}", json.dumps(_tensors(given))] = shapes
        return found


def _tensors(shapes: list[Any]) -> list[Any]:
    """The first ones, as far as both ways of recording know them."""
    return [one for one in shapes if one and isinstance(one[0], int)]


def work() -> None:
    a, b, batches = torch.randn(6, 8), torch.randn(8, 5), torch.randn(3, 6, 8)
    x = torch.randn(2, 4, 9, 9, requires_grad=True)
    torch.mm(a, b).add(torch.randn(5)).relu().sum().item()
    torch.addmm(torch.randn(5), a, b)
    torch.bmm(batches, batches.mT)
    torch.baddbmm(torch.randn(3, 6, 6), batches, batches.mT)
    torch.add(torch.randn(1, 8), torch.randn(6, 1))
    torch.where(a > 0, a, torch.randn(8))
    torch.softmax(a, -1).log()
    functional.gelu(functional.layer_norm(a, (8,)))
    functional.embedding(torch.randint(0, 10, (4, 7)), torch.randn(10, 3))
    weight = torch.randn(8, 2, 3, 3, requires_grad=True)
    functional.conv2d(x, weight, stride=2, padding=1, groups=2).square().sum().backward()
    functional.conv1d(torch.randn(2, 4, 9), torch.randn(5, 4, 3), dilation=2)
    functional.batch_norm(torch.randn(4, 3, 5, 5), None, None, training=True)
    functional.scaled_dot_product_attention(*(torch.randn(2, 4, 16, 8) for _ in range(3)))


def recorded(path: Path, function: Callable[[], None]) -> dict[tuple[str, str], list[list[int]]]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        function()
    profiler.export_chrome_trace(str(path))
    rows = build_profile(read_trace(path), details=("shapes",)).operators_in_detail
    return {
        (row.name, json.dumps(_tensors(json.loads(row.in_shapes)))): json.loads(row.out_shapes)
        for row in rows
        if row.out_shapes
    }


def test_they_are_those_of_torch(tmp_path: Path) -> None:
    found = recorded(tmp_path / "t.json", work)
    with Results() as results:
        work()
    both = set(found) & set(results.seen)
    assert {name for name, _ in both} >= {
        "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::add", "aten::where", "aten::_softmax",
        "aten::embedding", "aten::convolution", "aten::native_layer_norm", "aten::native_batch_norm",
    }  # fmt: skip
    for key in both:
        assert found[key] == results.seen[key][: len(found[key])], key


@pytest.mark.parametrize(
    "junk", ["[]", '[["x"]]', "[[1], [2]]", "[[-1, 2], [2, 3]]", "{}", "null", "[[[[]]]]", "[1, 2]"]
)
def test_junk_has_no_result_or_one_of_numbers(junk: str) -> None:
    for formula in OUTPUTS.values():
        try:
            found = formula(json.loads(junk), ["", "x"])
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            continue
        assert isinstance(found, list)
