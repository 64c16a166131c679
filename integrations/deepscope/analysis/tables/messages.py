"""The message of a call of a collective: its kind, what it moves, and in which process group.

Its kernel or the operator around its launch says so where torch wrote it (`record_param_comms`, from torch 2.3 on).
Else the span of the backend does (`nccl:all_reduce`, with sizes and types if shapes were recorded), else the kernel's
name. Of process groups the head of the trace (`distributedInfo`) tells more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.numbers.arguments import Tensor, arguments
from deepscope.quantities import listed, ranges
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.communication import library_of
from deepscope.trace.model import Int32, Int64, Trace

MOST_RANKS = 2**20


class ProcessGroup(NamedTuple):
    """A process group, as far as the trace tells."""

    name: str = ""
    description: str = ""
    ranks: str = ""
    """`0-3, 8`."""
    size: int = 0


def rank_in_run(number: int, ranks: str) -> int:
    """A rank by its number in a group of these ranks (`0-3, 8`), which torch sorts; -1 where it is not known."""
    members = listed(ranks)
    return members[number] if 0 <= number < len(members) else -1


def _process_group(
    trace: Trace, name: str, description: str, ranks: str, *, size: int, first_rank: int, stride: int
) -> ProcessGroup:
    """The group of a call, with what the head of the trace says of it.

    Args:
        trace: of the call.
        name: this and what follows is what the call tells: "" or -1 for nothing.
        description: what its maker says that it is for.
        ranks: JSON.
        size: of the group.
        first_rank: the first of its ranks.
        stride: by how much each rank is larger than the one before, if that is the same for all.
    """
    size = size if 0 < size < MOST_RANKS else 0
    recorded = ProcessGroup(name, description, _ranks(ranks) or _cut_ranks(ranks, size, first_rank, stride), size)
    info = trace.metadata.get("distributedInfo")
    head = info if isinstance(info, dict) else {}
    found = _listed(head, recorded)
    world = head.get("world_size")
    if not found.ranks and found.size and found.size == world:
        return found._replace(ranks=ranges(range(found.size)))
    return found


def listed_groups(trace: Trace) -> list[dict[str, Any]]:
    """The groups of the trace's process, as the head has them."""
    return _groups(trace.metadata.get("distributedInfo"))


def _groups(head: object) -> list[dict[str, Any]]:
    config = head.get("pg_config") if isinstance(head, dict) else None
    return [one for one in config if isinstance(one, dict)] if isinstance(config, list) else []


def _ranks(text: str) -> str:
    """Ranks with runs drawn together, `0-3, 8`; "" where they are not all told (torch cuts long lists)."""
    try:
        value: Any = json.loads(text) if text else None
        value = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return ""
    return _runs(value) if isinstance(value, list) else ""


def _cut_ranks(text: str, size: int, first: int, stride: int) -> str:
    """Ranks of which torch wrote the first ones and the last, `[0, 2, ..., 62]`, if all are as far from each other."""
    head, dots, last = text.strip('"[]').partition(", ..., ")
    if not dots or not size or first < 0 or stride < 1 or first + stride * (size - 1) >= MOST_RANKS:
        return ""
    members = range(first, first + stride * size, stride)
    begin = head.split(", ")
    if len(begin) > size or begin != [str(rank) for rank in members[: len(begin)]] or last != str(members[-1]):
        return ""
    return ranges(members)


def _runs(ranks: list[Any]) -> str:
    if not ranks or not all(type(rank) is int and 0 <= rank < MOST_RANKS for rank in ranks):
        return ""
    return ranges(ranks)


def _listed(head: dict[str, Any], recorded: ProcessGroup) -> ProcessGroup:
    """The group with what the head says of it: of the one of its name; without a name, of the only one of its size."""
    groups = _groups(head)
    if recorded.name:
        fits = [one for one in groups if one.get("pg_name") == recorded.name]
    else:
        fits = [one for one in groups if recorded.size in (0, one.get("pg_size"))]
    if not fits or len({_ranks_of(one) for one in fits}) > 1:
        return recorded
    if len(fits) > 1:  # groups of the same ranks
        ranks = _ranks_of(fits[0])
        return recorded._replace(ranks=recorded.ranks or ranks, size=recorded.size or len(listed(ranks)))
    (group,) = fits
    name, description, size = (group.get(key) for key in ("pg_name", "pg_desc", "pg_size"))
    return ProcessGroup(
        recorded.name or (name if isinstance(name, str) else ""),
        recorded.description or (description if isinstance(description, str) else ""),
        recorded.ranks or _ranks_of(group),
        recorded.size or (size if isinstance(size, int) and 0 < size < MOST_RANKS else 0),
    )


