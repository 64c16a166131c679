"""A trace with everything joined: who called whom, which line owns each event and each piece of work; their stacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import groupby

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, covered_by, union_of
from deepscope.analysis.array_ops.selection import Mask, mask_of, of_kind
from deepscope.analysis.ownership.calls import CallForest, join_backward, nest
from deepscope.analysis.ownership.compiled import FusedKernels, find_fused
from deepscope.analysis.ownership.locations import Scopes, find_scopes
from deepscope.analysis.ownership.modules import FrameworkSpans, find_framework
from deepscope.analysis.ownership.owners import (
    LineRuns,
    Operators,
    Owners,
    Work,
    find_operators,
    find_owners,
    find_runs,
    find_work,
    joined_paths,
)
from deepscope.analysis.ownership.paths import PathBuilder, PathTable
from deepscope.analysis.ownership.training import StepSpans, Training, find_training
from deepscope.trace.arrays import distinct_places, distinct_values, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


@dataclass(frozen=True, slots=True)
class OwnedWork(Work):
    """Work with its owners; arrays of shape (w,).

    A kernel that was fused from several lines has a row for each of them, with its part of the duration.
    """

    piece: Int64
    """The piece of work that the row is a part of, as `find_work` counts them; ascending."""
    counts: Mask
    """One row of each piece, that of its largest part: what counts pieces counts these."""
    location: Int64
    """The line, an index into `Scopes.locations`; -1 for none."""
    path: Int64
    """The whole call path to it, the caller of `backward()` included; 0 where there is no line. The path of a compiled
    kernel goes on from the line of the call through those of the source."""
    called_at: Int64
    """The line that called the compiled code; of other work, `location`."""
    fused: Int64
    """A number that rows have in common which were fused from the same lines; -1 where the source is not known."""
    shared: Mask
    """Whether other lines have a part of the same piece."""
    captured: Mask
    """Whether it is of a CUDA graph's replay, and stands at the line that it was captured at."""
    without_sources: Mask
    """Whether it is of a compiled graph that tells no source lines, so that it stands at the line of the call."""
    backward: Mask
    """Whether it was launched below autograd's engine, or is of a CUDA graph and annotated as backward work."""
    step: Int64
    """Index of the step that it was launched in, -1 for none."""
    outside: Mask
    """Whether it was launched outside the steps; of a trace without steps nothing is."""
    busy: dict[int, Intervals]
    """Union of the work over all streams, by device (the CPU is one device, whatever its threads)."""

    @property
    def working(self) -> Intervals:
        """When at least one device works."""
        return union_of(*self.busy.values())


def owned(
    work: Work, calls: CallForest, owners: Owners, steps: StepSpans, paths: PathBuilder, *, compiled: FusedKernels
) -> OwnedWork:
    """Work with the owners of the calls that launched it, that of compiled code divided among its source lines.

    The paths to the lines are added to `paths`.
    """
    called_at = pick(owners.location, work.node)
    parts = compiled.divide(work, called_at, joined_paths(paths, calls, owners.path, work.node), paths)
    row = parts.row
    begins = np.searchsorted(row, np.arange(len(work)))
    differs = mask_of(row[parts.location != parts.location[begins][row]], len(work))
    columns = {one.name: getattr(work, one.name) for one in fields(work) if one.name not in ("metric", "duration_ns")}
    counts = mask_of(begins, len(row))
    step = steps.of(work.launch_ns)[row]
    return OwnedWork(
        metric=work.metric,
        duration_ns=parts.duration_ns,
        **{name: column[row] for name, column in columns.items()},
        piece=row,
        counts=counts,
        location=parts.location,
        path=parts.path,
        called_at=called_at[row],
        fused=parts.fused,
        shared=differs[row],
        captured=compiled.captured[row],
        without_sources=compiled.without_sources[row],
        backward=((work.node >= 0) & calls.backward[work.node] | compiled.backward)[row],
        step=step,
        outside=(step < 0) & (len(steps) > 0),
        busy=busy_with(work, np.ones(len(work), np.bool_)),
    )


def busy_with(work: Work, chosen: Mask) -> dict[int, Intervals]:
    """By device, the union of some work (shape (w,)) over all streams."""
    device = work.device
    return {one: covered_by(work, chosen & (device == one)) for one in distinct_values(device).tolist()}


