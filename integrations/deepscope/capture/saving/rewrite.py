"""From torch's export to DeepScope's trace: scopes named, stacks on operators, the `deepscope` object, compressed.

Runs in a process of its own for large traces (`writer.py`), so that it takes neither the interpreter's lock nor time
from the training run.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np

from deepscope.analysis.ownership.attribution import attribute, call_stacks
from deepscope.capture.counters.sampler import CounterTrack
from deepscope.capture.saving.event_text import (
    compact,
    counter_events,
    escape_names,
    json_bytes,
    off_cpu_prefix,
    recording_prefix,
    scope_event,
    scope_prefix,
    with_argument,
    with_duration,
    with_name,
)
from deepscope.capture.saving.marks import (
    ClockReadings,
    LateRuns,
    compared_clock,
    end_with_window,
    memory_with_times,
    on_host_clock,
    window_end_ns,
    with_late_runs,
)
from deepscope.errors import TraceError
from deepscope.trace.format.header import CallStackAccount, Header, ScopeRow
from deepscope.trace.format.span_names import LINE, is_late, is_own, parse_name, parse_off_cpu, parse_recording
from deepscope.trace.joins.recorded_scopes import end_broken_lines, scope_of
from deepscope.trace.kinds import Kind
from deepscope.trace.kineto.decode import decode_headings
from deepscope.trace.kineto.pieces import Piece, Pieces
from deepscope.trace.kineto.source import TraceSource
from deepscope.trace.model import Int64, Scope, Trace
from deepscope.trace.read import read_trace

try:
    from isal import igzip
except ImportError:  # no wheel for this machine
    igzip = None


class Instructions(msgspec.Struct, kw_only=True):
    """What to make of torch's export at `raw`; the trace appears at `target` when it is whole."""

    raw: str
    target: str
    header: Header
    rename: dict[str, str | None] = {}
    """New names of annotations; None takes them out."""
    drop_if_empty: str = ""
    """Name of the annotation that ends with the window; it is taken out where no operator starts within it."""
    on_its_thread: bool = False
    """Count operators of the annotation's own thread alone: threads beside the training work on when it has ended."""
    clock_readings: ClockReadings = []
    align_time: bool = False
    """Make Unix time by the host's clock of the trace's times."""
    counters: list[CounterTrack] = []
    """What was counted of the machine, by the host's clock."""
    skip_if_empty: bool = False
    """Write nothing where no operator was recorded at all."""


def rewrite(instructions: Instructions) -> bool:
    """Write the trace, and say whether that is done; removes nothing, so that the export is still there if it raises.

    Raises `TraceError` when the export cannot be read and `OSError` when the trace cannot be written.
    """
    raw = _read_export(Path(instructions.raw))
    header = instructions.header
    header.memory = memory_with_times(header.memory, raw)
    header.clock = compared_clock(instructions.clock_readings, raw)
    if header.clock is not None and instructions.align_time:
        raw, header.clock = on_host_clock(raw, header.clock)
    scopes = [scope_of(row, header) for row in header.scopes if row is not None]
    trace = _with_scopes(raw, scopes)
    ended = end_with_window(trace, instructions.drop_if_empty)
    gone = np.flatnonzero(ended.events.kind != trace.events.kind)
    trace = end_broken_lines(ended)
    cut = np.flatnonzero(trace.events.duration_ns != raw.events.duration_ns)
    trace, late = with_late_runs(trace, len(scopes), window_end_ns(raw, instructions.drop_if_empty))
    trace = _with_annotations(trace, instructions.rename)
    names = _renames(trace, instructions)
    trace = _as_written(trace, names, header)
    events = trace.events
    operators = int((events.kind == Kind.OPERATOR).sum())
    if instructions.skip_if_empty and not operators:
        return False
    stacks = call_stacks(attribute(trace))
    depth = stacks.depth_within(Path(instructions.raw).stat().st_size)
    edits = _Edits(
        trace,
        count=len(raw.events),
        stacks=stacks.of_event,
        texts=stacks.texts(depth),
        late=late,
        cut=cut,
        gone=gone,
        names=names,
        strings=raw.strings,
        table=header.scopes,
    )
    with_stack = int((stacks.of_event >= 0).sum())
    header.call_stacks = CallStackAccount(operators, with_stack, depth, stacks.deeper_than(depth))
    with _renamed_when_whole(Path(instructions.target)) as stream:
        stream.write(b'{"schemaVersion":%s,"deepscope":' % json_bytes(trace.metadata.get("schemaVersion", 1)))
        stream.write(json_bytes(header))
        for key, value in trace.metadata.items():
            if key not in ("schemaVersion", "traceName"):
                stream.write(b"," + json_bytes(key) + b":" + json_bytes(value))
        stream.write(b',"traceName":' + json_bytes(instructions.target) + b',"traceEvents":[\n')
        pieces = Pieces(TraceSource(instructions.raw), instructions.raw, decode_headings)
        for number, piece in enumerate(pieces):
            text = b",\n".join(edits.apply(piece))
            stream.write((b",\n" if number and text else b"") + text)
        edits.check_all_seen()
        if header.clock is not None:
            for event in counter_events(instructions.counters, header.pid, header.clock, raw.base_ns):
                stream.write(b",\n" + event)
        stream.write(b"\n]}\n")
    return True


