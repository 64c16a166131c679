"""Each call of a collective: its kind, what it moves, in which process group, and how long it takes.

Its kernel or the operator around its launch says so where torch wrote it (`record_param_comms`, from torch 2.3 on).
Else the span of the backend does (`nccl:all_reduce`, with sizes and types if shapes were recorded), else the kernel's
name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest_to, position_in
from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.intervals import union
from deepscope.analysis.algebra.selection import Mask, named, of_kind
from deepscope.analysis.numbers.arguments import Tensor, arguments
from deepscope.analysis.numbers.collectives import exposed_ns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.records.ranges import ranges
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.model import Int64, Kind, Trace
from deepscope.trace.names import ANNOUNCEMENT, is_collective, is_communication_span

__all__ = ["CollectiveCalls", "Group", "Told", "bus_factor", "collective_calls", "kind_of_collective"]

_KINDS = (
    ("allreduce", "all_reduce"),
    ("crossdevicereduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("sendrecv", "send_recv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("barrier", "barrier"),
    ("reduce", "reduce"),
    ("send", "send"),
    ("recv", "recv"),
)
"""A word in the names that libraries give it (blanks and case aside), and torch's word; the first that fits."""

# c10/core/ScalarType.h
_TYPES = {
    "Bool": ("bool", 1),
    "Byte": ("uint8", 1),
    "Char": ("int8", 1),
    "Short": ("int16", 2),
    "Int": ("int32", 4),
    "Long": ("int64", 8),
    "UInt16": ("uint16", 2),
    "UInt32": ("uint32", 4),
    "UInt64": ("uint64", 8),
    "Half": ("float16", 2),
    "BFloat16": ("bfloat16", 2),
    "Float": ("float32", 4),
    "Double": ("float64", 8),
    "ComplexHalf": ("complex32", 4),
    "ComplexFloat": ("complex64", 8),
    "ComplexDouble": ("complex128", 16),
    **{f"Float8_{name}": (f"float8_{name}", 1) for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")},
}
_LIBRARIES = ("nccl", "rccl", "msccl", "hccl", "hcom", "oneccl", "gloo")
_MOST_BYTES = 2**40
"""A message that seems to be larger has no known size."""
_MOST_RANKS = 2**24


def kind_of_collective(name: str) -> str:
    """torch's word for a collective, by the name of a call, a span or a kernel; "" where none fits."""
    letters = re.sub("[^a-z]", "", name.partition("(")[0].lower())
    return next((kind for word, kind in _KINDS if word in letters), "")


def bus_factor(kind: str, ranks: int) -> float:
    """By what the size of a message is multiplied for the bytes that each link of a ring carries; 0 where unknown.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    if ranks < 1 or kind in ("", "barrier"):
        return 0.0
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if kind in _DIVIDED else 1.0


_DIVIDED = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})


class Group(NamedTuple):
    """A process group, as far as the trace tells."""

    name: str = ""
    description: str = ""
    ranks: str = ""
    """`0-3, 8`."""
    size: int = 0


class Told(NamedTuple):
    """What is known of a call."""

    kind: str = ""
    library: str = ""
    dtype: str = ""
    size_bytes: int = 0
    """0 where it is not known."""
    group: Group = Group()


@dataclass(frozen=True, slots=True)
class CollectiveCalls:
    """The calls of collectives on one rank, in the order of their launches; arrays of shape (c,)."""

    event: Int64
    """The kernel, or the span."""
    work: Int64
    """The piece of work; -1 for spans of the CPU."""
    told: list[Told]
    of: Int64
    """Index into `told`."""
    on_device: Mask
    """Kernels of a device; else spans of a thread of the CPU."""
    time_ns: Int64
    exposed_ns: Int64
    """The part that no computation overlaps."""


def collective_calls(of: Attribution, extent: Extent) -> CollectiveCalls:
    """The calls within the extent: kernels, and spans of backends that work on the CPU."""
    trace, work = of.trace, of.work
    events = trace.events
    spans = named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), is_communication_span)
    is_device = work.metric == "device"
    rows = np.flatnonzero(work.collective & extent.holds(work.launch_ns)) if is_device else np.zeros(0, np.int64)
    hosts = named(trace, spans, _works_on_cpu) & extent.holds(events.start_ns)
    host = np.flatnonzero(hosts)
    event = np.concatenate((work.event[rows], host))
    at = np.concatenate((work.launch_ns[rows], events.start_ns[host]))
    order = np.argsort(at, kind="stable")
    columns = _columns(of, event, np.concatenate((work.node[rows], host)), spans)
    distinct_rows, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    exposed = exposed_ns(work)[rows] if len(rows) else np.zeros(0, np.int64)
    return CollectiveCalls(
        event=event[order],
        work=np.concatenate((rows, np.full(len(host), -1, np.int64)))[order],
        told=[_told(trace, row) for row in distinct_rows.tolist()],
        of=place.reshape(-1)[order],
        on_device=(np.arange(len(event)) < len(rows))[order],
        time_ns=np.concatenate((work.duration_ns[rows], events.duration_ns[host]))[order],
        exposed_ns=np.concatenate((exposed, _exposed_on_cpu(of, host)))[order],
    )


def _works_on_cpu(name: str) -> bool:
    return not name.startswith(("nccl", "xccl", "hccl"))


def _exposed_on_cpu(of: Attribution, spans: Int64) -> Int64:
    """The part of each span during which no operator runs on another thread, nor a kernel on a device."""
    events, operators = of.trace.events, of.operators
    outermost = operators.nodes[operators.caller < 0]
    names = named(of.trace, of_kind(of.trace, Kind.OPERATOR), lambda name: is_collective(name) or name == ANNOUNCEMENT)
    outermost = outermost[~names[outermost]]
    compute = of.work.kind == Kind.KERNEL
    kernels = (compute & ~of.work.collective) if of.work.metric == "device" else np.zeros(len(of.work), np.bool_)
    result = np.zeros(len(spans), np.int64)
    thread = events.thread[spans]
    for one in distinct_values(thread).tolist():
        here, others = thread == one, outermost[events.thread[outermost] != one]
        busy = union(
            np.concatenate((events.start_ns[others], of.work.start_ns[kernels])),
            np.concatenate((events.end_ns[others], of.work.end_ns[kernels])),
        )
        start, end = events.start_ns[spans[here]], events.end_ns[spans[here]]
        result[here] = end - start - busy.overlap_ns(start, end)
    return result


_FIELDS = ("collective", "in_elements", "out_elements", "element_type", "group", "group_description", "group_size",
           "group_ranks")  # fmt: skip


def _columns(of: Attribution, event: Int64, node: Int64, spans: Mask) -> list[Int64]:
    """What tells of each call: its message, the span around its launch, its own name; -1 for what is not there."""
    events, parent, messages = of.trace.events, of.calls.parent, of.trace.messages
    tells = np.zeros(len(events), np.bool_)
    tells[messages.event] = True
    announced = named(of.trace, of_kind(of.trace, Kind.OPERATOR), ANNOUNCEMENT.__eq__)
    announcing = nearest_to(node, parent, announced)
    place = position_in(messages.event, np.where(tells[event], event, announcing), len(events))
    span = nearest_to(node, parent, spans)
    return [
        *(pick(getattr(messages, field), place) for field in _FIELDS),
        pick(events.concrete.astype(np.int64), announcing),
        *(pick(column.astype(np.int64), span) for column in (events.name, events.shapes, events.dtypes)),
        events.name[event].astype(np.int64),
    ]


def _told(trace: Trace, row: list[int]) -> Told:
    """What is known of a call, from one row of `_columns`."""
    in_elements, out_elements, told_size = row[1], row[2], row[6]
    codes = [code for place, code in enumerate(row) if place not in (1, 2, 6)]
    texts = [trace.strings[code] if code >= 0 else "" for code in codes]
    collective, element_type, group, description, ranks, concrete, span, shapes, dtypes, name = texts
    kind = kind_of_collective(span.partition(":")[2]) or kind_of_collective(collective) or kind_of_collective(name)
    tensors = _tensors(shapes, dtypes)
    size = _group_size(told_size, concrete)
    found = _group(trace, Group(group, description, _ranks_text(ranks), size))
    dtype, width = _TYPES.get(element_type, ("", 0))
    elements = max(in_elements, out_elements)
    if not width and tensors:
        dtype = tensors[0].dtype
    if width and elements > 0:
        size_bytes = elements * width
    else:
        size_bytes = sum(one.size_bytes for one in tensors)
        if kind == "all_gather":  # what one rank puts in
            size_bytes *= found.size
    words = f"{span} {name}".lower()
    library = next((library for library in _LIBRARIES if library in words), "")
    return Told(kind, library, dtype, size_bytes if size_bytes <= _MOST_BYTES else 0, found)


def _tensors(shapes: str, dtypes: str) -> list[Tensor]:
    """The tensors that a span was opened with; none where it does not tell all of their sizes and types."""
    if not shapes or not dtypes:
        return []
    try:
        found = arguments(json.loads(shapes), json.loads(dtypes), [], 0)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return []
    tensors = [one for one in found if isinstance(one, Tensor)]
    return tensors if len(tensors) == len(found) else []


def _group_size(told: int, concrete: str) -> int:
    """The size of the group; torch 2.1 and 2.2 have it as the last of eight arguments alone."""
    if 0 < told < _MOST_RANKS:
        return told
    try:
        given = json.loads(concrete) if concrete else []
    except (ValueError, RecursionError):
        return 0
    if not isinstance(given, list) or len(given) != 8 or not isinstance(given[7], str) or not given[7].isdecimal():
        return 0
    return int(given[7]) if len(given[7]) < 9 and int(given[7]) < _MOST_RANKS else 0


def _ranks_text(text: str) -> str:
    """Ranks with runs drawn together, `0-3, 8`; "" where they are not all told (torch cuts long lists)."""
    try:
        value: Any = json.loads(text) if text else None
        value = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return ""
    return _runs(value) if isinstance(value, list) else ""


def _runs(ranks: list[Any]) -> str:
    if not ranks or not all(type(rank) is int and 0 <= rank < _MOST_RANKS for rank in ranks):
        return ""
    return ranges(ranks)


def _group(trace: Trace, told: Group) -> Group:
    """The group with what the head of the trace says of it; if there is but one, it is that one."""
    info = trace.metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    named_so = [one for one in groups if told.name and one.get("pg_name") == told.name]
    fits = named_so if told.name else groups
    if len(fits) != 1 or (not told.name and told.size not in (0, fits[0].get("pg_size"))):
        return told
    (group,) = fits
    name, description, size, ranks = (group.get(key) for key in ("pg_name", "pg_desc", "pg_size", "ranks"))
    return Group(
        told.name or (name if isinstance(name, str) else ""),
        told.description or (description if isinstance(description, str) else ""),
        told.ranks or (_runs(ranks) if isinstance(ranks, list) else ""),
        told.size or (size if isinstance(size, int) and 0 < size < _MOST_RANKS else 0),
    )
