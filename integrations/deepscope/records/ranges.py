"""Numbers with runs drawn together, of ranks and of steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def ranges(numbers: Iterable[int]) -> str:
    """`0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


_RUNS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(, [0-9]{1,9}(-[0-9]{1,9})?)*")


@lru_cache(maxsize=4096)
def listed(text: str) -> tuple[int, ...]:
    """The numbers of such a text, ascending; none of any other text."""
    if not _RUNS.fullmatch(text):
        return ()
    numbers: list[int] = []
    for run in text.split(", "):
        first, _, last = run.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)
