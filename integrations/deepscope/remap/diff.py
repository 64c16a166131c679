"""Which line of one text is which line of another: in order by ends, anchors and common blocks, then moved blocks.

The anchors are those of patience diff (https://bramcohen.livejournal.com/73318.html): a line that stands once in both
texts is the same line, and the longest rising sequence of such lines splits the texts into smaller pairs. Where no
single line stands once, runs of two and of four lines are tried before difflib's longest common blocks.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from deepscope.records import SourceFile
from deepscope.records.source_files import source_lines

MEANINGFUL_LENGTH = 6


def is_meaningful(line: str) -> bool:
    """Whether a line says enough to be recognised elsewhere: a lone bracket, `else:` or a blank line does not."""
    stripped = line.strip()
    return len(stripped) >= MEANINGFUL_LENGTH and any(character.isalnum() for character in stripped)


def without_indent(line: str) -> str:
    """A line as it is compared: a line that a new `if` or `with` has moved to the right is the same line."""
    return line.lstrip(" \t\f")


def is_same_text(recorded: SourceFile, lines: Sequence[str]) -> bool:
    """Whether `lines` is the recorded text, whatever its line ends; by hash where the trace has no text.

    A hash is of the file's bytes, so both usual line ends are tried, with and without the last one (a notebook's cell
    has none).
    """
    if recorded.text is not None:
        return _without_end(source_lines(recorded.text)) == _without_end(lines)
    if not recorded.sha256:
        return False
    body = _without_end(lines)
    for end in ("\n", "\r\n"):
        text = end.join(body)
        if any(_digest(text + last) == recorded.sha256 for last in (end, "")):
            return True
    return False


def telling_lines(text: str) -> set[str]:
    """The lines of a text that say enough to be recognised elsewhere, without the white space around them."""
    return {line.strip() for line in source_lines(text) if is_meaningful(line)}


def shared_ratio(recorded: str, lines: Sequence[str]) -> float:
    """The share of the recorded text's telling lines that stand in `lines` too, 0 to 1; 0 where none is telling."""
    return shared_part(telling_lines(recorded), {line.strip() for line in lines})


def shared_part(wanted: set[str], lines: set[str]) -> float:
    """The share of the lines `wanted` that are among `lines`, 0 to 1; 0 where none is wanted."""
    return len(wanted & lines) / len(wanted) if wanted else 0.0


def _without_end(lines: Sequence[str]) -> list[str]:
    return list(lines[:-1] if lines and not lines[-1] else lines)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


UNMATCHED = -1

RUN_LENGTHS = (1, 2, 4)

BLOCK_LIMIT = 250_000
"""Pairs of lines up to which common blocks are looked for: the search is quadratic in texts that repeat themselves."""


def match_indented(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """The same for lines that may have been indented anew.

    Lines that are equal with their white space and say where they belong come first, so that of two lines that read
    alike each keeps its own; what lies between them is compared without the white space before it.
    """
    origin = match_lines(old, new, with_blocks=False)
    old_start = new_start = 0
    for place in range(len(new) + 1):
        home = origin[place] if place < len(new) else len(old)
        if home == UNMATCHED:
            continue
        if place > new_start and home > old_start:
            gap = (
                [without_indent(line) for line in old[old_start:home]],
                [without_indent(line) for line in new[new_start:place]],
            )
            for index, found in enumerate(match_lines(*gap), new_start):
                if found != UNMATCHED:
                    origin[index] = old_start + found
        old_start, new_start = home + 1, place + 1
    return origin


def match_lines(old: Sequence[str], new: Sequence[str], *, with_blocks: bool = True) -> list[int]:
    """For each line of `new` the index of the line of `old` that it is, or -1; the indices rise.

    Without blocks only ends and anchors count.
    """
    origin = [UNMATCHED] * len(new)
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        old_start, old_end, new_start, new_end = waiting.pop()
        while old_start < old_end and new_start < new_end and old[old_start] == new[new_start]:
            origin[new_start] = old_start
            old_start, new_start = old_start + 1, new_start + 1
        while old_start < old_end and new_start < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
            origin[new_end] = old_end
        if old_start == old_end or new_start == new_end:
            continue
        part = old[old_start:old_end], new[new_start:new_end]
        anchors = [(old_start + left, new_start + right) for left, right in _anchors(*part)]
        if not anchors and not with_blocks:
            continue
        if not anchors:
            for left, right, size in _blocks(*part):
                for place in range(size):
                    origin[new_start + right + place] = old_start + left + place
            continue
        ends = [(old_start - 1, new_start - 1), *anchors, (old_end, new_end)]
        for left, right in anchors:
            origin[right] = left
        waiting.extend((before[0] + 1, after[0], before[1] + 1, after[1]) for before, after in pairwise(ends))
    return origin


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    for length in RUN_LENGTHS:
        pairs = _once_in_both(_runs(old, length), _runs(new, length))
        if pairs:
            return _rising(pairs)
    return []


def _runs(lines: Sequence[str], length: int) -> Sequence[Hashable]:
    if length == 1:
        return lines
    return list(zip(*(lines[shift:] for shift in range(length)), strict=False))


def _once_in_both(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of places of what stands once in each, in the order of `new`."""
    old_places, new_places = _places_of_single(old), _places_of_single(new)
    pairs = []
    for entry, place in new_places.items():
        partner = old_places.get(entry, UNMATCHED)
        if place >= 0 and partner >= 0:
            pairs.append((partner, place))
    return pairs


def _places_of_single(entries: Sequence[Hashable]) -> dict[Hashable, int]:
    """Entry → its place; -1 for what stands more than once."""
    places: dict[Hashable, int] = {}
    for place, entry in enumerate(entries):
        places[entry] = UNMATCHED if entry in places else place
    return places


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence in which the old places rise too (patience sorting, O(n log n))."""
    tops: list[int] = []
    top_pairs: list[int] = []
    before: list[int] = []
    for index, (old, _) in enumerate(pairs):
        pile = bisect_left(tops, old)
        before.append(top_pairs[pile - 1] if pile else UNMATCHED)
        if pile == len(tops):
            tops.append(old)
            top_pairs.append(index)
        else:
            tops[pile] = old
            top_pairs[pile] = index
    chosen = []
    index = top_pairs[-1]
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _blocks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    if len(old) * len(new) > BLOCK_LIMIT:
        return []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


BLOCK_LINES = 3
"""So many lines in a row that say something are a block moved, even if each of them stands elsewhere too."""


@dataclass(frozen=True, slots=True)
class UnmatchedSides:
    """The recorded text and the current text, and which lines of each have no partner in the other."""

    recorded: Sequence[str]
    lines: Sequence[str]
    is_lost: Callable[[int], bool]
    """Whether a recorded line (by index) has no partner."""
    is_loose: Callable[[int], bool]
    """Whether a current line (by index) has no partner."""
    stands_once: Callable[[str], bool]
    """Whether a text stands once in each of the two whole texts."""


def find_moves(sides: UnmatchedSides, starts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
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


def _grown(sides: UnmatchedSides, home: int, place: int, homes: set[int], places: set[int]) -> list[tuple[int, int]]:
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


def _is_move(sides: UnmatchedSides, block: list[tuple[int, int]]) -> bool:
    texts = [text for left, _ in block if is_meaningful(text := sides.recorded[left])]
    return len(texts) >= BLOCK_LINES or any(sides.stands_once(text) for text in texts)
