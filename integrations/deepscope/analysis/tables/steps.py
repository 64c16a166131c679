"""The steps, and the phases of training in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import Intervals, covered_by, union_of
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, rows, sums
from deepscope.analysis.numbers.lines import started_by_lines
from deepscope.analysis.numbers.phases import LineStepTimes, idle_by_step, phase_of_work, python_by_step
from deepscope.analysis.numbers.work import idle, timeline, waits_by_line
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.tables.collectives import CollectiveCalls
from deepscope.records import PHASES, Kernel, Module, Operator, Phase, Step, StepTimes
from deepscope.records.steps import StepTable
from deepscope.trace.arrays import distinct_places, distinct_values, pick, position_in
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


def step_table(analysis: Analysis, calls: CollectiveCalls) -> list[Step]:
    """The steps within the extent. `calls` are the collectives in it."""
    attribution, unrecorded, phases = analysis.attribution, analysis.unrecorded, analysis.phases
    work, steps = attribution.work, attribution.training.steps
    start, end, count = steps.spans.start, steps.spans.end, len(steps)
    events, location, lines = attribution.trace.events, attribution.owners.location, len(attribution.scopes.locations)
    excess = step_excess(attribution)
    nodes = attribution.operators.nodes[started_by_lines(attribution)]
    waits = waits_by_line(events, analysis.waits, location, lines)
    columns = {
        "number": steps.number,
        "start_ns": start,
        "duration_ns": unrecorded.overlap_ns(start, end),
        "device_ns": by_line(work.step, count, work.duration_ns),
        "busy_ns": _overlap_ns(work.busy.values(), start, end),
        "idle_ns": _overlap_ns(idle(work, unrecorded), start, end),
        "wait_ns": steps.spans.of_each_ns(waits.start, waits.end),
        "launches": by_line(work.step[work.counts & (work.kind == Kind.KERNEL)], count),
        "operators": by_line(steps.of(events.start_ns[nodes]), count),
        **_exchange(attribution, calls),
    }
    wall = np.zeros((count + 1, len(PHASES)), np.int64)  # the last row is for no step
    parts = phases.spans  # each lies in one step
    np.add.at(wall, (steps.of(parts.start), phases.phase), unrecorded.overlap_ns(parts.start, parts.end))
    chosen = np.flatnonzero(analysis.extent.holds(start))
    return [
        Step(
            **row,
            phases={name: ns for name, ns in zip(PHASES, wall[i].tolist(), strict=True) if ns},
            **_slow(attribution, int(excess.location[i]), int(excess.excess_ns[i])),
        )
        for i, row in zip(chosen.tolist(), rows(columns, chosen), strict=True)
    ]


def _overlap_ns(devices: Iterable[Intervals], start: Int64, end: Int64) -> Int64:
    """How much of the devices' intervals, added up, lies in each step."""
    return sum((one.overlap_ns(start, end) for one in devices), np.zeros(len(start), np.int64))


def _exchange(of: Attribution, calls: CollectiveCalls) -> Columns:
    """What is computed and communicated on devices, and communicated on the CPU, by step."""
    work, events, steps = of.work, of.trace.events, of.training.steps

    def within(spans: Intervals) -> Int64:
        return spans.overlap_ns(steps.spans.start, steps.spans.end)

    kernels = work.counts & (work.kind == Kind.KERNEL) & (work.metric == "device")
    computing, on_device = (covered_by(work, rows) for rows in (kernels & ~work.collective, kernels & work.collective))
    host = np.flatnonzero(~calls.on_device)
    spans = calls.event[host]
    on_host = covered_by(events, spans)
    communication = within(union_of(on_device, on_host))
    host_exposed = by_line(steps.of(events.start_ns[spans]), len(steps), calls.exposed_ns[host])[:-1]
    exposed = within(on_device) - within(on_device.intersection(computing))
    exposed += np.minimum(host_exposed, within(on_host))
    return {
        "computing_ns": within(computing),
        "communication_ns": communication,
        "exposed_ns": np.minimum(exposed, communication),
    }


def _slow(attribution: Attribution, line: int, excess_ns: int) -> dict[str, Any]:
    """What a step says of the line that makes it long."""
    if line < 0:
        return {}
    place = attribution.scopes.locations[line]
    return {
        "slow_file": place.file,
        "slow_line": place.line,
        "slow_function": place.function,
        "slow_ns": excess_ns,
    }


_MOST_CELLS = 20_000_000
"""Steps times lines; of more lines those with most time are looked at."""


class Excess(NamedTuple):
    """Of each step; arrays of shape (s,)."""

    location: Int64
    """The line, -1 where no line is longer than usual."""
    excess_ns: Int64
    """Its time in the step less its median over the steps."""


