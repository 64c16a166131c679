"""Makes the timeline of a trace: its slices in order, with all that is asked about them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.memory import MemoryUse, find_memory
from deepscope.analysis.numbers.phases import PhaseTimeline, find_phases
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.calls import step_events
from deepscope.analysis.ownership.locations import frame_of
from deepscope.analysis.ownership.modules import ModuleScopes, find_modules
from deepscope.dashboard.timeline.answers import CodeLine
from deepscope.dashboard.timeline.columns import (
    KIND_NUMBER,
    KINDS,
    LONGEST,
    Labels,
    OwnWork,
    SliceColumns,
    Texts,
    TimelineColumns,
    encodable,
)
from deepscope.dashboard.timeline.counters import counters_of
from deepscope.dashboard.timeline.detail_levels import busy_of_devices, busy_of_tracks, levels_of
from deepscope.dashboard.timeline.details import facts_of, links_of
from deepscope.dashboard.timeline.tracks import Placement, place_on_tracks, rows_of
from deepscope.printable import clipped, printable
from deepscope.records import PHASES
from deepscope.records.source_files import base_name, installed_path, path_below
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.format.span_names import MODULE_TITLE, STEP_PREFIX
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Scope, Trace


def build_timeline(of: Attribution) -> TimelineColumns:
    """The timeline of a trace. Each of its events is one slice; the phases of training are slices besides."""
    trace = of.trace
    modules = find_modules(trace, of.calls)
    phases = _phases(of, find_phases(trace, of.calls, of.operators, modules, of.training))
    steps = step_events(trace) & (trace.events.thread == of.training.thread)
    placement = place_on_tracks(trace, of.training.thread, steps, has_steps=bool(steps.any()) or len(phases.phase) > 0)
    layout = _lay_out(trace, placement, phases)
    own = _own(of, modules, len(phases.phase))
    has_device = of.work.metric == "device"
    collectives = of.work.event[of.work.collective] if has_device else np.zeros(0, np.int64)
    kinds = kinds_of(trace, steps, collectives)
    labels, label = labels_of(trace, kinds, phases.phase)
    order, of_event = layout.order, layout.slice_of[: len(trace.events)]
    slices = SliceColumns(
        start=layout.start[order],
        end=layout.end[order],
        label=label[order].astype(np.int32),
        place=own.place[order].astype(np.int32),
        self_ns=_self_ns(layout)[order],
        path=own.path[order].astype(np.int32),
        module=own.module[order].astype(np.int32),
    )
    counters, devices = counters_of(of, _memory(of), layout.begin), busy_of_devices(of.work, layout.begin)
    facts, texts = facts_of(of, of_event)
    operators = np.argsort(of_event[of.operators.nodes])
    place = np.empty(len(operators), np.int64)
    place[operators] = np.arange(len(operators))
    return TimelineColumns(
        end_ns=int(slices.end.max(initial=0)),
        begin_epoch_ns=str(layout.begin + trace.unix_base_ns),
        has_device=has_device,
        tracks=placement.tracks,
        track_lane=layout.track_lane,
        lane_slice=layout.lane_slice,
        slices=slices,
        labels=labels,
        places=_places(of),
        path_parent=of.paths.parent.astype(np.int32),
        path_place=of.paths.location.astype(np.int32),
        modules=Texts.of([path for path, _ in modules.names]),
        levels=levels_of(slices, layout.lane_slice),
        links=links_of(of, of_event),
        facts=facts,
        texts=texts,
        operators=of_event[of.operators.nodes[operators]].astype(np.int32),
        operator_caller=pick(place, of.operators.caller[operators]).astype(np.int32),
        work=_work(of, of_event),
        busy=busy_of_tracks(slices, labels, layout.lane_slice[layout.track_lane]),
        devices=list(of.work.busy) if has_device else [],
        device_busy=devices,
        counters=counters,
    )


class _Phases(NamedTuple):
    """Stretches of one phase each; arrays of shape (p,)."""

    phase: Int64
    start: Int64
    end: Int64


def _phases(of: Attribution, found: PhaseTimeline) -> _Phases:
    """The phases of the training thread; none where nothing is known of any."""
    phase, start, end = found.phase, found.spans.start, found.spans.end
    if of.training.thread < 0 or (phase == PHASES.index("other")).all():
        return _Phases(phase[:0], start[:0], end[:0])
    first = np.flatnonzero(np.append(True, (phase[1:] != phase[:-1]) | (start[1:] != end[:-1])))
    last = np.append(first[1:], len(phase)) - 1
    return _Phases(phase[first], start[first], end[last])


class _Layout(NamedTuple):
    """Where all slices stand: events first, then phases; arrays of shape (n + p,) but for those by track and lane."""

    begin: int
    start: Int64
    """From the timeline's begin."""
    end: Int64
    parent: Int64
    """What each lies in on its thread or stream."""
    order: Int64
    """By track, row and start."""
    slice_of: Int64
    """The place of each in that order."""
    track_lane: Int64
    lane_slice: Int64


