"""Blocks that were cut and pasted elsewhere: lines lost in one place and found in another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from deepscope.remap.likeness import is_meaningful

BLOCK_LINES = 3
"""So many lines in a row that say something are a block moved, even if each of them stands elsewhere too."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The recorded text and the current text, and which lines of each have no partner in the other."""

    recorded: Sequence[str]
    lines: Sequence[str]
    is_lost: Callable[[int], bool]
    """Whether a recorded line (by index) has no partner."""
    is_loose: Callable[[int], bool]
    """Whether a current line (by index) has no partner."""
    stands_once: Callable[[str], bool]
    """Whether a text stands once in each of the two whole texts."""


def find_moves(sides: Sides, starts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of (recorded index, index now) of the moved blocks around `starts`, pairs of equal lines without partner.

    A block grows over equal neighbours without a partner. It counts as moved when it holds a line that stands once in
    each whole text, or `BLOCK_LINES` lines that say something: one common line, deleted here and typed there, is no
    move.
    """
    homes: set[int] = set()
    places: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for home, place in starts:
        if home in homes or place in places:
            continue
        block = _grown(sides, home, place, homes, places)
        if _is_move(sides, block):
            pairs.extend(block)
            homes.update(left for left, _ in block)
            places.update(right for _, right in block)
    return pairs


def _grown(sides: Sides, home: int, place: int, homes: set[int], places: set[int]) -> list[tuple[int, int]]:
    def is_same(home: int, place: int) -> bool:
        return (
            0 <= home < len(sides.recorded)
            and 0 <= place < len(sides.lines)
            and sides.recorded[home] == sides.lines[place]
            and sides.is_lost(home)
            and sides.is_loose(place)
            and home not in homes
            and place not in places
        )

    before, after = 0, 0
    while is_same(home - before - 1, place - before - 1):
        before += 1
    while is_same(home + after + 1, place + after + 1):
        after += 1
    return [(home + shift, place + shift) for shift in range(-before, after + 1)]


def _is_move(sides: Sides, block: list[tuple[int, int]]) -> bool:
    texts = [text for left, _ in block if is_meaningful(text := sides.recorded[left])]
    return len(texts) >= BLOCK_LINES or any(sides.stands_once(text) for text in texts)
