"""Recorded lines on an edited text: what holds for every edit script."""

import argparse
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from deepscope.records.source_files import source_lines
from deepscope.remap import LineMap
from deepscope.remap.diff import is_meaningful, match_lines
from deepscope.remap.line_map import pair_changed

REAL_FILES = [Path(argparse.__file__), Path(random.__file__), Path(__file__)]
NEW_LINES = ["", "    x = self.norm(x)", "    return x", "import torch", "# a note", "        loss.backward()", ")"]


@dataclass
class Editor:
    """A buffer whose lines know which recorded line they are, whatever the map says."""

    recorded: list[str]
    lines: list[str] = field(default_factory=list)
    tokens: list[int | None] = field(default_factory=list)
    undo: list[tuple[int, list[str], int]] = field(default_factory=list)
    moved: set[int] = field(default_factory=set)
    """Recorded lines whose identity an edit does not show: cut and pasted, or replaced by themselves."""

    def __post_init__(self) -> None:
        self.lines = list(self.recorded)
        self.tokens = list(range(len(self.recorded)))
        self.map = LineMap(self.recorded, self.lines)

    def replace(self, start: int, end: int, new: list[str], *, tokens: list[int | None] | None = None) -> None:
        removed = self.lines[start:end]
        self.undo.append((start, removed, len(new)))
        self._apply(start, end, new, tokens)

    def undo_one(self) -> None:
        start, removed, inserted = self.undo.pop()
        self._apply(start, start + inserted, removed, None)

    def move(self, start: int, end: int, target: int) -> None:
        """Cut and paste, as two edits."""
        cut, tokens = self.lines[start:end], self.tokens[start:end]
        self.moved.update(token for token in tokens if token is not None)
        self.replace(start, end, [])
        # Where the cut leaves the recorded text, its lines are the recorded ones.
        self.replace(target, target, cut, tokens=[None if token in self.tokens else token for token in tokens])

    def _apply(self, start: int, end: int, new: list[str], tokens: list[int | None] | None) -> None:
        removed = self.lines[start:end]
        self.lines[start:end] = new
        self.tokens[start:end] = tokens if tokens is not None else [None] * len(new)
        self.map.spliced(start + 1, removed, len(new))
        if self.lines == self.recorded:
            self.tokens = list(range(len(self.recorded)))
            self.moved.clear()

    def format(self) -> None:
        """The whole text replaced, as formatters do."""
        self.moved.update(token for token in self.tokens if token is not None)
        lines = [line.rstrip() for line in self.lines]
        same = [token if old == new else None for token, old, new in zip(self.tokens, self.lines, lines, strict=True)]
        self.replace(0, len(lines), lines, tokens=same)

    def check(self) -> None:
        """An unmarked number stands only on its own text, however indented, on one line."""
        homes = [self.map.recorded_line(line) for line in range(1, len(self.lines) + 1)]
        known = [home for home in homes if home is not None]
        assert len(set(known)) == len(known)
        for line, home in enumerate(homes, 1):
            if home is None:
                continue
            assert self.lines[line - 1].lstrip() == self.recorded[home - 1].lstrip()
            assert self.map.line_of(home) == line
        for home in range(1, len(self.recorded) + 1):
            line = self.map.line_of(home)
            assert line is None or homes[line - 1] == home
        if self.lines == self.recorded:
            assert homes == list(range(1, len(self.recorded) + 1))
            assert self.map.is_unchanged
        for line, home in self.map.changed_between(1, len(self.lines)).items():
            assert homes[line - 1] is None
            assert self.map.line_of(home) is None


