"""Ranks made by hand for tests of what is matched over them: each call is written as on one true clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepscope.quantities import listed
from deepscope.ranks.rank_summary import CallColumns, RankSummary
from deepscope.records import Collective, CriticalPath, Totals

__all__ = ["Call", "rank"]

EPOCH = 1_700_000_000_000_000_000


class Call(NamedTuple):
    """A call of one rank; times from any zero."""

    start: int
    end: int
    kind: str = "all_reduce"
    ranks: str = "0-1"
    size: int = 1024
    step: int = -1
    sequence: int = -1
    peer: int = -1
    group: str = "0"
    description: str = ""
    dtype: str = "float32"
    on_device: bool = True


def rank(number: int, calls: Sequence[Call], *, world: int = 2, host: str = "", groups: int = 1) -> RankSummary:
    """What is kept of a rank with these calls; `groups` are those that the head of its trace lists."""
    rows: dict[tuple[object, ...], list[Call]] = {}
    for one in calls:
        rows.setdefault(_row(one), []).append(one)
    places = {key: place for place, key in enumerate(rows)}
    table = {
        "start_ns": [EPOCH + one.start for one in calls],
        "end_ns": [EPOCH + one.end for one in calls],
        "step": [one.step for one in calls],
        "collective": [places[_row(one)] for one in calls],
        "sequence": [one.sequence for one in calls],
        "peer": [one.peer for one in calls],
        "line": [-1] * len(calls),
        "size_bytes": [one.size for one in calls],
    }
    return RankSummary(
        rank=number,
        path=f"rank{number}.json",
        hostname=host,
        device="",
        metric="device",
        world_size=world,
        process_groups=groups,
        project_root="",
        totals=Totals(device_ns=0, busy_ns=0, idle_ns=0, wall_ns=0, wait_ns=0, steps=0, launches=0, operators=0),
        step_ns={},
        overview=[],
        phases=[],
        collectives=[_record(own) for own in rows.values()],
        calls=CallColumns(**{name: np.array(column, np.int64).tobytes() for name, column in table.items()}),
        critical=CriticalPath(),
        lines=[],
        line_of={},
        operators=[],
        kernels=[],
        device_peaks={},
    )


def _class(size: int) -> int:
    return 1 << (size.bit_length() - 1) if size else 0


def _row(one: Call) -> tuple[object, ...]:
    return one.kind, one.group, one.description, one.ranks, one.dtype, _class(one.size), one.on_device


def _record(calls: Sequence[Call]) -> Collective:
    one, times = calls[0], [call.end - call.start for call in calls]
    return Collective(
        kind=one.kind,
        library="nccl" if one.on_device else "gloo",
        group=one.group,
        group_description=one.description,
        group_ranks=one.ranks,
        group_size=len(listed(one.ranks)),
        dtype=one.dtype,
        size_class_bytes=_class(one.size),
        on_device=one.on_device,
        calls=len(calls),
        time_ns=sum(times),
        bytes=sum(call.size for call in calls),
        bytes_known_ns=sum(times),
        bus_bytes=0,
        bus_known_ns=0,
        exposed_ns=sum(times),
        min_ns=min(times),
        max_ns=max(times),
    )
