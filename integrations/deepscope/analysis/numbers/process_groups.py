"""Process groups as calls and the head (`distributedInfo`) tell of them, and what is queued on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.array_ops.selection import distinct, named, of_kind
from deepscope.records.ranges import listed, ranges
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

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


def process_group(
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


_PREFIX = "c10d::"
_MESSAGES = frozenset({"send", "recv"})


def queued_by(trace: Trace, spans: Int64, kind_of: Callable[[str], str]) -> Int64:
    """The operator that each span (an event, of all that the trace has) is the work of; -1 where it cannot be told.

    A message's span is opened within its operator. Collectives are queued and taken out in order: the operators of a
    kind are those of the spans of that kind if there are as many, and none begins after its span.

    Args:
        trace: of the spans.
        spans: of backends that work on the CPU, by their starts; shape (c,).
        kind_of: torch's word for a collective, by a name.
    """
    events = trace.events
    found = np.full(len(spans), -1, np.int64)
    operators = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), lambda name: name.startswith(_PREFIX)))
    if not len(spans) or not len(operators):
        return found
    operators = operators[np.argsort(events.start_ns[operators], kind="stable")]
    words: dict[str, int] = {"": -1}
    number = np.full(len(trace.strings), -1, np.int64)
    both = np.concatenate((events.name[spans], events.name[operators]))
    for code in distinct(both, len(trace.strings)):
        number[code] = words.setdefault(kind_of(trace.strings[code].rpartition(":")[2]), len(words))
    of_spans, of_operators = number[events.name[spans]], number[events.name[operators]]
    for word, kind in words.items():
        ours, theirs = np.flatnonzero(of_spans == kind), operators[of_operators == kind]
        if kind < 0 or not len(ours) or not len(theirs):
            continue
        if word in _MESSAGES:
            found[ours] = _around(trace, spans[ours], theirs)
        elif len(ours) == len(theirs) and (events.start_ns[theirs] <= events.start_ns[spans[ours]]).all():
            found[ours] = theirs
    return found


def _around(trace: Trace, spans: Int64, operators: Int64) -> Int64:
    """The last operator that began on the thread of each span, where it had not ended when the span began."""
    events = trace.events
    found = np.full(len(spans), -1, np.int64)
    for thread in np.unique(events.thread[spans]).tolist():
        ours = np.flatnonzero(events.thread[spans] == thread)
        theirs = operators[events.thread[operators] == thread]
        start = events.start_ns[spans[ours]]
        place = np.searchsorted(events.start_ns[theirs], start, side="right") - 1
        known = place >= 0
        last = theirs[place[known]]
        known[known] = events.end_ns[last] >= start[known]
        found[ours[known]] = theirs[place[known]]
    return found
