"""The largest rows of lines, operators, kernels and modules with their time in each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.by_step import Shares, idle_by_step, python_by_step
from deepscope.records import Kernel, Module, Operator, StepTimes
from deepscope.records.step_times import StepTable
from deepscope.trace.arrays import distinct_places, distinct_values, pick
from deepscope.trace.model import Int64

BLOCKS = 32
"""At most: the spread of more means of neighbouring steps tells little more."""
ROWS = 400
"""Of each table at most, the largest: with `BLOCKS` that is some hundred kilobytes."""


def steps_per_block(analysis: Analysis) -> int:
    """The smallest power of two with which the steps of the extent fall into `BLOCKS` blocks or fewer."""
    number = analysis.attribution.training.steps.number[_steps(analysis)]
    length = 1
    while len(distinct_values(number // length)) > BLOCKS:
        length *= 2
    return length


def step_times(
    analysis: Analysis,
    line_position: Int64,
    operators: Sequence[Operator],
    kernels: Sequence[Kernel],
    modules: Sequence[Module],
) -> list[StepTimes]:
    """The time by step of rows of these tables; `line_position` is the place of each line in its table, -1 for none."""
    work, steps = analysis.attribution.work, analysis.attribution.training.steps
    if not _steps(analysis).any():
        return []
    block = np.append(steps.number // steps_per_block(analysis), -1)
    block[:-1][~_steps(analysis)] = -1
    counted = np.flatnonzero(analysis.counted & (block[work.step] >= 0))
    of_work, duration = block[work.step[counted]], work.duration_ns[counted]

    def device(row: Int64) -> Shares:
        return Shares(row[counted], of_work, duration)

    location, of_step, beside_ns = _beside(analysis)
    beside = Shares(pick(line_position, location), block[of_step], beside_ns)
    return [
        *_table("lines", device(pick(line_position, work.location)), beside),
        *_table("operators", device(_operator_rows(analysis, operators))),
        *_table("kernels", device(_kernel_rows(analysis, kernels))),
        *_table("modules", device(_module_rows(analysis, modules))),
    ]


def _steps(analysis: Analysis) -> Mask:
    """Which steps lie in the extent."""
    return analysis.extent.holds(analysis.attribution.training.steps.spans.start)


def _beside(analysis: Analysis) -> Shares:
    of = analysis.attribution
    if analysis.timeline is not None:
        return idle_by_step(of.work, analysis.timeline, of.training.steps, analysis.unrecorded)
    if not len(analysis.python_by_run):
        nothing = np.zeros(0, np.int64)
        return Shares(nothing, nothing, nothing)
    return python_by_step(of.trace.events, of.runs, analysis.python_by_run, of.training.steps)


def _operator_rows(analysis: Analysis, operators: Sequence[Operator]) -> Int64:
    events, strings = analysis.attribution.trace.events, analysis.attribution.trace.strings
    name = np.where(analysis.operator < 0, -1, events.name[analysis.operator]).astype(np.int64)
    return _rows_of(name, [one.name for one in operators], strings)


def _kernel_rows(analysis: Analysis, kernels: Sequence[Kernel]) -> Int64:
    """A name with several kinds of work has a row for each: which one a piece belongs to is not asked, none has it."""
    work, trace = analysis.attribution.work, analysis.attribution.trace
    if not kernels:
        return np.full(len(work), -1, np.int64)
    seen = Counter(one.name for one in kernels)
    names = [one.name if seen[one.name] == 1 else None for one in kernels]
    return _rows_of(trace.events.name[work.event].astype(np.int64), names, trace.strings)


def _module_rows(analysis: Analysis, modules: Sequence[Module]) -> Int64:
    found = analysis.modules
    place = {(one.path, one.class_name): row for row, one in enumerate(modules)}
    row = np.array([place.get(name, -1) for name in found.names], np.int64)
    module = pick(found.module, pick(np.asarray(found.of_event), analysis.attribution.work.node))
    return pick(row, module)


def _rows_of(name: Int64, rows: Sequence[str | None], strings: Sequence[str]) -> Int64:
    """The row of each name, an index into the strings; -1 for none."""
    place = {one: row for row, one in enumerate(rows)}
    found = np.full(len(strings) + 1, -1, np.int64)
    for index in distinct_values(name[name >= 0]).tolist():
        found[index] = place.get(strings[index], -1)
    return found[name]


def _table(table: StepTable, device: Shares, beside: Shares | None = None) -> Iterator[StepTimes]:
    """The largest rows; of lines the work of no line, too, whatever its size."""
    sides = [_sums(device), {} if beside is None else _sums(beside)]
    size = {row: sum(sum(side.get(row, {}).values()) for side in sides) for row in {*sides[0], *sides[1]}}
    ordered = sorted(size, key=lambda row: (row >= 0, -size[row], row))
    if table != "lines" and ordered[:1] == [-1]:
        del ordered[0]
    for row in ordered[:ROWS]:
        yield StepTimes(table, row, *(side.get(row, {}) for side in sides))


def _sums(shares: Shares) -> dict[int, dict[int, int]]:
    """Row → block → time, without zeros."""
    real = (shares.step >= 0) & (shares.duration_ns != 0)
    row = shares.location[real] + 1
    blocks, block = distinct_places(shares.step[real])
    width = max(1, len(blocks))
    cell, place = distinct_places(row * width + block)
    total = np.zeros(len(cell), np.int64)
    np.add.at(total, place, shares.duration_ns[real])
    number = blocks.tolist()
    found: dict[int, dict[int, int]] = {}
    for key, value in zip(cell.tolist(), total.tolist(), strict=True):
        found.setdefault(key // width - 1, {})[number[key % width]] = value
    return found