@st.composite
def edited(draw: st.DrawFn) -> Editor:
    """A real file in an editor after a script of edits."""
    path = draw(st.sampled_from(REAL_FILES))
    text = source_lines(path.read_text(encoding="utf-8"))
    start = draw(st.integers(0, max(0, len(text) - 20)))
    editor = Editor(text[start : start + draw(st.integers(10, 120))])
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["insert", "delete", "replace", "type", "move", "copy", "undo", "format"]))
        count = len(editor.lines)
        first = draw(st.integers(0, count))
        last = min(count, first + draw(st.integers(0, 8)))
        if kind == "insert":
            editor.replace(first, first, draw(st.lists(st.sampled_from(NEW_LINES), max_size=4)))
        elif kind == "delete":
            editor.replace(first, last, [])
        elif kind == "replace":
            editor.replace(first, last, draw(st.lists(st.sampled_from(NEW_LINES), max_size=4)))
        elif kind == "type" and first < count:
            editor.replace(first, first + 1, [editor.lines[first] + "x"])
        elif kind == "copy":
            editor.replace(last, last, editor.lines[first:last])
        elif kind == "move":
            editor.move(first, last, draw(st.integers(0, count - (last - first))))
        elif kind == "undo" and editor.undo:
            editor.undo_one()
        elif kind == "format":
            editor.format()
        editor.check()
    return editor


@given(edited())
@settings(deadline=None, max_examples=150)
def test_no_unmarked_number_stands_on_another_text_and_untouched_lines_keep_theirs(
    editor: Editor,
) -> None:
    recorded, now = (Counter(line.lstrip() for line in lines) for lines in (editor.recorded, editor.lines))
    for place, token in enumerate(editor.tokens):
        if token is None:
            continue
        home = editor.map.recorded_line(place + 1)
        text = editor.lines[place].lstrip()
        names_itself = recorded[text] == now[text] == 1 and is_meaningful(text)
        if token not in editor.moved or names_itself:
            assert home == token + 1, (place, token, home, text)


@given(edited())
@settings(deadline=None, max_examples=50)
def test_undo_of_everything_brings_every_line_back(editor: Editor) -> None:
    while editor.undo:
        editor.undo_one()
    editor.check()
    assert editor.lines == editor.recorded
    assert editor.map.is_unchanged


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_a_line_outside_every_edit_keeps_its_number_even_among_equal_lines(data: st.DataObject) -> None:
    recorded = data.draw(st.lists(st.sampled_from(["a = f(a)", "", "return a", "b = g(b)"]), min_size=4, max_size=40))
    editor = Editor(recorded)
    for _ in range(data.draw(st.integers(1, 8))):
        first = data.draw(st.integers(0, len(editor.lines)))
        last = min(len(editor.lines), first + data.draw(st.integers(0, 3)))
        editor.replace(first, last, data.draw(st.lists(st.sampled_from(["a = f(a)", "new"]), max_size=3)))
        editor.check()
    for place, token in enumerate(editor.tokens):
        if token is not None:
            assert editor.map.recorded_line(place + 1) == token + 1


@given(st.lists(st.sampled_from("abcdefgh\n "), max_size=30), st.lists(st.sampled_from("abcdefgh\n "), max_size=30))
def test_a_match_rises_and_joins_equal_lines_only(old: list[str], new: list[str]) -> None:
    origin = match_lines(old, new)
    known = [home for home in origin if home >= 0]
    assert known == sorted(set(known))
    assert all(home < 0 or old[home] == new[place] for place, home in enumerate(origin))
    assert match_lines(old, old) == list(range(len(old)))


def test_a_moved_function_keeps_its_numbers() -> None:
    recorded = source_lines("def one(x):\n    y = x @ w\n    return y\n\ndef two(x):\n    y = x + 1\n    return y\n")
    editor = Editor(recorded)
    editor.move(0, 4, 4)
    assert editor.lines[:3] == ["def two(x):", "    y = x + 1", "    return y"]
    assert [editor.map.line_of(home) for home in (1, 2, 3, 5, 6, 7)] == [5, 6, 7, 1, 2, 3]