def _ranks_of(group: dict[str, Any]) -> str:
    ranks = group.get("ranks")
    return _runs(ranks) if isinstance(ranks, list) else ""


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


class Message(NamedTuple):
    """What is known of a call."""

    kind: str = ""
    library: str = ""
    dtype: str = ""
    size_bytes: int = 0
    """0 where it is not known."""
    group: ProcessGroup = ProcessGroup()


_NUMBERS = ("in_elements", "out_elements", "first_rank", "rank_stride")
_TEXTS = ("collective", "element_type", "group", "group_description", "group_ranks")
_FIELDS = (*_NUMBERS, *_TEXTS)


def columns_of_calls(trace: Trace, event: Int64, message: Int64, operator: Int64, span: Int64) -> list[Int64]:
    """What tells of each call: its message, the span around its launch, its own name; -1 for what is not there."""
    events = trace.events
    size = pick(trace.messages.group_size, message)
    return [
        *(pick(getattr(trace.messages, field), message) for field in _FIELDS),
        np.where(size > 0, size, _by_text(trace, events.concrete, operator, _passed_group_size)),
        *(pick(column.astype(np.int64), span) for column in (events.name, events.shapes, events.dtypes)),
        events.name[event].astype(np.int64),
    ]


def message_of_call(trace: Trace, row: list[int]) -> Message:
    """What is known of a call, from one row of `columns_of_calls`."""
    numbers, codes = row[: len(_NUMBERS)], row[len(_NUMBERS) + len(_TEXTS) + 1 :]
    in_elements, out_elements, first_rank, stride = numbers
    size = row[len(_NUMBERS) + len(_TEXTS)]
    codes = row[len(_NUMBERS) : len(_NUMBERS) + len(_TEXTS)] + codes
    texts = [trace.strings[code] if code >= 0 else "" for code in codes]
    collective, element_type, group, description, ranks, span, shapes, dtypes, name = texts
    kind = kind_of_collective(span.partition(":")[2]) or kind_of_collective(collective) or kind_of_collective(name)
    tensors = _tensors(shapes, dtypes)
    found = _process_group(trace, group, description, ranks, size=size, first_rank=first_rank, stride=stride)
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
    return Message(kind, library, dtype, size_bytes if size_bytes <= _MOST_BYTES else 0, found)


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


def _by_text(trace: Trace, column: Int32, events: Int64, number_in: Callable[[str], int]) -> Int64:
    """A number in a text of each event (`column` has its index into the strings); -1 where one is -1, or has none.

    Each distinct text is looked at once.
    """
    texts, place = distinct_places(pick(column.astype(np.int64), events))
    numbers = [number_in(trace.strings[code]) if code >= 0 else -1 for code in texts.tolist()]
    return np.array(numbers, np.int64)[place]


def call_numbers(trace: Trace, message: Int64, operator: Int64) -> Int64:
    """torch's number of each call in its process group, -1 where the trace does not say.

    `message` are indexes into `Trace.messages`, `operator` the operators that announce the calls; shape (c,).
    """
    recorded = pick(trace.messages.call_number, message)
    passed = _by_text(trace, trace.events.concrete, operator, _passed_number)
    return np.where(recorded >= 0, recorded, passed)


def peers_in_group(trace: Trace, span: Int64, queued_by: Int64) -> Int64:
    """The other rank of each message by its number in the group: in the name of its span, else among the arguments of
    the operator that queued it; -1 where neither tells. Both are events, -1 for none; shape (c,)."""
    events = trace.events
    named = _by_text(trace, events.name, span, _named_peer)
    passed = _by_text(trace, events.concrete, queued_by, _passed_peer)
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


def _passed_group_size(concrete: str) -> int:
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