def _lay_out(trace: Trace, placement: Placement, phases: _Phases) -> _Layout:
    events = trace.events
    start = np.concatenate((events.start_ns, phases.start))
    end = np.concatenate((events.end_ns, phases.end))
    begin = int(start.min(initial=np.iinfo(np.int64).max)) if len(start) else 0
    start -= begin
    end -= begin
    track = np.concatenate((placement.of_event, np.zeros(len(phases.phase), np.int64)))
    # What is laid into rows by itself: phases below steps, spans of devices below their work.
    layer = np.concatenate((events.kind == Kind.DEVICE_SPAN, np.ones(len(phases.phase), np.bool_)))
    group = track * 2 + layer
    rank = np.concatenate((events.kind, np.zeros(len(phases.phase), events.kind.dtype)))
    on_device = (rank >= Kind.KERNEL) & (rank <= Kind.DEVICE_SPAN)
    row, parent = rows_of(start, end, group, rank, side_by_side=on_device)
    depth = np.zeros(2 * len(placement.tracks), np.int64)
    np.maximum.at(depth, group, row + 1)
    row += np.where(layer, depth[2 * track], 0)
    if placement.shared:
        rows = np.flatnonzero(np.isin(track, placement.shared))
        of_thread = events.thread[rows].astype(np.int64) * 2 + layer[rows]
        own = rows_of(start[rows], end[rows], of_thread, rank[rows], side_by_side=on_device[rows])
        parent[rows] = pick(rows, own[1])
    depth = depth.reshape(-1, 2).sum(axis=1)
    track_lane = np.concatenate(([0], np.cumsum(depth)))
    lane = track_lane[track] + row
    order = _in_order(lane, start, end)
    lane_slice = np.searchsorted(lane[order], np.arange(int(track_lane[-1]) + 1))
    slice_of = np.empty(len(order), np.int64)
    slice_of[order] = np.arange(len(order))
    counts = np.bincount(track, minlength=len(placement.tracks)).tolist()
    for place, one in enumerate(placement.tracks):
        one.rows, one.slices = int(depth[place]), counts[place]
    return _Layout(begin, start, end, parent, order, slice_of, track_lane, lane_slice)


def _in_order(lane: Int64, start: Int64, end: Int64) -> Int64:
    """By lane, start and end."""
    span = int(start.max(initial=0)) + 1
    if span * (int(lane.max(initial=0)) + 1) >= 1 << 62:
        return np.asarray(np.lexsort((end, start, lane)))
    key = lane * span + start
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    tied = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(tied):
        rows = np.union1d(tied, tied + 1)
        order[rows] = order[rows][np.lexsort((end[order[rows]], ordered[rows]))]
    return order


_ROUNDS = 64
"""So far what outlasts what it began in is followed outward."""


def _self_ns(layout: _Layout) -> Int64:
    """Each slice's time without the slices in it; what lies in one ends with it."""
    parent, start, end = layout.parent, layout.start, layout.end
    reach = end.copy()
    inner = np.flatnonzero(parent >= 0)
    late = inner
    for _ in range(_ROUNDS):
        late = late[reach[late] > reach[parent[late]]]
        if not len(late):
            break
        np.maximum.at(reach, parent[late], reach[late])
        late = inner[np.isin(inner, parent[late])]
    covered = np.zeros(len(start), np.int64)
    around = parent[inner]
    np.add.at(covered, around, np.minimum(reach[inner], end[around]) - start[inner])
    return np.asarray(np.maximum(end - start - covered, 0))


class _Own(NamedTuple):
    """Whose each slice is; arrays of shape (n + p,)."""

    place: Int64
    path: Int64
    module: Int64


def _own(of: Attribution, modules: ModuleScopes, phases: int) -> _Own:
    """The line, the call path and the module of each slice. Of a kernel with several lines it is the largest part's."""
    place, path = of.owners.location.copy(), of.owners.path.copy()
    within = modules.of_event.copy()
    work = of.work
    rows = np.flatnonzero(work.counts)
    event = work.event[rows]
    place[event], path[event] = work.location[rows], work.path[rows]
    within[event] = modules.of_work(work)[rows]
    module = pick(modules.module, within)
    none = np.full(phases, -1, np.int64)
    return _Own(np.append(place, none), np.append(path, none * 0), np.append(module, none))