def step_excess(of: Attribution) -> Excess:
    """The line of each step; none where there are fewer than three steps, or no lines."""
    steps, lines = of.training.steps, len(of.scopes.locations)
    nothing = Excess(np.full(len(steps), -1, np.int64), np.zeros(len(steps), np.int64))
    if len(steps) < 3 or not lines:
        return nothing
    line = timeline(of.trace.events, of.runs, of.training.thread, steps.spans)
    on_line = line.location >= 0
    location, spent = line.location[on_line], (line.end - line.start)[on_line]
    step = steps.of(line.start[on_line])
    whole = sums(location, lines, spent)
    kept = np.sort(np.argsort(-whole, kind="stable")[: min(int((whole > 0).sum()), _MOST_CELLS // len(steps))])
    if not len(kept):
        return nothing
    place = position_in(kept, location, lines)
    known = place >= 0
    times = np.zeros((len(steps), len(kept)), np.int64)
    np.add.at(times, (step[known], place[known]), spent[known])
    over = times - np.median(times, axis=0).astype(np.int64)
    most = over.argmax(axis=1)
    excess = over[np.arange(len(steps)), most]
    return Excess(np.where(excess > 0, kept[most], -1), np.maximum(excess, 0))


def phase_table(analysis: Analysis) -> list[Phase]:
    """The phases that hold any time, in the order of a step."""
    work = analysis.attribution.work
    wall = analysis.phases.wall_ns(analysis.unrecorded).tolist()
    calls = analysis.phases.calls(analysis.extent).tolist()
    phase = phase_of_work(work, analysis.phases)[analysis.counted]
    device = by_line(phase, len(PHASES), work.duration_ns[analysis.counted]).tolist()
    return [
        Phase(name=name, wall_ns=wall[i], device_ns=device[i], calls=calls[i])
        for i, name in enumerate(PHASES)
        if wall[i] or device[i]
    ]


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

    def device(row: Int64) -> LineStepTimes:
        return LineStepTimes(row[counted], of_work, duration)

    location, of_step, beside_ns = _beside(analysis)
    beside = LineStepTimes(pick(line_position, location), block[of_step], beside_ns)
    return [
        *_table("lines", device(pick(line_position, work.location)), beside),
        *_table("operators", device(_operator_rows(analysis, operators))),
        *_table("kernels", device(_kernel_rows(analysis, kernels))),
        *_table("modules", device(_module_rows(analysis, modules))),
    ]


def _steps(analysis: Analysis) -> Mask:
    """Which steps lie in the extent."""
    return analysis.extent.holds(analysis.attribution.training.steps.spans.start)


def _beside(analysis: Analysis) -> LineStepTimes:
    of = analysis.attribution
    if analysis.timeline is not None:
        return idle_by_step(of.work, analysis.timeline, of.training.steps, analysis.unrecorded)
    if not len(analysis.python_by_run):
        nothing = np.zeros(0, np.int64)
        return LineStepTimes(nothing, nothing, nothing)
    return python_by_step(of.trace.events, of.runs, analysis.python_by_run, of.training.steps)


def _operator_rows(analysis: Analysis, operators: Sequence[Operator]) -> Int64:
    events, strings = analysis.attribution.trace.events, analysis.attribution.trace.strings
    name = pick(events.name.astype(np.int64), analysis.operator)
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
    return pick(row, pick(found.module, found.of_work(analysis.attribution.work)))


def _rows_of(name: Int64, rows: Sequence[str | None], strings: Sequence[str]) -> Int64:
    """The row of each name, an index into the strings; -1 for none."""
    place = {one: row for row, one in enumerate(rows)}
    found = np.full(len(strings) + 1, -1, np.int64)
    for index in distinct_values(name[name >= 0]).tolist():
        found[index] = place.get(strings[index], -1)
    return found[name]


def _table(table: StepTable, device: LineStepTimes, beside: LineStepTimes | None = None) -> Iterator[StepTimes]:
    """The largest rows; of lines the work of no line, too, whatever its size."""
    sides = [_sums(device), {} if beside is None else _sums(beside)]
    size = {row: sum(sum(side.get(row, {}).values()) for side in sides) for row in {*sides[0], *sides[1]}}
    ordered = sorted(size, key=lambda row: (row >= 0, -size[row], row))
    if table != "lines" and ordered[:1] == [-1]:
        del ordered[0]
    for row in ordered[:ROWS]:
        yield StepTimes(table, row, *(side.get(row, {}) for side in sides))


def _sums(shares: LineStepTimes) -> dict[int, dict[int, int]]:
    """Row → block → time, without zeros."""
    real = (shares.step >= 0) & (shares.duration_ns != 0)
    row = shares.location[real] + 1
    blocks, block = distinct_places(shares.step[real])
    width = max(1, len(blocks))
    cell, place = distinct_places(row * width + block)
    total = sums(place, len(cell), shares.duration_ns[real])
    number = blocks.tolist()
    found: dict[int, dict[int, int]] = {}
    for key, value in zip(cell.tolist(), total.tolist(), strict=True):
        found.setdefault(key // width - 1, {})[number[key % width]] = value
    return found
