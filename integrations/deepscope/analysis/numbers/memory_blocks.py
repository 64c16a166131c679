"""Blocks of memory: when each began and ended, and what held it, as the recorder's surveys tell by its address."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.trace.format.process_tables import ELSEWHERE, HELD_KINDS, MemoryAccount, Survey
from deepscope.trace.model import Int64, MemoryEvents

KINDS = (*HELD_KINDS, "temporaries", "unknown")
"""What a block is to the training; a block that is several is the first of them."""
TEMPORARIES, UNKNOWN = KINDS.index("temporaries"), KINDS.index("unknown")

NEVER = 1 << 62
"""The end of a block that was still there when the window ended."""

_ID_BITS, _ID_MASK = 32, (1 << 32) - 1
_PARTIAL = "inputs"
"""The occasion of surveys that look for inputs alone: what they do not find may be held all the same."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """One row a block; arrays of shape (b,). A place is a position among the events that the blocks were found in."""

    device: Int64
    """As `device_codes` has it."""
    size_bytes: Int64
    begin: Int64
    """Place of the allocation; -1 for a block that was there before the window."""
    end: Int64
    """The first place at which the block is gone; `NEVER` where it outlives the window."""
    kind: Int64
    """Index into `KINDS`."""
    is_silent: Mask
    """Blocks of which no event tells, but the survey at the window's beginning."""

    def live_at(self, place: int, device: int) -> Mask:
        """Which blocks of a device are live after the event at a place; shape (b,)."""
        return np.asarray((self.device == device) & (self.begin <= place) & (self.end > place))


def held_by_owner(blocks: Blocks, owner: Int64, owners: int, *, place: int, device: int, level: int) -> Int64:
    """What is live on a device after the event at a place, by owner and kind; shape (owners + 1, kinds).

    It sums to `level`, which is what was allocated, or to the live blocks should they be more. `owner` is each block's,
    -1 for none, which is the last row.
    """
    live = np.flatnonzero(blocks.live_at(place, device))
    result = np.zeros((owners + 1, len(KINDS)), np.int64)
    size = blocks.size_bytes[live]
    np.add.at(result, (owner[live], blocks.kind[live]), size)
    # The file's total counts unless the known blocks sum up to more.
    result[owners, UNKNOWN] += max(level - int(size.sum()), 0)
    return result


def device_codes(device_type: Int64, device_id: Int64) -> Int64:
    """One number a device, from torch's DeviceType and the device's index, which is -1 for the CPU."""
    return np.asarray((device_type << _ID_BITS) + (device_id + 1 & _ID_MASK))


def device_of(code: int) -> tuple[int, int]:
    """The DeviceType and the index that `device_codes` made a number of."""
    return code >> _ID_BITS, (code & _ID_MASK) - 1


def find_blocks(memory: MemoryEvents, rows: Int64, account: MemoryAccount | None) -> Blocks:
    """The blocks that some events (rows in order of time) tell of, and those that the first survey found there."""
    ts = memory.ts_ns[rows]
    recorded = _make_known_blocks(
        device_codes(memory.device_type[rows].astype(np.int64), memory.device_id[rows].astype(np.int64)),
        memory.address[rows],
        memory.size_bytes[rows],
    )
    surveys = account.surveys if account is not None else []
    marks = _marks(surveys, ts)
    silent = _silent(recorded, marks)
    if account is not None:
        _end_released(silent, account, ts)
    found = _KnownBlocks.joined(recorded, silent)
    return Blocks(
        device=found.device,
        size_bytes=found.size_bytes,
        begin=found.begin,
        end=found.end,
        kind=_kinds(found, marks, surveys, ts),
        is_silent=np.arange(len(found.begin)) >= len(recorded.begin),
    )