def _read_export(export: Path) -> Trace:
    try:
        return read_trace(export, workers=0)
    except TraceError:
        if not escape_names(export):
            raise
        return read_trace(export, workers=0)


def _with_scopes(trace: Trace, scopes: list[Scope]) -> Trace:
    """The trace with the kinds and numbers of scopes, which torch's export has among the operators."""
    events = trace.events
    scope_of_name = np.full(len(trace.strings), -1, np.int32)
    is_line = np.zeros(len(trace.strings), np.bool_)
    for index, name in enumerate(trace.strings):
        if not is_late(name) and (parsed := parse_name(name)) is not None and parsed.scopes[0] < len(scopes):
            scope_of_name[index] = parsed.scopes[0]
            is_line[index] = name.startswith(LINE)
    # Without torch's fast scopes they are annotations. The device gets copies of those: no scopes, and taken out.
    on_cpu = events.kind != Kind.DEVICE_SPAN
    scope = np.where(on_cpu, scope_of_name[events.name], -1).astype(np.int32)
    scope_kind = np.where(is_line[events.name], np.uint8(Kind.LINE_SCOPE), np.uint8(Kind.MODULE_SCOPE))
    kind = np.where(scope >= 0, scope_kind, events.kind)
    return replace(trace, scopes=scopes, events=replace(events, scope=scope, kind=kind))


def _with_annotations(trace: Trace, renamed: Mapping[str, str | None]) -> Trace:
    """The trace with light annotations as annotations; torch's export has them among the operators, too."""
    events = trace.events
    is_renamed = np.array([name in renamed for name in trace.strings], np.bool_)
    if not is_renamed.any():
        return trace
    is_light = is_renamed[events.name] & (events.kind == Kind.OPERATOR)
    return replace(trace, events=replace(events, kind=np.where(is_light, np.uint8(Kind.ANNOTATION), events.kind)))


def _as_written(trace: Trace, names: Mapping[str, str | None], header: Header) -> Trace:
    """The trace as a reader of the file will see it: names are new, and what is taken out is of kind `OTHER`."""
    events = trace.events
    gone = np.array([name in names and names[name] is None for name in trace.strings], np.bool_)
    kind = np.where(gone[events.name] & (events.scope < 0), np.uint8(Kind.OTHER), events.kind)
    return replace(
        trace,
        strings=[names.get(name) or name for name in trace.strings],
        events=replace(events, kind=kind),
        header=header,
    )


