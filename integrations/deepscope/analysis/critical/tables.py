"""The critical path of the steps: what it is made of, the lines on it, what each would save; a rank's own times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.array_ops.selection import Columns, of_kind
from deepscope.analysis.critical.lines import (
    KINDS,
    PARTS,
    HostWork,
    PieceParts,
    Timelines,
    find_parts,
    path_by_line,
    sums_of_kinds,
)
from deepscope.analysis.critical.path import Dependencies, Path, critical_path, dependencies
from deepscope.analysis.critical.shortening import Shortening
from deepscope.analysis.critical.streams import find_pieces, find_stream_waits
from deepscope.analysis.critical.waits import clipped, find_device_waits, find_joins
from deepscope.analysis.numbers.recording_cost import recording_cost
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.calls import CPU_KINDS
from deepscope.records import CriticalLine, CriticalPath, CriticalTimes, OwnLine, OwnTimes
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.model import Int64

EVALUATED = 10
"""For so many lines, those longest on the path, it is found what they would save."""
ROWS = 50
MOST_STEPS = 32
EVENTS_A_BLOCK = 500
"""So many events of a trace allow for the evaluation of one more run of work or join, so that it stays a small part of
reading."""
BLOCKS = 200
"""A trace without events would allow for so many."""
BLOCKS_OF_ONE = 2_000
"""The first step that is evaluated may have so many more."""


def find_dependencies(of: Attribution) -> Dependencies:
    """Who waits for whom."""
    trace, work = of.trace, of.work
    pieces = find_pieces(trace.events, work)
    waits = find_device_waits(trace, pieces, work.kind[pieces.row].astype(np.int64), work.node[pieces.row])
    pieces = clipped(pieces, waits, trace.events.end_ns)
    joins = find_joins(trace, of.calls, of.training.thread, pieces, waits)
    return dependencies(pieces, find_stream_waits(trace, pieces), joins)


@dataclass(frozen=True, slots=True)
class StepPaths:
    """The path of each step of the extent, and what it is made of."""

    of: Attribution
    dependencies: Dependencies
    parts: PieceParts
    timelines: Timelines
    path: Path
    """Of the whole trace."""
    spans: Intervals
    """The steps; without steps the window is one."""
    steps: Int64
    """The number of each step, the place among them where there are none; shape (s,)."""
    calls: Int64
    """The line that owns the call of each join."""
    kinds: Int64
    """`Kind` of each piece."""
    host: HostWork

    def columns(self, which: Int64) -> Columns:
        """Time by line and `PARTS` on the paths of the steps at these places, in order."""
        chosen = zip(self.spans.start[which].tolist(), self.spans.end[which].tolist(), strict=True)
        parts = [self.path.within(*span) for span in chosen]
        return path_by_line(
            Path(
                np.concatenate([one.start for one in parts]),
                np.concatenate([one.end for one in parts]),
                np.concatenate([one.kind for one in parts]),
                np.concatenate([one.where for one in parts]),
            ),
            self.dependencies.pieces,
            self.parts,
            self.timelines,
            self.host,
            kinds=self.kinds,
            call_locations=self.calls,
            lines=len(self.of.scopes.locations),
        )


def step_paths(analysis: Analysis) -> StepPaths | None:
    """The paths within the extent: of the steps or, where there are none, of the window; None where that is empty."""
    of = analysis.attribution
    spans, place = analysis.step_spans
    numbers, whole = of.training.steps.number, of.training.window
    if not len(spans.start):
        return None
    found = find_dependencies(of)
    thread, ran_until = _ending_thread(of)
    return StepPaths(
        of=of,
        dependencies=found,
        parts=find_parts(of.work, found.pieces),
        timelines=Timelines(of, analysis.phases),
        path=critical_path(found, thread, int(whole.start[0]), int(whole.end[-1]), ran_until=ran_until),
        spans=spans,
        steps=numbers[place].astype(np.int64) if len(numbers) else np.arange(len(spans.start)),
        calls=pick(of.owners.location, found.joins.event),
        kinds=of.work.kind[found.pieces.row].astype(np.int64),
        host=HostWork(of),
    )


def critical_path_table(paths: StepPaths, columns: Columns) -> CriticalPath:
    """The table of the steps' paths, of which `columns` are those of all of them."""
    of, spans, found = paths.of, paths.spans, paths.dependencies
    lines = len(of.scopes.locations)
    columns = sums_of_kinds(columns)
    on_path = sum((columns[name] for name in KINDS), np.zeros(lines + 1, np.int64))
    order = _order(of, on_path[:lines])
    shorter = dict.fromkeys(order[:EVALUATED], 0)
    evaluated = 0
    if shorter:
        evaluation = Shortening(found, paths.parts, paths.timelines, paths.calls, list(shorter))
        for place in _evaluated(evaluation, spans, BLOCKS + len(of.trace.events) // EVENTS_A_BLOCK):
            start, end = int(spans.start[place]), int(spans.end[place])
            evaluated += 1
            for line, ns in zip(shorter, evaluation.shorter_ns(paths.path, start, end).tolist(), strict=True):
                shorter[line] += ns

    def times(which: list[int]) -> dict[str, int]:
        """Of some lines, by their places among the locations, together."""
        return {name: int(columns[name][which].sum()) for name in KINDS}

    places = of.scopes.locations
    return CriticalPath(
        steps=len(spans.start),
        evaluated_steps=evaluated,
        critical_ns=spans.total_ns,
        lines=[
            CriticalLine(
                file=places[line].file,
                line=places[line].line,
                function=places[line].function,
                exact=places[line].exact,
                critical_ns=int(on_path[line]),
                would_shorten_ns=shorter.get(line) if evaluated else None,
                **times([line]),
            )
            for line in order[:ROWS]
        ],
        others=CriticalTimes(**times(order[ROWS:])),
        no_line=CriticalTimes(**times([lines])),
        **{name: int(values.sum()) for name, values in columns.items()},
    )


def _ending_thread(of: Attribution) -> tuple[int, int]:
    """The thread at the end of the window, and until when it ran: the training thread, to the end of the last step;
    without steps the one whose event ends last."""
    events, training = of.trace.events, of.training
    on_cpu = of_kind(of.trace, *CPU_KINDS)
    if len(training.steps) or not on_cpu.any():
        return training.thread, int(training.window.end[-1])
    ran_until = int(events.end_ns[on_cpu].max())
    last = on_cpu & (events.end_ns == ran_until)
    if last[events.thread == training.thread].any():
        return training.thread, ran_until
    return int(events.thread[last].min()), ran_until


def _order(of: Attribution, on_path: Int64) -> list[int]:
    """The lines on the path, the longest on it first."""
    places = of.scopes.locations
    return sorted(
        np.flatnonzero(on_path).tolist(),
        key=lambda line: (-int(on_path[line]), places[line].file, places[line].line),
    )


def _evaluated(evaluation: Shortening, spans: Intervals, blocks: int) -> list[int]:
    """The steps (places) that are evaluated: all of them, or as many as may be, evenly spread."""
    chosen: list[int] = []
    for place in _spread(len(spans.start)):
        own = evaluation.blocks(int(spans.start[place]), int(spans.end[place]))
        if own <= blocks or (not chosen and own <= blocks + BLOCKS_OF_ONE):
            chosen.append(place)
            blocks -= own
        if len(chosen) == MOST_STEPS or blocks <= 0:
            break
    return chosen


def _spread(count: int) -> list[int]:
    """All places, each halfway between those before it: the middle, the quarters, the eighths, …"""
    order: dict[int, None] = {}
    parts = 2
    while len(order) < count:
        for part in range(1, parts, 2):
            order.setdefault(count * part // parts)
        if parts > 2 * count:
            order |= dict.fromkeys(range(count))
        parts *= 2
    return list(order)


OWN_LINES = 100
"""Rows of own times at most, the longest lines."""
_NO_LINE, _OTHERS = -1, -2
_OWN_PARTS = {
    "operator_ns": ("operator_ns",),
    "python_ns": ("python_ns",),
    "data_ns": ("data_ns",),
    "device_ns": ("kernel_ns", "copy_ns"),
    "delay_ns": ("launch_ns", "gap_ns", "return_ns"),
}


def columns_by_block(paths: StepPaths, steps_per_block: int) -> list[Columns]:
    """The columns of each block of steps, in the order of their numbers."""
    blocks, place = distinct_places(paths.steps // steps_per_block)
    return [paths.columns(np.flatnonzero(place == block)) for block in range(len(blocks))]


def whole_columns(by_block: Sequence[Columns]) -> Columns:
    """The sums over the blocks."""
    return {name: np.sum([one[name] for one in by_block], axis=0) for name in PARTS}


def own_times(
    paths: StepPaths,
    by_block: Sequence[Columns],
    line_position: Int64,
    steps_per_block: int,
    *,
    taken_by_run: Int64,
) -> OwnTimes:
    """What a rank does itself, by line and block of steps.

    What recording costs is taken off Python's time, and off the steps: it says nothing of the rank.

    Args:
        paths: of the steps.
        by_block: their columns, from `columns_by_block`.
        line_position: the place of each location in the table of lines, -1 for none.
        steps_per_block: how many steps are in a block.
        taken_by_run: what plain steps tell of each run of a line (`BesidePlain`).
    """
    of = paths.of
    recording = recording_cost(of.trace, of.scopes, of.runs, of.training.thread, taken_by_run)
    blocks, place = distinct_places(paths.steps // steps_per_block)
    spans = [Intervals(paths.spans.start[place == one], paths.spans.end[place == one]) for one in range(len(blocks))]
    costs = zip(by_block, spans, strict=True)
    taken = np.stack([np.minimum(one["python_ns"], recording.by_line(span)) for one, span in costs])
    own = np.stack([_sum(one, (name for name in PARTS if name != "communication_ns")) for one in by_block]) - taken
    whole = whole_columns(by_block)
    parts = {name: _sum(whole, columns) for name, columns in _OWN_PARTS.items()}
    parts["python_ns"] = parts["python_ns"] - taken.sum(axis=0)
    position = np.append(line_position, _NO_LINE)
    here = np.flatnonzero(own.any(axis=0))
    known = here[position[here] >= 0]
    known = known[np.argsort(-own[:, known].sum(axis=0), kind="stable")]
    groups = [
        *((int(position[one]), [one]) for one in known[:OWN_LINES].tolist()),
        (_NO_LINE, here[position[here] < 0].tolist()),
        (_OTHERS, known[OWN_LINES:].tolist()),
    ]
    wall = -taken.sum(axis=1)
    np.add.at(wall, place, paths.spans.end - paths.spans.start)
    return OwnTimes(
        blocks=blocks.tolist(),
        steps=np.bincount(place, minlength=len(blocks)).tolist(),
        wall_ns=wall.tolist(),
        communication_ns=[int(one["communication_ns"].sum()) for one in by_block],
        lines=[
            OwnLine(
                line=row,
                times_ns=own[:, which].sum(axis=1).tolist(),
                **{name: int(values[which].sum()) for name, values in parts.items()},
            )
            for row, which in groups
            if which
        ],
    )


def _sum(columns: Columns, names: Iterable[str]) -> Int64:
    found: Int64 = np.sum([columns[name] for name in names], axis=0)
    return found
