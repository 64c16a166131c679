"""Where recording grows expensive its detail is lowered, and what is still said is right."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from deepscope.capture.lines import Limits
from line_truth import TARGETS, WITNESS, Recording, Span, run_target

DENSE = TARGETS / "dense.py"


def functions_of_lines() -> dict[int, str]:
    """The innermost function of each line of the target, by qualified name."""
    found: dict[int, str] = {}

    def visit(node: ast.AST, name: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            outer = f"{name}.<locals>." if name and not name.startswith("Net") else f"{name}." if name else ""
            name = outer + getattr(node, "name", "<lambda>")
            for line in range(node.lineno, (node.end_lineno or 0) + 1):
                found[line] = name
        elif isinstance(node, ast.ClassDef):
            name = node.name
        for child in ast.iter_child_nodes(node):
            visit(child, name)

    visit(ast.parse(DENSE.read_text()), "")
    return found


def lowered(found: Recording) -> dict[str, list[tuple[str, int]]]:
    """By function, how it was lowered, and the line that stands for it."""
    ways: dict[str, list[tuple[str, int]]] = {}
    for number, way in found.record.account.lowered:
        row = found.record.scopes[number]
        ways.setdefault(row.name, []).append((way, row.line))
    return ways


def is_right(span: Span, line: int, function: str, ways: dict[str, list[tuple[str, int]]]) -> bool:
    """Whether the innermost scope is the line that ran, or stands for it as the account says."""
    if not span.lines:
        return False
    place = span.lines[0][1]
    stands_for = ways.get(function, [])
    if place == line or any(place == other for way, other in stands_for if way != "caller"):
        return True
    # Of a function whose calls are not recorded any more: at a line of another function.
    return any(way == "caller" for way, _ in stands_for)


@pytest.mark.parametrize("max_entries", [1_000, 2_500, 6_000, 15_000])
def test_an_operator_stands_at_its_line_or_at_what_stands_for_it(max_entries: int, tmp_path: Path) -> None:
    limits = Limits(max_entries=max_entries, max_slowdown=1e9)
    found = run_target("dense", tmp_path, with_witness=True, limits=limits)
    functions, ways = functions_of_lines(), lowered(found)
    account = found.record.account
    assert account.warnings == []
    assert ways or account.modules_only
    lines = [(span, int(span.name[len(WITNESS) :])) for span in found.witnessed]
    assert len(lines) > 300
    if not account.modules_only:
        wrong = [
            (line, functions.get(line), span.lines[:2])
            for span, line in lines
            if not is_right(span, line, functions[line], ways)
        ]
        assert wrong == []
    assert sum(span.line is not None for span in found.spans) <= 1.2 * max_entries


def test_nothing_is_lowered_where_lines_are_cheap(tmp_path: Path) -> None:
    found = run_target("expressions", tmp_path, with_witness=False)
    assert found.record.account.lowered == []
    assert found.record.account.modules_only is False
