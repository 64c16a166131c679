"""The line that a scope gives an operator is the line that an independent witness saw it run on, for every operator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from line_truth import TARGETS, WITNESS, Recording, lengthen_target, run_target

UNSEEN = {"suspended": [("x.cos()", "del left")]} if sys.version_info < (3, 11) else {}
"""By program, statements that stand at another one. Python 3.10 itself holds on to a function's variables until its
next line is traced, and closes there, with its events off, the generators that the line before has dropped."""

PROGRAMS = ["expressions", "modules", "autograd_functions", "suspended", "control", "threads", "scripted"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_operator_stands_in_the_line_that_the_witness_saw(name: str, tmp_path: Path) -> None:
    found = run_target(name, tmp_path, with_witness=True)
    check_by_witness(found, str(TARGETS / f"{name}.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_holds_in_functions_of_hundreds_of_lines(name: str, tmp_path: Path) -> None:
    """Python 3.12 and later have the lines of these from another event."""
    lengthen_target(name, tmp_path)
    found = run_target(name, tmp_path, with_witness=True, targets=tmp_path)
    check_by_witness(found, str(tmp_path / f"{name}.py"))


def check_by_witness(found: Recording, file: str) -> None:
    wrong = [
        (int(span.name[len(WITNESS) :]), span.lines[:1])
        for span in found.witnessed
        if span.lines[:1] != ([(file, line)] if (line := int(span.name[len(WITNESS) :])) else [])
    ]
    statements = [text.partition("#")[0].strip() for text in Path(file).read_text().splitlines()]
    unseen = UNSEEN.get(Path(file).stem, [])
    assert wrong == [
        (statements.index(ran) + 1, [(file, statements.index(stands_at) + 1)]) for ran, stands_at in unseen
    ]
    assert len(found.witnessed) >= 10
    assert found.record.account.warnings == []


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "threads"])
def test_the_witness_changes_no_line(name: str, tmp_path: Path) -> None:
    def outermost(found: Recording) -> list[tuple[str, tuple[str, int]]]:
        return [(span.name, span.lines[0]) for span in found.operators if span.lines]

    alone = outermost(run_target(name, tmp_path, with_witness=False))
    watched = outermost(run_target(name, tmp_path, with_witness=True))
    # A dispatch mode makes autograd keep a few operators apart that torch runs at one go (aten::to of a scalar).
    common = {entry for entry in alone if entry in set(watched)}
    assert [entry for entry in alone if entry in common] == [entry for entry in watched if entry in common]
    assert len(common) >= 0.9 * len(set(alone))
