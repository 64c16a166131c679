"""Functions that loop in Python, with their time spread over lines and over what these call (DS013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.sliced_calls import is_below
from deepscope.analysis.findings.source_text import loops_in_function
from deepscope.analysis.ownership.locations import function_numbers
from deepscope.trace.model import Int64

_FEW = 0.5
"""Operators in a function take at most this part of its Python time; those with more are other rules'."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function with a loop that calls no module, no optimizer and no backward pass, nor does what it calls."""

    line: int
    """That of its lines on which, with what that calls, most of the time is spent."""
    python_ns: int


def python_functions(facts: Facts, free_ns: Int64, mixed: Mask, least_ns: float) -> list[PythonFunction]:
    """The outermost such functions with so much time of Python's, the largest first.

    Args:
        facts: of the analysis.
        free_ns: Python's time of each run of a line that no other finding promises; shape (runs,).
        mixed: lines that call modules, or run other code than Python's; shape (lines,).
        least_ns: a function with less is left out.
    """
    paths, runs = facts.attribution.paths, facts.attribution.runs
    python = np.bincount(runs.path, free_ns, len(paths)).astype(np.int64)
    is_mixed = np.append(mixed, False)[paths.location].astype(np.int64)
    in_operators = facts.analysis.by_path[:, 2] - np.bincount(runs.path, facts.analysis.python_by_run, len(paths))
    values = np.stack((python, in_operators.astype(np.int64), is_mixed), axis=1)
    function = function_numbers(facts.locations)
    python_ns, operators_ns, others = paths.totals(values, function, int(function.max(initial=-1)) + 1).T
    by_line = paths.totals(python, np.arange(facts.lines), facts.lines)
    is_one = (python_ns >= max(least_ns, 1)) & (operators_ns <= _FEW * python_ns) & (others == 0)
    found: list[PythonFunction] = []
    above: set[int] = set()
    for number in sorted(np.flatnonzero(is_one).tolist(), key=lambda one: -int(python_ns[one])):
        lines = np.flatnonzero(function == number)
        line = int(lines[by_line[lines].argmax()])
        if loops_in_function(facts.trace, facts.locations[line]) and not is_below(facts, line, above):
            found.append(PythonFunction(line, int(python_ns[number])))
            above.update(lines.tolist())
    return found
