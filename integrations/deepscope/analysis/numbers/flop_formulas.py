"""FLOPs of one call of an operator, from the shapes of its arguments.

The formulas are those of torch.utils.flop_counter (a multiplication and an addition are two; biases, softmax and masks
are not counted), so that its FlopCounterMode gives the same numbers:
https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

__all__ = ["FORMULAS", "UNREADABLE", "Formula", "flops_of_call", "output_sizes"]

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What formulas raise for arguments of another version's form, or of a trace that was tampered with."""
_LARGEST = 2**60

Shapes = list[Any]
"""One entry an argument: its sizes, `[]` for a number or what is no tensor, a list of sizes for a list of tensors."""
Words = list[str]
"""One entry an argument: the value of a number, a flag or a list of numbers as a word; "" for all else."""
Formula = Callable[[Shapes, Words], int]
"""Raises IndexError, TypeError or ValueError for arguments of a form that it does not know."""


def _product(a: list[int], b: list[int]) -> int:
    """A product of matrices, batched or not; the batch stands in front."""
    if a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise ValueError("no product of these shapes")
    return 2 * prod(a) * b[-1]


def _grouped(a: list[int], b: list[int]) -> int:
    """Groups of products: each row (or, where both are flat, each inner place) belongs to one group only."""
    if len(a) == len(b) == 3:
        return _product(a, b)
    rows, inner, columns = a[-2], a[-1], b[-1]
    if len(a) == 3:  # groups times rows, the columns shared out among the groups
        return 2 * rows * inner * columns
    return 2 * rows * inner * columns if inner == b[-2] else _unknown()


def _unknown() -> int:
    raise ValueError("not known from shapes")


def _attention(query: list[int], key: list[int], value: list[int]) -> int:
    """Scores, and their product with the values; all of sizes (batch, heads, sequence, width).

    The query's heads count; several may share one of the key's. A causal mask takes nothing off.
    """
    batch, heads, rows, width = query
    return 2 * batch * heads * rows * key[2] * (width + value[3])


def _attention_backward(query: list[int], key: list[int], value: list[int]) -> int:
    """Scores anew, gradients of scores and values, then those of query and key: five products."""
    batch, heads, rows, width = query
    return 2 * batch * heads * rows * key[2] * (3 * width + 2 * value[3])


def _heads_second(sizes: list[int]) -> list[int]:
    batch, sequence, heads, width = sizes
    return [batch, heads, sequence, width]


def _flash(first: int, formula: Callable[[list[int], list[int], list[int]], int], lengths: int | None) -> Formula:
    """Attention kernels with the sequence in front of the heads.

    Args:
        first: the place of the query.
        formula: of the product.
        lengths: the place of the sequences' offsets: the lengths then are in a tensor, which a trace does not hold.
    """

    def flops(shapes: Shapes, _words: Words) -> int:
        if lengths is not None and shapes[lengths]:
            return _unknown()
        query, key, value = (_heads_second(sizes) for sizes in shapes[first : first + 3])
        return formula(query, key, value)

    return flops


def _convolved(x: list[int], weight: list[int], spatial: list[int]) -> int:
    """Every place of `spatial` times the filter, for every sample and pair of channels."""
    return 2 * x[0] * prod(spatial) * prod(weight)


def _numbers(word: str, count: int) -> list[int]:
    """`[2, 2]` as numbers, a single one repeated."""
    values = [int(part) for part in word.strip("[]() ").split(",") if part.strip()]
    return values * count if len(values) == 1 else values


def output_sizes(x: list[int], weight: list[int], stride: str, padding: str, dilation: str) -> list[int]:
    """Spatial sizes of a convolution's result, https://pytorch.org/docs/stable/generated/torch.nn.Conv2d.html."""
    spatial, kernel = x[2:], weight[2:]
    steps, pads, gaps = (_numbers(word, len(spatial)) for word in (stride, padding, dilation))
    return [
        (size + 2 * pad - gap * (width - 1) - 1) // step + 1
        for size, width, step, pad, gap in zip(spatial, kernel, steps, pads, gaps, strict=True)
    ]


