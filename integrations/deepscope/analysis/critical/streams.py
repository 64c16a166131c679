"""Streams of a trace's work: their processes, their last pieces, and what Kineto's `cuda_sync` spans tell of them."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, of_kind
from deepscope.analysis.critical.pieces import Pieces
from deepscope.trace.arrays import distinct_values, first_with, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Trace


def last_pieces(pieces: Pieces, stream: Int64, until: Int64, ended: Int64) -> Int64:
    """The last piece of each stream that was launched before an instant and ended by another one, -1 for none."""
    found = np.full(len(stream), -1, np.int64)
    for number in distinct_values(stream).tolist():
        rows = np.flatnonzero(stream == number)
        low, high = np.searchsorted(pieces.stream, [number, number + 1]).tolist()
        known = np.where(pieces.launched[low:high], pieces.launch[low:high], np.iinfo(np.int64).min)
        launched = np.searchsorted(np.maximum.accumulate(known), until[rows], side="left")
        done = np.searchsorted(np.maximum.accumulate(pieces.end[low:high]), ended[rows], side="right")
        place = np.minimum(launched, done) - 1
        found[rows] = np.where(place >= 0, low + place, -1)
    return found


def sync_spans(trace: Trace) -> Int64:
    """Kineto's `cuda_sync` spans, which repeat a call with what it waited for."""
    spans = of_kind(trace, Kind.DEVICE_SPAN)
    category = np.array([text == "cuda_sync" for text in trace.strings] + [False])
    return np.flatnonzero(spans & category[trace.events.category] & (trace.events.correlation >= 0))


def recorded_at(trace: Trace, spans: Int64, otherwise: Int64) -> Int64:
    """When the event that each span waits for was recorded; `otherwise` where the file does not have that call."""
    events = trace.events
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    at = first_with(events.correlation[calls], events.wait_record[spans])
    known = (at >= 0) & (events.wait_record[spans] >= 0)
    return np.where(known, events.start_ns[pick(calls, at)], otherwise) if len(calls) else otherwise


def stream_of(trace: Trace, pieces: Pieces, device: Int32, stream: Int64) -> Int64:
    """The number of a device's stream, -1 where it has no work."""
    events = trace.events
    found = np.full(len(stream), -1, np.int64)
    first = np.append(True, pieces.stream[1:] != pieces.stream[:-1])
    known = {
        (int(events.device[event]), int(events.stream[event])): number
        for event, number in zip(pieces.event[first].tolist(), pieces.stream[first].tolist(), strict=True)
    }
    keys = zip(device.tolist(), stream.tolist(), strict=True)
    found[:] = [known.get(key, -1) for key in keys]
    return found


def processes(trace: Trace) -> Int64:
    """A number for the process of each thread; shape (threads,)."""
    index: dict[object, int] = {}
    return np.array([index.setdefault(one.pid, len(index)) for one in trace.threads], np.int64)


def process_of_streams(pieces: Pieces, process: Int64, streams: int) -> Int64:
    """The process that launches to each stream, -1 where that is not known."""
    found = np.full(streams, -1, np.int64)
    known = pieces.thread >= 0
    found[pieces.stream[known]] = process[pieces.thread[known]]
    return found


def only(chosen: Int64, among: int) -> Mask:
    """Which of so many events are the chosen ones."""
    mask = np.zeros(among, np.bool_)
    mask[chosen] = True
    return mask
