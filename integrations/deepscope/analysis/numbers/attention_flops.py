"""FLOPs of fused attention: the pairs of queries and keys that its mask leaves, times the widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AttentionFormula = Callable[[list[Any], list[str]], int]
_Spans = Callable[[list[str], int, int], int]
"""From the words of a call, the length of the queries and that of the keys to the pairs that count."""


def pairs_within(rows: int, columns: int, *, shift: int = 0, left: int = -1, right: int = -1) -> int:
    """Pairs of query i and key j with `i + shift - left <= j <= i + shift + right`; -1 stands for no bound."""
    upper = _clamped_sum(rows, shift + right + 1, columns) if right >= 0 else rows * columns
    lower = _clamped_sum(rows, shift - left, columns) if left >= 0 else 0
    return max(upper - lower, 0)


def _clamped_sum(count: int, start: int, most: int) -> int:
    """The sum of `min(max(start + i, 0), most)` over i below `count`."""
    first = min(max(-start, 0), count)
    full = min(max(most - start, first), count)
    rising = full - first
    return rising * start + (first + full - 1) * rising // 2 + (count - full) * most


def _flagged(place: int) -> _Spans:
    """`is_causal`: query i meets the keys up to i."""
    return lambda words, rows, columns: pairs_within(rows, columns, right=0 if _word(words, place) == "True" else -1)


def _window(causal: int, left: int, right: int) -> _Spans:
    """FlashAttention: the last query meets the last key, a causal call has no key after it, and windows bound both."""

    def pairs(words: list[str], rows: int, columns: int) -> int:
        before, after = (_bound(_word(words, place)) for place in (left, right))
        after = 0 if _word(words, causal) == "True" else after
        return pairs_within(rows, columns, shift=columns - rows, left=before, right=after)

    return pairs


def _mask_type(place: int) -> _Spans:
    """The `custom_mask_type` of memory-efficient attention: 1 begins at the first key, 2 ends at the last."""

    def pairs(words: list[str], rows: int, columns: int) -> int:
        kind = _word(words, place)
        shift = columns - rows if kind == "2" else 0
        return pairs_within(rows, columns, shift=shift, right=0 if kind in ("1", "2") else -1)

    return pairs


def _word(words: list[str], place: int) -> str:
    """A word of the call; "" where the trace does not tell."""
    return words[place] if place < len(words) else ""


def _bound(word: str) -> int:
    return int(word) if word.lstrip("-").isdecimal() else -1


def _attention(pairs: int, width: int, value_width: int) -> int:
    """Scores, and their product with the values."""
    return 2 * pairs * (width + value_width)


def _attention_backward(pairs: int, width: int, value_width: int) -> int:
    """Scores anew, gradients of scores and values, then those of query and key: five products."""
    return 2 * pairs * (3 * width + 2 * value_width)


def _fused(first: int, products: Callable[[int, int, int], int], spans: _Spans, *, heads: int = 1) -> AttentionFormula:
    """Attention over query, key and value from the place `first` on; several heads of the query may share a key's.

    `heads` is the dimension of the heads: 1, or 2 where the sequence stands in front of them.
    """

    def flops(shapes: list[Any], words: list[str]) -> int:
        query, key, value = shapes[first : first + 3]
        if not len(query) == len(key) == len(value) == 4:
            raise ValueError("no heads, or sequences of varying length")
        pairs = spans(words, query[3 - heads], key[3 - heads])
        return products(query[0] * query[heads] * pairs, query[3], value[3])

    return flops


def _of_equal_length(lengths: int, formula: AttentionFormula) -> AttentionFormula:
    """Where offsets of sequences are given, their lengths are in a tensor, which a trace does not hold."""

    def flops(shapes: list[Any], words: list[str]) -> int:
        if shapes[lengths]:
            raise ValueError("sequences of varying length")
        return formula(shapes, words)

    return flops


_SDPA = {
    "flash_attention": (4, 11),
    "efficient_attention": (6, 11),
    "cudnn_attention": (6, 14),
    "flash_attention_for_cpu": (4, 7),
    "fused_attention_overrideable": (5, 13),
}
"""The places of `is_causal`, forward and backward."""

ATTENTION: dict[str, AttentionFormula] = {
    **{
        f"aten::_scaled_dot_product_{name}": _fused(0, _attention, _flagged(place))
        for name, (place, _) in _SDPA.items()
    },
    **{
        f"aten::_scaled_dot_product_{name}_backward": _fused(1, _attention_backward, _flagged(place))
        for name, (_, place) in _SDPA.items()
    },
    "aten::_flash_attention_forward": _of_equal_length(3, _fused(0, _attention, _window(8, 11, 12), heads=2)),
    "aten::_flash_attention_backward": _of_equal_length(
        6, _fused(1, _attention_backward, _window(11, 15, 16), heads=2)
    ),
    "aten::_efficient_attention_forward": _of_equal_length(4, _fused(0, _attention, _mask_type(9), heads=2)),
    "aten::_efficient_attention_backward": _of_equal_length(6, _fused(1, _attention_backward, _mask_type(14), heads=2)),
    "aten::_cudnn_attention_forward": _of_equal_length(4, _fused(0, _attention, _flagged(10))),
    "aten::_cudnn_attention_backward": _of_equal_length(9, _fused(1, _attention_backward, _flagged(14))),
    "flash_attn::_flash_attn_forward": _fused(0, _attention, _window(5, 6, 7), heads=2),
    "flash_attn::_flash_attn_backward": _fused(1, _attention_backward, _window(11, 12, 13), heads=2),
}
"""By the operator's name. A mask that is a tensor takes nothing off; where the words of a call are not known, all
pairs count."""