def _convolution(stride: int, padding: int, dilation: int, transposed: int | None) -> Formula:
    """A convolution, by the places of its arguments; a transposed one works at each place of its input."""

    def flops(shapes: Shapes, words: Words) -> int:
        x, weight = shapes[0], shapes[1]
        if transposed is not None and words[transposed] == "True":
            return _convolved(x, weight, x[2:])
        return _convolved(x, weight, output_sizes(x, weight, words[stride], words[padding], words[dilation]))

    return flops


def _convolution_backward(shapes: Shapes, words: Words) -> int:
    """`(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, …, output_mask)`.

    Gradients of input and weight take a convolution each; one that the mask leaves out takes none.
    """
    grad, x, weight = shapes[:3]
    transposed = words[7] == "True"
    wants_input, wants_weight = (part.strip() == "True" for part in words[10].strip("[]").split(",")[:2])
    flops = 0
    if wants_input:
        flops += _convolved(grad, weight, x[2:] if transposed else grad[2:])
    if wants_weight:
        # A convolution of the input with the gradient, batch and channels changing places.
        image, kernel = (grad, x) if transposed else (x, grad)
        flops += 2 * image[1] * prod(weight[2:]) * prod(kernel)
    return flops


def _of(first: int, second: int, formula: Callable[[list[int], list[int]], int] = _product) -> Formula:
    return lambda shapes, _words: formula(shapes[first], shapes[second])


def _sdpa(shapes: Shapes, _words: Words) -> int:
    return _attention(*shapes[:3])


def _sdpa_backward(shapes: Shapes, _words: Words) -> int:
    return _attention_backward(*shapes[1:4])


_SDPA = (
    "efficient_attention",
    "flash_attention",
    "cudnn_attention",
    "flash_attention_for_cpu",
    "fused_attention_overrideable",
)

FORMULAS: dict[str, Formula] = {
    "aten::mm": _of(0, 1),
    "aten::addmm": _of(1, 2),
    "aten::addmm_": _of(1, 2),
    "aten::_addmm_activation": _of(1, 2),
    "aten::bmm": _of(0, 1),
    "aten::baddbmm": _of(1, 2),
    "aten::baddbmm_": _of(1, 2),
    "aten::_scaled_mm": _of(0, 1),
    "aten::_scaled_mm_v2": _of(0, 1),
    "aten::_grouped_mm": _of(0, 1, _grouped),
    "aten::_scaled_grouped_mm": _of(0, 1, _grouped),
    "aten::_scaled_grouped_mm_v2": _of(0, 1, _grouped),
    "aten::convolution": _convolution(3, 4, 5, 6),
    "aten::_convolution": _convolution(3, 4, 5, 6),
    "aten::convolution_overrideable": _convolution(3, 4, 5, 6),
    "aten::cudnn_convolution": _convolution(3, 2, 4, None),
    "aten::miopen_convolution": _convolution(4, 3, 5, None),
    "aten::mkldnn_convolution": _convolution(4, 3, 5, None),
    "aten::convolution_backward": _convolution_backward,
    "aten::convolution_backward_overrideable": lambda shapes, words: _convolution_backward(
        shapes, [*words[:3], "", *words[3:]]
    ),
    **{f"aten::_scaled_dot_product_{name}": _sdpa for name in _SDPA},
    **{f"aten::_scaled_dot_product_{name}_backward": _sdpa_backward for name in _SDPA},
    "aten::_flash_attention_forward": _flash(0, _attention, 3),
    "aten::_flash_attention_backward": _flash(1, _attention_backward, 6),
    "aten::_efficient_attention_forward": _flash(0, _attention, 4),
    "aten::_efficient_attention_backward": _flash(1, _attention_backward, 6),
    "flash_attn::_flash_attn_forward": _flash(0, _attention, None),
    "flash_attn::_flash_attn_backward": _flash(1, _attention_backward, None),
}
"""By the operator's name as a trace has it."""


def flops_of_call(name: str, shapes: Shapes, words: Words) -> int | None:
    """FLOPs of one call of an operator; None where it has no formula, or its arguments do not tell."""
    formula = FORMULAS.get(name)
    if formula is None:
        return None
    try:
        flops = formula(shapes, words)
    except UNREADABLE:
        return None
    return flops if isinstance(flops, int) and 0 <= flops < _LARGEST else None
