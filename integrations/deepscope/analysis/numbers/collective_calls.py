"""Each call of a collective: its kind, what it moves, in which process group, and how long it takes.

Its kernel or the operator around its launch says so where torch wrote it (`record_param_comms`, from torch 2.3 on).
Else the span of the backend does (`nccl:all_reduce`, with sizes and types if shapes were recorded), else the kernel's
name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to, position_in
from deepscope.analysis.array_ops.intervals import Extent, union
from deepscope.analysis.array_ops.selection import Mask, mask_of, named, of_kind
from deepscope.analysis.numbers.arguments import Tensor, arguments
from deepscope.analysis.numbers.process_groups import MOST_RANKS, ProcessGroup, process_group, queued_by, rank_in_run
from deepscope.analysis.numbers.work import exposed_ns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.communication import is_collective, library_of
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int32, Int64, Trace
from deepscope.trace.names import ANNOUNCEMENT, is_communication_span

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
    ("dispatch", "all_to_all"),
    ("combine", "all_to_all"),
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
_MOST_BYTES = 2**40
"""A message that seems to be larger has no known size."""


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


class CollectiveFacts(NamedTuple):
    """What is known of a call."""

    kind: str = ""
    library: str = ""
    dtype: str = ""
    size_bytes: int = 0
    """0 where it is not known."""
    group: ProcessGroup = ProcessGroup()


@dataclass(frozen=True, slots=True)
class CollectiveCalls:
    """The calls of collectives on one rank, in the order of their launches; arrays of shape (c,)."""

    event: Int64
    """The kernel, or the span."""
    work: Int64
    """The piece of work; -1 for spans of the CPU."""
    facts: list[CollectiveFacts]
    of: Int64
    """Index into `facts`."""
    on_device: Mask
    """Kernels of a device; else spans of a thread of the CPU."""
    time_ns: Int64
    exposed_ns: Int64
    """The part that no computation overlaps."""
    launched_by: Int64
    """The CPU event that launched it: of a span the operator that queued it; -1 where it is not known."""
    number: Int64
    """torch's number of the call in its process group; -1 where the trace does not tell."""
    peer: Int64
    """Of a point-to-point message, the other rank in the whole run; -1 where it is not known, and for collectives."""

    def launch_ns(self, events: Events) -> Int64:
        """When each was launched; its start where that is not known. Shape (c,)."""
        return np.where(self.launched_by >= 0, events.start_ns[self.launched_by], events.start_ns[self.event])


def collective_calls(of: Attribution, extent: Extent) -> CollectiveCalls:
    """The calls within the extent: kernels, and spans of backends that work on the CPU."""
    trace, work = of.trace, of.work
    events = trace.events
    spans = named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), is_communication_span)
    is_device = work.metric == "device"
    rows = np.flatnonzero(work.collective & extent.holds(work.launch_ns)) if is_device else np.zeros(0, np.int64)
    on_cpu = named(trace, spans, works_on_cpu)
    host = np.flatnonzero(on_cpu & extent.holds(events.start_ns))
    event = np.concatenate((work.event[rows], host))
    at = np.concatenate((work.launch_ns[rows], events.start_ns[host]))
    order = np.argsort(at, kind="stable")
    node = np.concatenate((work.node[rows], host))
    message, operator = _announced(of, event, node)
    span = nearest_to(node, of.calls.parent, spans)
    columns = _columns(trace, event, message, operator, span)
    distinct_rows, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    facts, facts_of_call = [_facts_of_call(trace, row) for row in distinct_rows.tolist()], place.reshape(-1)
    exposed = exposed_ns(work)[rows] if len(rows) else np.zeros(0, np.int64)
    queued = _queued(trace, host, on_cpu)
    in_group = peers_in_group(trace, span, np.concatenate((np.full(len(rows), -1, np.int64), queued)))
    return CollectiveCalls(
        event=event[order],
        work=np.concatenate((rows, np.full(len(host), -1, np.int64)))[order],
        facts=facts,
        of=facts_of_call[order],
        on_device=(np.arange(len(event)) < len(rows))[order],
        time_ns=np.concatenate((work.duration_ns[rows], events.duration_ns[host]))[order],
        exposed_ns=np.concatenate((exposed, _exposed_on_cpu(of, host)))[order],
        launched_by=np.concatenate((work.node[rows], queued))[order],
        number=call_numbers(trace, message, operator)[order],
        peer=_peers(trace, facts, facts_of_call, message, in_group)[order],
    )


def works_on_cpu(name: str) -> bool:
    """Whether a span of this name runs on threads of the CPU: its backend is none of a device."""
    return not name.startswith(("nccl", "xccl", "hccl"))


def _queued(trace: Trace, host: Int64, on_cpu: Mask) -> Int64:
    """The operators that the chosen spans of the CPU are the work of; -1 where the trace does not say.

    `on_cpu` says of each event whether it is such a span, chosen or not.
    """
    if not len(host):
        return host
    spans = np.flatnonzero(on_cpu)
    spans = spans[np.argsort(trace.events.start_ns[spans], kind="stable")]
    return pick(queued_by(trace, spans, kind_of_collective), position_in(spans, host, len(trace.events)))


def _peers(trace: Trace, facts: list[CollectiveFacts], facts_of_call: Int64, message: Int64, in_group: Int64) -> Int64:
    """The other rank of each message, by its number in the group if nothing tells more; -1 for none."""
    sends, receives = (
        np.array([one.kind == kind for one in facts], np.bool_)[facts_of_call] for kind in ("send", "recv")
    )
    if not (sends | receives).any():
        return np.full(len(facts_of_call), -1, np.int64)
    pairs, place = np.unique(np.stack((facts_of_call, in_group), axis=1), axis=0, return_inverse=True)
    in_run = np.array([rank_in_run(peer, facts[one].group.ranks) for one, peer in pairs.tolist()], np.int64)
    named_so = np.where(sends, pick(trace.messages.target, message), pick(trace.messages.source, message))
    named_so[named_so >= MOST_RANKS] = -1
    return np.where(sends | receives, np.where(named_so >= 0, named_so, in_run[place.reshape(-1)]), -1)


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


