"""All faces give one answer: terminal, JSON, CSV, pages, HTML file, hints, hover, view and status."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from faces import NUMBERS, differ, every
from recorded_traces import each_trace, own_paths, profile_of

_FACES = {
    "hottest line": 10, "its share": 10, "second line": 8, "its cost a step": 10, "step length": 9, "steps": 7,
    "device busy": 4, "waiting a step": 3, "first operator": 6, "its time": 6, "first rate": 6, "recording": 2,
    "verdict": 6,
}  # fmt: skip
"""How many faces give each number for some trace of the repository; so a face that says nothing is missed."""


@pytest.mark.parametrize("path", each_trace())
def test_all_faces_give_one_answer(path: Path) -> None:
    said = dict(every(profile_of(path), profile_of(path, ("shapes",))))
    contradictions = []
    for number in NUMBERS:
        answers = {face: one[number] for face, one in said.items() if number in one}
        if answers and any(differ(one, other) for one in answers.values() for other in answers.values()):
            contradictions.append((number, answers))
    assert contradictions == []


def test_every_number_is_given_by_the_faces_that_show_it() -> None:
    most: Counter[str] = Counter()
    for path in own_paths():
        given = Counter(number for _, one in every(profile_of(path), profile_of(path, ("shapes",))) for number in one)
        most |= given
    assert {number: most[number] for number in _FACES} == _FACES
