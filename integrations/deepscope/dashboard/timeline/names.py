"""What slices are called: names as recorded, and as they are shown."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.ownership.locations import frame_of
from deepscope.dashboard.timeline.answers import Found
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, Labels, Texts, TimelineColumns
from deepscope.errors import OptionError
from deepscope.printable import clipped, printable
from deepscope.records import PHASES
from deepscope.records.places import base_name, installed_path, path_below
from deepscope.report.event_names import readable
from deepscope.trace.arrays import distinct_places
from deepscope.trace.format.span_names import MODULE_TITLE, STEP_PREFIX
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Scope, Trace

LONGEST = 160
"""Letters of a name that windows and lists show."""

_KINDS = {
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
    for kind, word in _KINDS.items():
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


def shown_name(labels: Labels, label: int) -> str:
    """What windows and lists show of a label."""
    return shown(labels.titles[label], labels.recorded[label])


def shown(title: str, recorded: str) -> str:
    """A title, or a recorded name where there is none, safe to print and not too long."""
    return clipped(title or readable(recorded), LONGEST)


def whole_name(labels: Labels, label: int) -> str:
    """A name as recorded, however long, safe to print."""
    return printable(labels.recorded[label])


_LARGEST = 1 << 61


def row_of(columns: TimelineColumns, one: int) -> tuple[int, int]:
    """The track and the row of a slice."""
    lane = int(np.searchsorted(columns.lane_slice, one, "right")) - 1
    track = int(np.searchsorted(columns.track_lane, lane, "right")) - 1
    return track, lane - int(columns.track_lane[track])


def found_slices(columns: TimelineColumns, chosen: Int64) -> list[Found]:
    """Slices with their names, in the given order."""
    slices, found = columns.slices, []
    for one in chosen.tolist():
        track, row = row_of(columns, one)
        found.append(
            Found(
                slice=one,
                track=track,
                row=row,
                start_ns=int(slices.start[one]),
                end_ns=int(slices.end[one]),
                name=shown_name(columns.labels, int(slices.label[one])),
            )
        )
    return found


def within(columns: TimelineColumns, tracks: Int64, begin: int, end: int) -> Int64:
    """The slices of some tracks that lie in a stretch of time at least in part, ascending.

    Slices without a length count at their instant.
    """
    if not len(tracks):
        return np.zeros(0, np.int64)
    lanes = columns.lane_slice[columns.track_lane[tracks]], columns.lane_slice[columns.track_lane[tracks + 1]]
    slices, parts = columns.slices, []
    for first, last in zip(lanes[0].tolist(), lanes[1].tolist(), strict=True):
        start, stop = slices.start[first:last], slices.end[first:last]
        parts.append(first + np.flatnonzero((start < end) & (np.maximum(stop, start + 1) > begin)))
    return np.concatenate(parts)


def stretch_of(begin: int, end: int) -> tuple[int, int]:
    """A stretch of time as it was asked for, in nanoseconds, at least one, within what 64 bits hold.

    Raises:
        OptionError: it ends before it begins.
    """
    first, last = (min(max(bound, -_LARGEST), _LARGEST) for bound in (begin, end))
    if first > last:
        raise OptionError("end_ns", end, f"lies before the begin, {begin}")
    return first, max(last, first + 1)


def asked_tracks(columns: TimelineColumns, tracks: Collection[int] | None) -> Int64:
    """The tracks that were asked for, ascending; all of them for None.

    Raises:
        OptionError: there is no such track.
    """
    if tracks is None:
        return np.arange(len(columns.tracks))
    for one in tracks:
        if not 0 <= one < len(columns.tracks):
            raise OptionError("tracks", one, f"no such track; there are {len(columns.tracks)}, from 0 on")
    return np.array(sorted(set(tracks)), np.int64)