_NUMBERS = ("in_elements", "out_elements", "first_rank", "rank_stride")
_TEXTS = ("collective", "element_type", "group", "group_description", "group_ranks")
_FIELDS = (*_NUMBERS, *_TEXTS)


def _announced(of: Attribution, event: Int64, node: Int64) -> tuple[Int64, Int64]:
    """What tells of each call, -1 for none: an index into the trace's messages, and the operator around its launch."""
    events, messages = of.trace.events, of.trace.messages
    tells = mask_of(messages.event, len(events))
    announced = named(of.trace, of_kind(of.trace, Kind.OPERATOR), ANNOUNCEMENT.__eq__)
    operator = nearest_to(node, of.calls.parent, announced)
    return position_in(messages.event, np.where(tells[event], event, operator), len(events)), operator


def _columns(trace: Trace, event: Int64, message: Int64, operator: Int64, span: Int64) -> list[Int64]:
    """What tells of each call: its message, the span around its launch, its own name; -1 for what is not there."""
    events = trace.events
    size = pick(trace.messages.group_size, message)
    return [
        *(pick(getattr(trace.messages, field), message) for field in _FIELDS),
        np.where(size > 0, size, by_text(trace, events.concrete, operator, passed_group_size)),
        *(pick(column.astype(np.int64), span) for column in (events.name, events.shapes, events.dtypes)),
        events.name[event].astype(np.int64),
    ]


def _facts_of_call(trace: Trace, row: list[int]) -> CollectiveFacts:
    """What is known of a call, from one row of `_columns`."""
    numbers, codes = row[: len(_NUMBERS)], row[len(_NUMBERS) + len(_TEXTS) + 1 :]
    in_elements, out_elements, first_rank, stride = numbers
    size = row[len(_NUMBERS) + len(_TEXTS)]
    codes = row[len(_NUMBERS) : len(_NUMBERS) + len(_TEXTS)] + codes
    texts = [trace.strings[code] if code >= 0 else "" for code in codes]
    collective, element_type, group, description, ranks, span, shapes, dtypes, name = texts
    kind = kind_of_collective(span.partition(":")[2]) or kind_of_collective(collective) or kind_of_collective(name)
    tensors = _tensors(shapes, dtypes)
    found = process_group(trace, group, description, ranks, size=size, first_rank=first_rank, stride=stride)
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
    library = library_of(span) or library_of(name) or ""
    return CollectiveFacts(kind, library, dtype, size_bytes if size_bytes <= _MOST_BYTES else 0, found)


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


_SPAN = re.compile(r"\w+:(?:send \d+->(\d+)|recv \d+<-(\d+))")
_MOST_DIGITS = 8
"""Of a number of a group's rank, and of its size."""


def by_text(trace: Trace, column: Int32, events: Int64, number_in: Callable[[str], int]) -> Int64:
    """A number in a text of each event (`column` has its index into the strings); -1 where one is -1, or has none.

    Each distinct text is looked at once.
    """
    distinct, place = np.unique(pick(column.astype(np.int64), events), return_inverse=True)
    numbers = [number_in(trace.strings[code]) if code >= 0 else -1 for code in distinct.tolist()]
    return np.array(numbers, np.int64)[place.reshape(-1)]


def call_numbers(trace: Trace, message: Int64, operator: Int64) -> Int64:
    """torch's number of each call in its process group, -1 where the trace does not say.

    `message` are indexes into `Trace.messages`, `operator` the operators that announce the calls; shape (c,).
    """
    recorded = pick(trace.messages.call_number, message)
    passed = by_text(trace, trace.events.concrete, operator, _passed_number)
    return np.where(recorded >= 0, recorded, passed)


def peers_in_group(trace: Trace, span: Int64, queued_by: Int64) -> Int64:
    """The other rank of each message by its number in the group: in the name of its span, else among the arguments of
    the operator that queued it; -1 where neither tells. Both are events, -1 for none; shape (c,)."""
    events = trace.events
    named = by_text(trace, events.name, span, _named_peer)
    passed = by_text(trace, events.concrete, queued_by, _passed_peer)
    return np.where(named >= 0, named, passed)


def _named_peer(span: str) -> int:
    """NCCL's spans: `nccl:send 0->1`, `nccl:recv 0<-1`, the rank itself first."""
    match = _SPAN.fullmatch(span)
    return _number((match[1] or match[2]) if match else "")


def _passed_peer(concrete: str) -> int:
    """`c10d::send` and `c10d::recv_` have tensors, the group, the rank, a tag."""
    given = _arguments(concrete)
    return _number(given[2]) if len(given) == 4 else -1


def _passed_number(concrete: str) -> int:
    """torch 2.1 and 2.2 give `record_param_comms` eight arguments: the second is the number, …"""
    given = _arguments(concrete)
    return _number(given[1]) if len(given) == 8 else -1


def passed_group_size(concrete: str) -> int:
    """… the last the size of the group."""
    given = _arguments(concrete)
    return _number(given[7]) if len(given) == 8 else -1


def _arguments(concrete: str) -> list[Any]:
    try:
        given = json.loads(concrete)
    except (ValueError, RecursionError):
        return []
    return given if isinstance(given, list) else []


def _number(text: object) -> int:
    if not isinstance(text, str) or len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
        return -1
    return int(text)
