"""Lines that were edited: which recorded line a current line most likely was, for numbers that are marked so."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from deepscope.remap.diff import match_lines

SIMILAR = 0.6
"""difflib's own cut-off for a close match."""

PAIR_LIMIT = 400
"""Pairs of lines of one gap up to which lines are compared letter by letter."""


@lru_cache(maxsize=256)
def pair_changed(old: tuple[str, ...], new: tuple[str, ...]) -> list[tuple[int, int]]:
    """Pairs of (old index, new index) in one gap between unchanged lines, both rising.

    Lines that differ in white space alone come first (a block indented by a new `with`), then the most similar ones
    between them. Answers are kept: the gaps that a keystroke leaves alone are asked about again.
    """
    stripped = [line.strip() for line in new]
    origin = match_lines([line.strip() for line in old], stripped)
    pairs = [(left, right) for right, left in enumerate(origin) if left >= 0]
    ends = [(-1, -1), *pairs, (len(old), len(new))]
    found = [pair for pair in pairs if stripped[pair[1]]]
    for before, after in pairwise(ends):
        lefts, rights = range(before[0] + 1, after[0]), range(before[1] + 1, after[1])
        if len(lefts) * len(rights) <= PAIR_LIMIT:
            found.extend(_most_similar(old, new, lefts, rights))
    return sorted(found)


def _most_similar(old: Sequence[str], new: Sequence[str], lefts: range, rights: range) -> list[tuple[int, int]]:
    """The rising pairs of the largest summed similarity (dynamic programming over the gap)."""
    columns = len(rights) + 1
    best = [[0.0] * columns for _ in range(len(lefts) + 1)]
    ratios = {}
    for row in range(len(lefts) - 1, -1, -1):
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(old[lefts[row]].strip())
        for column in range(len(rights) - 1, -1, -1):
            ratio = _ratio(matcher, new[rights[column]].strip())
            ratios[row, column] = ratio
            paired = best[row + 1][column + 1] + ratio if ratio else 0.0
            best[row][column] = max(best[row + 1][column], best[row][column + 1], paired)
    pairs = []
    row = column = 0
    while row < len(lefts) and column < len(rights):
        ratio = ratios[row, column]
        if ratio and best[row][column] == best[row + 1][column + 1] + ratio:
            pairs.append((lefts[row], rights[column]))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs


def _ratio(matcher: SequenceMatcher[str], text: str) -> float:
    """Similarity from `SIMILAR` to 1, or 0."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < SIMILAR or matcher.quick_ratio() < SIMILAR:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= SIMILAR else 0.0