@dataclass(frozen=True, slots=True)
class _KnownBlocks:
    """Blocks whose kinds are not known yet; arrays of shape (b,)."""

    device: Int64
    address: Int64
    size_bytes: Int64
    begin: Int64
    end: Int64

    @classmethod
    def joined(cls, one: _KnownBlocks, other: _KnownBlocks) -> _KnownBlocks:
        """Both, one after the other."""
        return cls(*(np.concatenate((getattr(one, name), getattr(other, name))) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class _Marks:
    """Storages that surveys found; arrays of shape (m,)."""

    place: Int64
    """Of the last event before the survey, -1 for none."""
    kind: Int64
    device: Int64
    address: Int64
    size_bytes: Int64
    is_first: Mask
    """Found as the window began."""


def _make_known_blocks(device: Int64, address: Int64, size: Int64) -> _KnownBlocks:
    """A block is live from its allocation to the next thing that happens at its address.

    What is released before anything else happens at its address was there before the window.
    """
    is_single = bool((device[1:] == device[:-1]).all())
    order = np.lexsort((address,) if is_single else (address, device))  # stable: in order of time where they agree
    is_same = (device[order][1:] == device[order][:-1]) & (address[order][1:] == address[order][:-1])
    is_later = np.append(False, is_same)[: len(order)]
    follower = np.where(np.append(is_same, False)[: len(order)], np.append(order[1:], 0)[: len(order)], NEVER)
    was_there = (size[order] < 0) & ~is_later
    chosen = (size[order] > 0) | was_there
    event, was_there = order[chosen], was_there[chosen]
    return _KnownBlocks(
        device=device[event],
        address=address[event],
        size_bytes=np.abs(size[event]),
        begin=np.where(was_there, -1, event),
        end=np.where(was_there, event, follower[chosen]),
    )


def _marks(surveys: list[Survey], ts: Int64) -> _Marks:
    rows = [
        (number, one.kind, one.device_type, one.device_id, one.address, one.size_bytes)
        for number, survey in enumerate(surveys)
        for one in survey.held
    ]
    table = np.array(rows, np.int64).reshape(-1, 6).T
    place = _place_of(np.array([survey.at_ns for survey in surveys], np.int64), ts)
    is_first = np.array([survey.occasion == "begin" for survey in surveys], np.bool_)
    return _Marks(
        place=place[table[0]],
        kind=np.where(table[1] == ELSEWHERE, UNKNOWN, table[1]),
        device=device_codes(table[2], table[3]),
        address=table[4],
        size_bytes=table[5],
        is_first=is_first[table[0]],
    )


def _place_of(moment_ns: Int64, ts: Int64) -> Int64:
    """The place of the last event until each moment, -1 for none."""
    return np.asarray(np.searchsorted(ts, moment_ns, "right") - 1, np.int64)


def _silent(recorded: _KnownBlocks, marks: _Marks) -> _KnownBlocks:
    """What was there as the window began, and of which no event tells that it was; until its address is used anew."""
    first = np.flatnonzero(marks.is_first & (marks.size_bytes > 0))
    order = first[np.lexsort((marks.address[first], marks.device[first]))]
    device, address = marks.device[order], marks.address[order]
    is_same = (device[1:] == device[:-1]) & (address[1:] == address[:-1])
    chosen = order[~np.append(False, is_same)[: len(order)]]
    device, address = marks.device[chosen], marks.address[chosen]
    # Of the blocks at an address the earliest begins with -1 or ends the one that was there before.
    count = len(chosen)
    earliest = np.full(count, NEVER)
    known = np.zeros(count, np.bool_)
    block, mark = _same_place(recorded.device, recorded.address, device, address)
    np.minimum.at(earliest, mark, recorded.begin[block])
    known[mark[recorded.begin[block] < 0]] = True
    left = ~known
    return _KnownBlocks(
        device=device[left],
        address=address[left],
        size_bytes=marks.size_bytes[chosen][left],
        begin=np.full(int(left.sum()), -1, np.int64),
        end=earliest[left],
    )


def _same_place(device: Int64, address: Int64, at_device: Int64, at_address: Int64) -> tuple[Int64, Int64]:
    """Each block whose place is one of the distinct ones asked for, in order of device and address: block, question."""
    if not len(at_device):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = np.lexsort(
        (
            np.append(np.zeros(len(at_device), np.int8), np.ones(len(device), np.int8)),
            np.concatenate((at_address, address)),
            np.concatenate((at_device, device)),
        )
    )
    question = np.maximum.accumulate(np.where(rows < len(at_device), rows, -1))
    is_block = (rows >= len(at_device)) & (question >= 0)
    block, question = rows[is_block] - len(at_device), question[is_block]
    same = (device[block] == at_device[question]) & (address[block] == at_address[question])
    return block[same], question[same]


def _end_released(silent: _KnownBlocks, account: MemoryAccount, ts: Int64) -> None:
    """Ends the blocks whose release the recorder saw."""
    releases = sorted(account.releases, key=lambda one: one.at_ns)
    device = device_codes(
        np.array([one.device_type for one in releases], np.int64),
        np.array([one.device_id for one in releases], np.int64),
    )
    address = np.array([one.address for one in releases], np.int64)
    place = np.searchsorted(ts, np.array([one.at_ns for one in releases], np.int64), "left")
    release, block = _same_place(device, address, silent.device, silent.address)
    np.minimum.at(silent.end, block, place[release])


def _kinds(blocks: _KnownBlocks, marks: _Marks, surveys: list[Survey], ts: Int64) -> Int64:
    """What each block is: what a survey found in it, else a temporary if none saw it live."""
    looks = [survey.at_ns for survey in surveys if survey.occasion != _PARTIAL]
    look = np.sort(_place_of(np.array(looks, np.int64), ts))
    is_seen = np.searchsorted(look, blocks.end, "left") > np.searchsorted(look, blocks.begin, "left")
    is_temporary = (blocks.begin >= 0) & (blocks.end < NEVER) & ~is_seen & bool(looks)
    kind = np.where(is_temporary, TEMPORARIES, UNKNOWN)
    if not len(marks.place) or not len(kind):
        return kind
    count = len(kind)
    is_mark = np.append(np.zeros(count, np.int8), np.ones(len(marks.place), np.int8))
    rows = np.lexsort(
        (
            is_mark,
            np.append(blocks.begin, marks.place),
            np.append(blocks.address, marks.address),
            np.append(blocks.device, marks.device),
        )
    )
    before = np.maximum.accumulate(np.where(rows < count, np.arange(len(rows)), -1))
    found = (rows >= count) & (before >= 0)
    block, mark = rows[before[found]], rows[found] - count
    hit = (blocks.device[block] == marks.device[mark]) & (blocks.address[block] == marks.address[mark])
    hit &= marks.place[mark] < blocks.end[block]
    np.minimum.at(kind, block[hit], marks.kind[mark[hit]])
    return kind