class _Edits:
    """Applies to each piece of the export what was decided for its events."""

    def __init__(
        self,
        trace: Trace,
        *,
        count: int,
        stacks: Int64,
        texts: list[str],
        late: dict[int, LateRuns],
        cut: Int64,
        gone: Int64,
        names: dict[str, str | None],
        strings: list[str],
        table: list[ScopeRow | None],
    ) -> None:
        self._seen = 0
        self._count = count
        self._late = late
        self._cut = dict(zip(cut.tolist(), trace.events.duration_ns[cut].tolist(), strict=True))
        self._gone = frozenset(gone.tolist())
        self._scope: list[int] = trace.events.scope.tolist()
        self._stack: list[int] = stacks.tolist()
        self._off_cpu = {name: parsed for name in strings if (parsed := parse_off_cpu(name)) is not None}
        has_own_name = np.array([name in names or name in self._off_cpu for name in strings] + [False])
        is_plain = (trace.events.scope < 0) & ~has_own_name[trace.events.name]
        is_plain[np.concatenate([cut, gone, np.fromiter(late, np.int64)])] = False
        self._is_plain: list[bool] = is_plain.tolist()
        """Of most events: at most a stack is put in."""
        self._texts = [json_bytes(text) for text in texts]
        self._names = names
        self._affixes = [
            scope_prefix(number, scope, is_module=row is not None and row.kind == 1)
            for number, (scope, row) in enumerate(zip(trace.scopes, table, strict=True))
        ]

    def apply(self, piece: Piece) -> Iterator[Any]:
        """The piece's events as they go into the trace."""
        for event, given in zip(piece.events, _decode_raw(compact(bytes(piece.text))), strict=True):
            if event.ph != "X":
                yield given
                continue
            index = self._seen
            self._seen += 1
            if self._is_plain[index]:
                stack = self._stack[index]
                yield given if stack < 0 else with_argument(bytes(given), b'"Call stack"', self._texts[stack])
                continue
            if index in self._gone:
                continue
            scope = self._scope[index]
            text = with_duration(bytes(given), self._cut[index]) if index in self._cut else given
            if index in self._late:
                run = self._late[index]
                times_ns = run.start_ns, run.duration_ns
                yield from (scope_event(bytes(text), *self._affixes[number], times_ns) for number in run.scopes)
            elif scope >= 0:
                yield scope_event(bytes(text), *self._affixes[scope])
            elif (off_cpu := self._off_cpu.get(event.name)) is not None:
                yield scope_event(bytes(text), *off_cpu_prefix(off_cpu))
            elif (recording_ns := parse_recording(event.name)) is not None:
                yield scope_event(bytes(text), *recording_prefix(recording_ns))
            elif event.name in self._names:
                name = self._names[event.name]
                if name is not None:
                    yield with_name(bytes(text), name)
            elif self._stack[index] >= 0:
                yield with_argument(bytes(text), b'"Call stack"', self._texts[self._stack[index]])
            else:
                yield text

    def check_all_seen(self) -> None:
        """Raises `TraceError` where the columns and the text did not agree on the number of events."""
        if self._seen != self._count:
            raise TraceError(f"torch's export has {self._seen:,} events where {self._count:,} were read")


_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _renames(trace: Trace, instructions: Instructions) -> dict[str, str | None]:
    names = dict(instructions.rename)
    for name in trace.strings:
        if is_own(name):
            names[name] = None
    last = instructions.drop_if_empty
    current = next((old for old, new in names.items() if new == last), last)
    if last and current in trace.strings:
        events = trace.events
        spans = np.flatnonzero((events.name == trace.strings.index(current)) & (events.kind == Kind.ANNOTATION))
        operators = _operators(trace)
        if instructions.on_its_thread:
            operators = operators[np.isin(events.thread[operators], events.thread[spans])]
        if not _any_within(events.start_ns[operators], events.start_ns[spans], events.end_ns[spans]):
            names[current] = None
    return names


def _operators(trace: Trace) -> Int64:
    """The operators (events), without the spans of the recorder's own that torch takes for some."""
    own = np.array([is_own(name) for name in trace.strings], bool)
    events = trace.events
    return np.flatnonzero((events.kind == Kind.OPERATOR) & ~own[events.name])


def _any_within(moments: Int64, starts: Int64, ends: Int64) -> bool:
    moments = np.sort(moments)
    return bool((np.searchsorted(moments, ends) > np.searchsorted(moments, starts)).any())


@contextmanager
def _renamed_when_whole(target: Path) -> Iterator[BinaryIO]:
    """A stream, compressed if the name says so; `target` appears only once all is on the disk."""
    partial = target.with_name(f".{target.name.partition('.pt.trace.json')[0]}.deepscope-part")
    try:
        with _opened(partial, compressed=target.suffix == ".gz") as stream:
            yield stream
        partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _opened(path: Path, *, compressed: bool) -> BinaryIO:
    if not compressed:
        return path.open("wb")
    # igzip takes a tenth of the time for a fifth more bytes: zlib took a quarter of all that writing a trace costs.
    return cast("BinaryIO", gzip.open(path, "wb", compresslevel=6) if igzip is None else igzip.open(path, "wb"))
