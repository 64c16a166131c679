"""Numbers with runs drawn together, of ranks and of steps."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ranges"]


def ranges(numbers: Iterable[int]) -> str:
    """`0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
