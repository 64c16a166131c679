"""Where each recorded line stands in a text that is being edited, kept current edit by edit.

An edit says itself which lines stayed the same, so a line outside it keeps its partner whatever else looks like it. The
lines that an edit brings are compared with the recorded lines lost around that place (undo brings them back), then with
all that are lost (cut and paste). Most keystrokes bring no line that was recorded and cost no comparison at all.

Invariant: a line has a partner only where both texts are equal but for the white space before them, and no partner is
shared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from deepscope.remap.diff import (
    UNMATCHED,
    UnmatchedSides,
    find_moves,
    is_meaningful,
    match_indented,
    match_lines,
    without_indent,
)


class LineMap:
    """Partners of recorded lines in `lines`, a list that its owner edits; lines count from 1.

    Args:
        recorded: the text that ran, line by line.
        lines: the text now. After each edit of this list the owner calls `spliced`.
    """

    def __init__(self, recorded: Sequence[str], lines: list[str]) -> None:
        self._recorded = list(recorded)
        self._lines = lines
        self._homes = [without_indent(line) for line in self._recorded]
        """The recorded lines as they are compared; `_texts` has those of now."""
        self._recorded_counts = Counter(self._homes)
        self._known_places: dict[int, int] | None = None
        self._known_edited: dict[int, int] | None = None
        self._known_homes: list[int] | None = None
        self._start_over()

    @property
    def lines(self) -> Sequence[str]:
        """The text now."""
        return self._lines

    @property
    def is_unchanged(self) -> bool:
        """Whether the text is the recorded one."""
        return not self._lost and self._lines == self._recorded

    def recorded_line(self, line: int) -> int | None:
        """The recorded line that stands at `line`, its text unchanged but for indentation; None where there is none."""
        if not 0 < line <= len(self._origin):
            return None
        home = self._origin[line - 1]
        return None if home == UNMATCHED else home + 1

    def line_of(self, recorded: int) -> int | None:
        """Where a recorded line stands now, its text unchanged but for indentation; None if it does not."""
        return self._places.get(recorded)

    def changed_between(self, first: int, last: int) -> dict[int, int]:
        """For the edited lines from `first` to `last`: current line → the recorded line that it was."""
        found: dict[int, int] = {}
        if not self._lost:
            return found
        place, end = max(0, first - 1), min(last, len(self._origin))
        while place < end:
            if self._origin[place] != UNMATCHED:
                place += 1
                continue
            gap = self._gap(place)
            homes = self._lost_between(gap.start, gap.stop)
            texts = tuple(self._recorded[home] for home in homes)
            for left, right in pair_changed(texts, tuple(self._lines[gap.start : gap.stop])):
                if first <= (line := gap.start + right + 1) <= last:
                    found[line] = homes[left] + 1
            place = gap.stop
        return found

    def edited_line_of(self, recorded: int) -> int | None:
        """Where a recorded line stands now with its text edited; None where it is unchanged or gone."""
        if self._known_edited is None:
            self._known_edited = {home: line for line, home in self.changed_between(1, len(self._origin)).items()}
        return self._known_edited.get(recorded)

    def near(self, recorded: int) -> int:
        """Where to look for a recorded line: where it stands, edited or not, else just below the nearest line above."""
        own = self.line_of(recorded) or self.edited_line_of(recorded)
        if own is not None:
            return own
        if self._known_homes is None:
            self._known_homes = sorted(self._places)
        above = bisect_left(self._known_homes, recorded) - 1
        if above < 0:
            return 1
        line = self._places[self._known_homes[above]]
        steps = recorded - self._known_homes[above]
        while steps and line < len(self._origin) and self._origin[line] == UNMATCHED:
            line, steps = line + 1, steps - 1
        return line

    def spliced(self, start: int, removed: Sequence[str], inserted: int) -> None:
        """Follows an edit: from line `start` on, `removed` was replaced by the `inserted` lines that stand there."""
        first = start - 1
        before = self._origin[first : first + len(removed)]
        now = self._lines[first : first + inserted]
        head = _common(removed, now)
        tail = _common(removed[head:][::-1], now[head:][::-1])
        gone, come = slice(head, len(removed) - tail), slice(head, inserted - tail)
        there = slice(first + head, first + len(removed) - tail)
        old, fresh = self._texts[there], [without_indent(line) for line in now[come]]
        self._texts[there] = fresh
        if old == fresh:
            return  # indented anew
        self._origin[there] = [UNMATCHED] * len(fresh)
        self._forget()
        self._take_out(old, before[gone])
        self._counts.update(fresh)
        self._loose.update(fresh)
        if self._texts == self._homes:
            self._start_over()
            return
        # A text that is gone may have been a copy that kept another place from being the only one for its line.
        if not any(text in self._lost and self._loose[text] for text in (*fresh, *old)):
            return
        self._match_around(first + head, first + head + len(fresh))
        self._match_moved([*fresh, *old])

    def _start_over(self) -> None:
        self._texts = [without_indent(line) for line in self._lines]
        origin = match_indented(self._recorded, self._lines)
        self._origin = origin
        known = set(origin)
        self._lost: dict[str, set[int]] = {}
        for index, text in enumerate(self._homes):
            if index not in known:
                self._lost.setdefault(text, set()).add(index)
        self._counts = Counter(self._texts)
        self._loose = Counter(text for text, home in zip(self._texts, origin, strict=True) if home == UNMATCHED)
        self._forget()
        if self._lost and self._loose:
            self._match_moved(list(self._lost))

    def _forget(self) -> None:
        self._known_places = self._known_edited = self._known_homes = None

    @property
    def _places(self) -> dict[int, int]:
        if self._known_places is None:
            self._known_places = {home + 1: place for place, home in enumerate(self._origin, 1) if home != UNMATCHED}
        return self._known_places

    def _take_out(self, texts: Sequence[str], homes: Sequence[int]) -> None:
        """Forgets removed lines; a recorded one among them has lost its partner."""
        for text, home in zip(texts, homes, strict=True):
            _take_one(self._counts, text)
            if home == UNMATCHED:
                _take_one(self._loose, text)
            else:
                self._lost.setdefault(text, set()).add(home)

    def _match_around(self, start: int, end: int) -> None:
        """Compares the lines without a partner around [start, end) with the recorded ones lost at that place."""
        while start > 0 and self._origin[start - 1] == UNMATCHED:
            start -= 1
        while end < len(self._origin) and self._origin[end] == UNMATCHED:
            end += 1
        homes = self._lost_between(start, end)
        origin = match_indented([self._recorded[home] for home in homes], self._lines[start:end])
        for place, index in enumerate(origin, start):
            if index != UNMATCHED:
                self._join(homes[index], place)

    def _lost_between(self, start: int, end: int) -> list[int]:
        """The recorded lines lost right after the partner before `start` and right before the partner at `end`."""
        before = self._origin[start - 1] if start else -1
        after = self._origin[end] if end < len(self._origin) else len(self._recorded)
        first = before + 1
        while first < len(self._recorded) and self._is_lost(first):
            first += 1
        last = after - 1
        while last >= 0 and self._is_lost(last):
            last -= 1
        following, leading = range(before + 1, first), range(last + 1, after)
        return list(following) if following == leading else list(dict.fromkeys([*following, *leading]))

    def _is_lost(self, home: int) -> bool:
        return home in self._lost.get(self._homes[home], ())

    def _match_moved(self, candidates: Sequence[str]) -> None:
        texts = [text for text in dict.fromkeys(candidates) if self._names_one_pair(text)]
        if not texts:
            return
        loose = {
            text: at for at, (text, home) in enumerate(zip(self._texts, self._origin, strict=True)) if home == UNMATCHED
        }
        starts = [(next(iter(self._lost[text])), loose[text]) for text in texts]
        sides = UnmatchedSides(
            self._homes,
            self._texts,
            is_lost=self._is_lost,
            is_loose=lambda place: self._origin[place] == UNMATCHED,
            stands_once=lambda text: self._counts[text] == 1 and self._recorded_counts[text] == 1,
        )
        for home, place in find_moves(sides, starts):
            self._join(home, place)

    def _names_one_pair(self, text: str) -> bool:
        return self._loose[text] == 1 and len(self._lost.get(text, ())) == 1 and is_meaningful(text)

    def _join(self, home: int, place: int) -> None:
        text = self._homes[home]
        homes = self._lost[text]
        homes.remove(home)
        if not homes:
            del self._lost[text]
        _take_one(self._loose, text)
        self._origin[place] = home

    def _gap(self, place: int) -> range:
        """The indices around one without a partner that have none either."""
        start, end = place, place + 1
        while start > 0 and self._origin[start - 1] == UNMATCHED:
            start -= 1
        while end < len(self._origin) and self._origin[end] == UNMATCHED:
            end += 1
        return range(start, end)


def _take_one(counts: Counter[str], text: str) -> None:
    """Counts one less. A count of 0 is not kept, or each keystroke would leave a line behind."""
    counts[text] -= 1
    if not counts[text]:
        del counts[text]


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """How many lines both begin with."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


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