@dataclass(frozen=True, slots=True)
class Attribution:
    """What analyses start from. Each takes the parts that it needs."""

    trace: Trace
    operators: Operators
    scopes: Scopes
    training: Training
    calls: CallForest
    owners: Owners
    work: OwnedWork
    runs: LineRuns
    paths: PathTable
    """The paths of `owners`, `work` and `runs`."""
    framework: FrameworkSpans


def attribute(trace: Trace) -> Attribution:
    """Finds the owner of everything in a trace.

    A kernel gets its line in four steps: the call that launched it (`find_work`), what called that (`join_backward`),
    the line around (`find_owners`), and from the call to its work (`owned`). Compiled kernels go on from there to the
    lines that they were fused from (`find_fused`).
    """
    nested = nest(trace)
    operators = find_operators(trace, nested.parent)
    scopes = find_scopes(trace, nested.parent)
    work = find_work(trace, operators)
    training = find_training(trace, nested.parent, work.node)
    calls = join_backward(trace, nested, scopes.marks, training.thread)
    paths = PathBuilder()
    owners = find_owners(trace, scopes, calls, paths)
    compiled = find_fused(trace, nested.parent, work, scopes.locations)
    done = owned(work, calls, owners, training.steps, paths, compiled=compiled)
    return Attribution(
        trace=trace,
        operators=operators,
        scopes=replace(scopes, locations=compiled.locations_of(done.location[~done.shared])),
        training=training,
        calls=calls,
        owners=owners,
        work=done,
        runs=find_runs(scopes, calls, owners, paths),
        paths=paths.table(),
        framework=find_framework(trace, scopes.marks, nested.parent),
    )


CUT_MARK = "..."
"""Stands for the frames that were left out of a stack."""

_DEPTHS = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Limits for the frames of a stack, down to the owner alone."""


@dataclass(frozen=True, slots=True)
class CallStacks:
    """Each distinct stack once, and which one each event has."""

    frames: list[str]
    """`path(line): function`, by location."""
    stacks: list[tuple[int, ...]]
    """Locations, innermost first. A line that calls itself stands once."""
    of_event: Int64
    """Index into `stacks`, -1 none; shape (events,)."""

    def texts(self, depth: int) -> list[str]:
        """The stacks as `Call stack` arguments of at most so many frames; frames in the middle are left out.

        The innermost frames say where the work comes from, the outermost which loop and which `backward()`.
        """
        return [";".join(self._parts(stack, depth)) for stack in self.stacks]

    def depth_within(self, size_bytes: int) -> int:
        """The greatest depth at which all events' texts together take so many bytes; 1 where none does."""
        counts = np.bincount(self.of_event[self.of_event >= 0], minlength=len(self.stacks))
        for depth in _DEPTHS:
            lengths = [len(text.encode("utf-8", "replace")) for text in self.texts(depth)]
            if int(counts @ np.array(lengths, np.int64)) <= size_bytes:
                return depth
        return _DEPTHS[-1]

    def deeper_than(self, depth: int) -> int:
        """How many events have a stack of more frames."""
        deeper = np.array([len(stack) > depth for stack in self.stacks] + [False])
        return int(deeper[self.of_event].sum())

    def _parts(self, stack: tuple[int, ...], depth: int) -> Iterator[str]:
        if len(stack) <= depth:
            yield from (self.frames[location] for location in stack)
            return
        outer = depth // 4
        yield from (self.frames[location] for location in stack[: depth - outer])
        yield CUT_MARK
        yield from (self.frames[location] for location in stack[len(stack) - outer :])


def call_stacks(attribution: Attribution) -> CallStacks:
    """The stacks of all operators whose work a recorded line owns.

    The innermost frame is that line. For backward work it is the forward line; the call of `backward()` follows.
    """
    trace = attribution.trace
    of_event = np.full(len(trace.events), -1, np.int64)
    # The dashboard splits at semicolons, and a file's name may hold one.
    frames = [
        f"{place.file}({place.line}): {place.function}".replace(";", ",") for place in attribution.scopes.locations
    ]
    if not trace.has_line_scopes:
        return CallStacks(frames, [], of_event)
    operators = np.flatnonzero(of_kind(trace, Kind.OPERATOR))
    paths = PathBuilder(attribution.paths)
    found, inverse = distinct_places(joined_paths(paths, attribution.calls, attribution.owners.path, operators))
    of_event[operators] = np.where(found > 0, np.arange(len(found)), -1)[inverse]
    stacks = [tuple(place for place, _ in groupby(reversed(paths.locations(path)))) for path in found.tolist()]
    return CallStacks(frames, stacks, of_event)
