"""Kernels and other device work by name: time, how they are launched, and how they fill the device."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import (
    Columns,
    commonest,
    largest,
    largest_named,
    mask_of,
    of_kind,
    rows,
    sums,
)
from deepscope.analysis.numbers.flops import kernels_with_tensor_cores
from deepscope.analysis.tables.why import WorkCauses
from deepscope.records import Kernel, KernelKind
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import one_spelling

_MOST = 2**60
_MOST_IN_ONE = 2**40
"""Of blocks in a grid and threads in a block: any device's limits are lower."""


def kernel_table(analysis: Analysis, causes: WorkCauses) -> list[Kernel]:
    """Device work by name, largest sum first; none where the CPU is the device."""
    work, trace = analysis.attribution.work, analysis.attribution.trace
    if work.metric != "device":
        return []
    strings = trace.strings
    counted = np.flatnonzero(analysis.counted)
    kind = np.where(work.collective, _COLLECTIVE, work.kind.astype(np.int64))[counted]
    name = trace.events.name[work.event[counted]].astype(np.int64)
    keys, group = distinct_places(name * 16 + kind)
    whole = work.counts[counted]
    columns = _columns(analysis, causes, counted, group, len(keys))
    texts = [*strings, ""]  # the last place is for none
    pieces = np.where(whole, group, -1)
    event = work.event[counted]
    grid, block = (commonest(pieces, column[event], len(keys)) for column in (trace.events.grid, trace.events.block))
    duration = work.duration_ns[counted]
    launched_by = analysis.operator[counted]
    operator_name = pick(trace.events.name.astype(np.int64), launched_by)
    main = {share.group: share.member for share in largest_named(group, operator_name, duration, 1, strings)}
    lines = {share.group: share.member for share in largest(group, work.location[counted], duration, 1)}
    locations = analysis.attribution.scopes.locations
    with_cores = kernels_with_tensor_cores(trace, of_kind(trace, Kind.KERNEL))[event]
    uses_cores = mask_of(group[with_cores], len(keys))
    order = np.argsort(-columns["device_ns"], kind="stable")
    return [
        Kernel(
            name=strings[int(keys[i]) // 16],
            kind=_KIND_NAMES[int(keys[i]) % 16],
            operator=strings[main[i]] if main.get(i, -1) >= 0 else "",
            file=locations[lines[i]].file if i in lines else "",
            line=locations[lines[i]].line if i in lines else 0,
            uses_tensor_cores=bool(uses_cores[i]),
            grid=one_spelling(texts[grid[i]]),
            block=one_spelling(texts[block[i]]),
            **row,
        )
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]


def _columns(analysis: Analysis, causes: WorkCauses, counted: Int64, group: Int64, groups: int) -> Columns:
    """The numbers of each kind of work; `counted` are rows of the work, `group` the kind of each."""
    work, events = analysis.attribution.work, analysis.attribution.trace.events
    event, whole = work.event[counted], work.counts[counted]
    pieces, of_piece = event[whole], group[whole]
    length = (work.end_ns - work.start_ns)[counted]
    calls = np.bincount(of_piece, minlength=groups)
    device_ns = sums(group, groups, work.duration_ns[counted])
    queue = {name: causes.columns[name][counted] for name in ("kernels", "delay_ns", "queued")}
    occupancy = np.clip(events.occupancy[event].astype(np.int64), -1, 100)
    per_sm = np.clip(events.blocks_per_sm[event].astype(np.float64), -1, _MOST_IN_ONE)
    blocks, threads = (_products(analysis.attribution.trace, column[pieces]) for column in (events.grid, events.block))
    registers, shared = (np.maximum(column[pieces], -1) for column in (events.registers, events.shared_memory))
    duration = work.duration_ns[counted]
    return {
        "calls": calls,
        "device_ns": device_ns,
        "mean_ns": device_ns // np.maximum(calls, 1),
        "max_ns": _most(group, groups, length),
        "min_ns": _least(group, groups, length),
        "min_blocks": _least(of_piece, groups, blocks),
        "max_blocks": _most(of_piece, groups, blocks),
        "min_threads": _least(of_piece, groups, threads),
        "max_threads": _most(of_piece, groups, threads),
        "min_registers": _least(of_piece, groups, registers.astype(np.int64)),
        "max_registers": _most(of_piece, groups, registers.astype(np.int64)),
        "min_shared_memory_bytes": _least(of_piece, groups, shared),
        "max_shared_memory_bytes": _most(of_piece, groups, shared),
        "occupied_ns": sums(group, groups, np.where(occupancy >= 0, duration * occupancy // 100, 0)),
        "occupancy_known_ns": sums(group, groups, np.where(occupancy >= 0, duration, 0)),
        "sm_blocks_ns": _weighed(group, groups, np.maximum(per_sm, 0), duration),
        "sm_blocks_known_ns": sums(group, groups, np.where(per_sm >= 0, duration, 0)),
        "launched": sums(group, groups, queue["kernels"]),
        "delay_ns": sums(group, groups, queue["delay_ns"]),
        "max_delay_ns": _most(group, groups, queue["delay_ns"]),
        "queued": sums(group, groups, queue["queued"]),
    }


def _weighed(group: Int64, groups: int, values: npt.NDArray[np.float64], weight: Int64) -> Int64:
    return np.rint(np.minimum(np.bincount(group, values * weight, groups), _MOST)).astype(np.int64)


def _most(group: Int64, groups: int, values: Int64) -> Int64:
    """The largest value of each group; 0 where all are -1."""
    result = np.zeros(groups, np.int64)
    np.maximum.at(result, group, values)
    return result


def _least(group: Int64, groups: int, values: Int64) -> Int64:
    """The smallest value of each group, -1 left out; 0 where there is no other."""
    known = values >= 0
    result = np.full(groups, _MOST, np.int64)
    np.minimum.at(result, group[known], values[known])
    return np.where(result == _MOST, 0, result)


def _products(trace: Trace, texts: npt.NDArray[np.int32]) -> Int64:
    """Blocks of grids, or threads of blocks, from their texts (indexes into the strings); -1 where there is none."""
    known, place = distinct_places(texts)
    found = np.array([_product(trace.strings[text]) if text >= 0 else -1 for text in known.tolist()], np.int64)
    return pick(found, place)


def _product(text: str) -> int:
    try:
        sizes: Any = json.loads(text)
        product = 1
        for size in sizes:
            product *= int(size)
    except (TypeError, ValueError, RecursionError):
        return -1
    return product if 0 < product <= _MOST_IN_ONE else -1


_COLLECTIVE = 15
_KIND_NAMES: dict[int, KernelKind] = {
    int(Kind.KERNEL): "kernel",
    int(Kind.MEMCPY): "memcpy",
    int(Kind.MEMSET): "memset",
    _COLLECTIVE: "collective",
}
