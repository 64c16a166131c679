"""Values that no reader expects."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

__all__ = ["nasty_value"]

_NUMBERS = [
    0, 1, -1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**40, 2**52, 2**53, 2**53 + 1, 2**60, 2**61, 2**62,
    2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**19, 10**30, 10**400, -2, -(2**31), -(2**31) - 1, -(2**53), -(2**62),
    -(2**63), -(2**63) - 1, -(10**30), 0.5, -0.0, 0.001, 1e-300, 1.5e15, 1e18, -1e18, 9.2e15, 4.6e15, 1e19, 1e300,
    -1e300, float("inf"), float("-inf"), float("nan"),
]  # fmt: skip
_WORDS = [
    "", " ", "0", "-1", "12", "007", "1e5", "nan", "9" * 18, "9" * 50, "9" * 5000, "\u0663", "\u00b2", "x", "é",
    "\U0001f600", "\ud800", "a\udfffb", "\0", "a\0b", "\n", "\r\n", "\x1b[31m", '"', "\\", "\u2028", "<script>",
    "[x](command:y)", "}, {", '"}, {"ph": "X"', "]}", "ProfilerStep#1", "../../etc/passwd", "/", "C:\\x\\y.py",
    "a;b;c", "(", "f.py(3): g", "; ; ;", "x" * 100_000,
]  # fmt: skip


def _nested(dice: random.Random) -> Any:
    value: Any = dice.choice([1, "x", None])
    for _ in range(dice.choice([1, 2, 3, 50, 300])):
        value = [value] if dice.random() < 0.5 else {"a": value}
    return value


_MAKERS: list[Callable[[random.Random], Any]] = [
    lambda dice: dice.choice(_NUMBERS),
    lambda dice: dice.choice(_NUMBERS),
    lambda dice: dice.randrange(-(2 ** dice.randrange(1, 80)), 2 ** dice.randrange(1, 80)),
    lambda dice: str(dice.choice(_NUMBERS)),
    lambda dice: dice.choice(_WORDS),
    lambda dice: dice.choice([None, True, False, [], {}, [[]], [None], {"": None}]),
    lambda dice: [dice.choice(_NUMBERS) for _ in range(dice.randrange(6))],
    lambda dice: [[dice.choice(_NUMBERS) for _ in range(dice.randrange(4))] for _ in range(dice.randrange(4))],
    _nested,
]


def nasty_value(dice: random.Random) -> Any:
    """Of any type; floats that JSON has no word for among them."""
    return dice.choice(_MAKERS)(dice)