def test_a_line_that_was_cut_with_its_copy_is_known_again_once_the_copy_differs() -> None:
    editor = Editor(["import torch", "model = build()", "loss = model(batch)", "loss.backward()", "step()"])
    editor.replace(3, 3, ["loss = model(batch)"])
    editor.move(2, 4, 0)
    assert editor.map.recorded_line(1) is None, "either may be the recorded one"
    editor.replace(1, 2, ["loss = model(batch).mean()"])
    assert editor.map.recorded_line(1) == 3


def test_a_common_line_deleted_here_and_typed_there_is_no_move() -> None:
    recorded = source_lines("def one(x):\n    return x\n\ndef two(x):\n    return x\n\ndef three():\n    pass\n")
    editor = Editor(recorded)
    editor.replace(1, 2, [])
    editor.replace(6, 7, ["    return x"])
    assert editor.map.line_of(2) is None
    assert editor.map.line_of(5) == 4


def test_an_edited_line_is_known_as_changed_and_a_deleted_one_vanishes() -> None:
    recorded = source_lines("a = 1\nloss = criterion(model(x), y)\nloss.backward()\noptimizer.step()\n")
    editor = Editor(recorded)
    editor.replace(1, 2, ["loss = criterion(model(x), target)"])
    assert editor.map.recorded_line(2) is None
    assert editor.map.changed_between(1, 99) == {2: 2}
    editor.replace(2, 3, [])
    assert editor.map.line_of(3) is None
    assert 3 not in editor.map.changed_between(1, 99).values()


INDENTED = ["with profile():", "    for x in loader:", "        y = model(x)", "", "        y.sum()"]


def test_a_line_that_is_only_indented_anew_keeps_its_number_unmarked() -> None:
    recorded = ["start()", "for x in loader:", "    y = model(x)", "", "    y.sum()", "end()"]
    homes = [1, None, 2, 3, 4, 5, 6]
    at_once = Editor(recorded)
    at_once.replace(1, 5, INDENTED)
    line_by_line = Editor(recorded)
    line_by_line.replace(1, 1, INDENTED[:1])
    for line in (2, 3, 5):
        line_by_line.replace(line, line + 1, [INDENTED[line - 1]])
    opened_so = LineMap(recorded, at_once.lines)
    for mapped in (at_once.map, line_by_line.map, opened_so):
        assert [mapped.recorded_line(line) for line in range(1, 8)] == homes
        assert mapped.changed_between(1, 99) == {}
        assert not mapped.is_unchanged


def test_of_lines_that_differ_in_their_indentation_alone_each_keeps_its_own_number() -> None:
    recorded = ["def f(x):", "    if x:", "        return x", "    return x", "", "def g(): ..."]
    editor = Editor(recorded)
    editor.replace(2, 3, [])
    assert [editor.map.recorded_line(line) for line in range(1, 6)] == [1, 2, 4, 5, 6]
    fresh = LineMap(recorded, editor.lines)
    assert [fresh.recorded_line(line) for line in range(1, 6)] == [1, 2, 4, 5, 6]
    editor.replace(1, 3, ["    return x"])
    assert editor.map.recorded_line(2) == 4


def test_a_text_opened_after_edits_is_compared_as_a_whole() -> None:
    recorded = source_lines(Path(argparse.__file__).read_text(encoding="utf-8"))
    lines = [*recorded[:100], "# new", *recorded[150:400], "x = 1", *recorded[400:]]
    mapped = LineMap(recorded, lines)
    assert [mapped.line_of(home) for home in range(1, 101)] == list(range(1, 101))
    assert [mapped.line_of(home) for home in range(151, 401)] == list(range(102, 352))
    assert mapped.line_of(len(recorded)) == len(lines)


def test_blank_lines_are_never_paired_as_changed() -> None:
    assert pair_changed(("", "x = compute(a)"), ("", "x = compute(a, b)")) == [(1, 1)]


def test_a_line_far_beyond_the_recorded_text_is_looked_for_at_its_end() -> None:
    recorded = ["a = 1", "b = 2"]
    mapped = LineMap(recorded, ["# new", "a = 1", "b = 2"])
    assert mapped.near(10**18) == 3
