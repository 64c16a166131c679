"""What operators' arguments and spans' names tell of a collective's call where torch says it nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from deepscope.trace.arrays import pick
from deepscope.trace.model import Int32, Int64, Trace

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
    """torch's number of each call in its process group, -1 where it is not told.

    `message` are indexes into `Trace.messages`, `operator` the operators that announce the calls; shape (c,).
    """
    told = pick(trace.messages.call_number, message)
    passed = by_text(trace, trace.events.concrete, operator, _passed_number)
    return np.where(told >= 0, told, passed)


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