def _work(of: Attribution, of_event: Int64) -> OwnWork:
    """The parts of work with their lines, by slice."""
    work = of.work
    slices = of_event[work.event]
    order = np.argsort(slices, kind="stable")
    slices, duration = slices[order], work.duration_ns[order]
    before = np.concatenate(([0], np.cumsum(duration)))[:-1]
    first = np.searchsorted(slices, slices)
    return OwnWork(
        slice=slices.astype(np.int32),
        offset_ns=before - before[first] if len(first) else before,
        duration_ns=duration,
        place=work.location[order].astype(np.int32),
    )


def _memory(of: Attribution) -> MemoryUse:
    has_device = of.work.metric == "device"
    lines = len(of.scopes.locations)
    return find_memory(of.trace, of.calls.nested, of.owners.location, lines, Extent(None), on_cpu=not has_device)


def _places(of: Attribution) -> list[CodeLine]:
    root = of.trace.header.project_root
    return [
        CodeLine(
            file=encodable(one.file),
            line=one.line,
            function=printable(one.function),
            title=clipped(line_title(one.file, one.line, one.function, root), LONGEST),
        )
        for one in of.scopes.locations
    ]


_KIND_WORDS = {
    Kind.ANNOTATION: "annotation",
    Kind.PYTHON_FUNCTION: "frame",
    Kind.LINE_SCOPE: "line",
    Kind.MODULE_SCOPE: "module",
    Kind.OPERATOR: "operator",
    Kind.RUNTIME: "runtime",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "copy",
    Kind.MEMSET: "copy",
    Kind.DEVICE_SPAN: "span",
    Kind.OTHER: "other",
}


def kinds_of(trace: Trace, steps: Mask, collectives: Int64) -> Int64:
    """The kind of each event, an index into `KINDS`; shape (n,). `collectives` are the kernels that are such."""
    table = np.full(256, KIND_NUMBER["other"], np.int64)
    for kind, word in _KIND_WORDS.items():
        table[kind] = KIND_NUMBER[word]
    found: Int64 = table[trace.events.kind]
    found[trace.library_lines] = KIND_NUMBER["library"]
    modules = np.array([text.startswith(MODULE_TITLE) for text in trace.strings] + [False], np.bool_)
    found[modules[trace.events.name] & (trace.events.kind == Kind.PYTHON_FUNCTION)] = KIND_NUMBER["module"]
    found[collectives] = KIND_NUMBER["collective"]
    found[steps] = KIND_NUMBER["step"]
    return found


def labels_of(trace: Trace, kinds: Int64, phases: Int64) -> tuple[Labels, Int64]:
    """The labels of all events and, behind them, of some phases (indexes into `PHASES`); shape (n + phases,)."""
    events, strings, scopes = trace.events, trace.strings, trace.scopes
    scope = events.scope.astype(np.int64)
    names = np.where(scope >= 0, scope + len(strings), events.name)
    names = np.concatenate((names, phases + len(strings) + len(scopes)))
    kinds = np.concatenate((kinds, np.full(len(phases), KIND_NUMBER["phase"])))
    found, label = distinct_places(names * len(KINDS) + kinds)
    kind = found % len(KINDS)
    root = trace.header.project_root
    recorded, titles = [], []
    for code, word in zip((found // len(KINDS)).tolist(), (KINDS[one] for one in kind.tolist()), strict=True):
        if code < 0:
            text, title = "", "(no name)"
        elif code < len(strings):
            text, title = strings[code], _title(strings[code], word, root)
        elif code < len(strings) + len(scopes):
            text, title = _of_scope(scopes[code - len(strings)], word, root)
        else:
            text, title = PHASES[code - len(strings) - len(scopes)], ""
        recorded.append(text)
        titles.append(title)
    return Labels(kind.astype(np.uint8), Texts.of(recorded), Texts.of(titles)), label


def _title(text: str, kind: str, root: str) -> str:
    """What is shown of a name where that is more than made readable; else ""."""
    if kind == "step":
        return f"step {text.removeprefix(STEP_PREFIX)}"
    if kind == "module":
        return text.removeprefix(MODULE_TITLE)
    if kind == "frame" and (frame := frame_of(text)) is not None:
        return line_title(frame.path, frame.line, frame.function, root)
    return ""


def _of_scope(scope: Scope, kind: str, root: str) -> tuple[str, str]:
    if kind == "module":
        whole = f"{scope.path} ({scope.name})" if scope.path else scope.name
        return whole, whole
    return f"{scope.file}:{scope.line} {scope.name}", line_title(scope.file, scope.line, scope.name, root)


def line_title(file: str, line: int, function: str, root: str) -> str:
    """A line as `net.py:42 Net.forward`: its path in the project or in the installed packages, else its file's name."""
    short = path_below(file, root) if root else ""
    if not short:
        inner = installed_path(file)
        short = inner if inner != file else base_name(file) or file
    return f"{short}:{line} {function}".rstrip()
