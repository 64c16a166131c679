"""The calls of all ranks as columns: where each stands, and in which stream of calls it is to be matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.quantities import listed, ranges
from deepscope.ranks.rank_summary import CallColumns
from deepscope.records import Collective
from deepscope.trace.model import Int64

UNTOLD = "send_recv"
MESSAGES = frozenset({"send", "recv", UNTOLD})
"""Kinds that go from one rank to another: no group takes part in them."""


class RowKey(NamedTuple):
    """What calls of one row of the table have in common."""

    kind: str
    library: str
    group: str
    description: str
    ranks: str
    """`0-3, 8`."""
    group_size: int
    dtype: str
    size_class_bytes: int
    on_device: bool


class CallStream(NamedTuple):
    """Calls that follow each other on every rank of a group: those of one process group, on devices or on the CPU."""

    group: str
    ranks: str
    size: int
    on_device: bool
    is_assumed: bool = False
    """Whether the traces tell no group, and that of all ranks is tried."""


class CallsOfRank(Protocol):
    """What matching needs to know of a rank; `RankSummary` has it."""

    @property
    def rank(self) -> int: ...

    @property
    def hostname(self) -> str: ...

    @property
    def world_size(self) -> int: ...

    @property
    def process_groups(self) -> int: ...

    @property
    def collectives(self) -> Sequence[Collective]: ...

    @property
    def calls(self) -> CallColumns: ...


@dataclass(frozen=True, slots=True)
class Calls:
    """One row a call, rank by rank in the order of their launches; every array has shape (c,)."""

    rank: Int64
    start_ns: Int64
    end_ns: Int64
    """Both since the epoch, each rank by its own clock."""
    step: Int64
    sequence: Int64
    peer: Int64
    line: Int64
    """Index in the profile's lines of its rank."""
    size_bytes: Int64
    row: Int64
    """Index into `rows`."""
    stream: Int64
    """Index into `streams`; -1 for messages, and where the group is not known."""
    is_untold: Mask
    """Kernels that NCCL runs for all-to-all and for messages alike, where nothing tells which of the two it is."""
    token: Int64
    """A number that calls have in common which agree in what is the same on all ranks of a call."""
    rows: list[RowKey]
    streams: list[CallStream]
    by_rank: dict[int, slice]
    """Where the calls of each rank stand."""
    hosts: dict[int, str] = field(default_factory=dict)

    @property
    def time_ns(self) -> Int64:
        """Durations; shape (c,)."""
        return self.end_ns - self.start_ns


_COLUMNS = ("start_ns", "end_ns", "step", "collective", "sequence", "peer", "line", "size_bytes")


def gather(summaries: Sequence[CallsOfRank]) -> Calls:
    """The calls of some ranks, each of which tells its number; of two with one number the first one's."""
    columns: dict[str, list[Int64]] = {name: [] for name in _COLUMNS}
    rows: dict[RowKey, int] = {}
    by_rank: dict[int, slice] = {}
    ranks, row, at = [], [], 0
    for one in sorted({one.rank: one for one in reversed(summaries)}.values(), key=lambda one: one.rank):
        own = {name: np.asarray(one.calls.column(name)) for name in _COLUMNS}
        count = len(own["start_ns"])
        for name in _COLUMNS:
            columns[name].append(own[name])
        places = np.array([rows.setdefault(key_of(key), len(rows)) for key in one.collectives], np.int64)
        row.append(places[own["collective"]])
        ranks.append(np.full(count, one.rank, np.int64))
        by_rank[one.rank] = slice(at, at + count)
        at += count
    whole = {name: np.concatenate(parts) if parts else np.zeros(0, np.int64) for name, parts in columns.items()}
    of_row = np.concatenate(row) if row else np.zeros(0, np.int64)
    keys = list(rows)
    streams: dict[CallStream, int] = {}
    everyone = _all_ranks(summaries)
    of_key = np.array([_stream(key, everyone, streams) for key in keys], np.int64)
    return Calls(
        rank=np.concatenate(ranks) if ranks else np.zeros(0, np.int64),
        start_ns=whole["start_ns"],
        end_ns=whole["end_ns"],
        step=whole["step"],
        sequence=whole["sequence"],
        peer=whole["peer"],
        line=whole["line"],
        size_bytes=whole["size_bytes"],
        row=of_row,
        stream=of_key[of_row],
        is_untold=np.array([key.kind == UNTOLD for key in keys], np.bool_)[of_row],
        token=_tokens(keys, of_row, whole["size_bytes"]),
        rows=keys,
        streams=list(streams),
        by_rank=by_rank,
        hosts={one.rank: one.hostname for one in summaries},
    )


def key_of(row: Collective) -> RowKey:
    """Of a record of one rank."""
    return RowKey(
        row.kind,
        row.library,
        row.group,
        row.group_description,
        row.group_ranks,
        row.group_size,
        row.dtype,
        row.size_class_bytes,
        row.on_device,
    )


def _all_ranks(summaries: Sequence[CallsOfRank]) -> str:
    """All ranks of the run, several, if each was read and no trace tells of process groups; else "".

    A trace that does not tell the size of its run seems to be of a single rank, and who shared its calls is not known.
    """
    there = sorted({one.rank for one in summaries})
    is_whole = there == list(range(len(there))) and all(one.world_size == len(there) for one in summaries)
    is_one_group = is_whole and not any(one.process_groups for one in summaries)
    return ranges(there) if is_one_group and len(there) > 1 else ""


def _stream(key: RowKey, everyone: str, streams: dict[CallStream, int]) -> int:
    if key.kind in MESSAGES and key.kind != UNTOLD:
        return -1
    if members := len(listed(key.ranks)):
        stream = CallStream(key.group, key.ranks, members, key.on_device)
    elif key.group_size == 1:
        return -1
    elif everyone and not key.group and not key.group_size:
        stream = CallStream("", everyone, len(listed(everyone)), key.on_device, is_assumed=True)
    else:
        return -1
    return streams.setdefault(stream, len(streams))


_SIZED = frozenset({"all_reduce", "broadcast", "reduce", "reduce_scatter"})
"""Kinds whose messages are as large on every rank."""


def _tokens(keys: Sequence[RowKey], row: Int64, size_bytes: Int64) -> Int64:
    """What a call's ranks agree in: its kind, and the type and size of those kinds in which they are the same."""
    kinds: dict[object, int] = {}
    numbers = []
    for key in keys:
        alike = "all_to_all" if key.kind == UNTOLD else key.kind, key.dtype if key.kind in _SIZED else ""
        numbers.append(kinds.setdefault(alike, len(kinds)))
    number = np.array(numbers, np.int64)
    sized = np.array([key.kind in _SIZED for key in keys], np.bool_)
    return distinct_pairs(number[row], np.where(sized[row], size_bytes, 0))[2]


def distinct_pairs(first: Int64, second: Int64) -> tuple[Int64, Int64, Int64]:
    """The distinct pairs in order, as two columns, and of each given pair its place among them; all of shape (n,)."""
    firsts, of_first = np.unique(first, return_inverse=True)
    seconds, of_second = np.unique(second, return_inverse=True)
    width = max(len(seconds), 1)
    keys, place = np.unique(of_first.reshape(-1) * width + of_second.reshape(-1), return_inverse=True)
    return firsts[keys // width], seconds[keys % width], place.reshape(-1)
