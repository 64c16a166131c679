"""What is attributed: the device's events or, in a trace that has none, the operators' own time on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.ownership.owners import Operators
from deepscope.trace.communication import is_collective
from deepscope.trace.joins.correlation import launches
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

DEVICE_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


@dataclass(frozen=True, slots=True)
class Work:
    """Pieces of work to attribute, one row each; every array has shape (w,)."""

    metric: Literal["device", "cpu_self"]
    event: Int64
    """Index of the event."""
    node: Int64
    """Index of the CPU event that launched it (with `cpu_self` the operator itself), -1 where that is not known."""
    start_ns: Int64
    end_ns: Int64
    duration_ns: Int64
    """The event's duration; with `cpu_self` the operator's own part of it."""
    launch_ns: Int64
    """When it was launched; its own start where that is unknown."""
    device: Int64
    kind: npt.NDArray[np.uint8]
    collective: Mask

    def __len__(self) -> int:
        return len(self.event)


def find_work(trace: Trace, operators: Operators) -> Work:
    """All work of a trace."""
    event = np.flatnonzero(of_kind(trace, *DEVICE_KINDS))
    return _device_work(trace, event) if len(event) else _cpu_work(trace, operators)


def _device_work(trace: Trace, event: Int64) -> Work:
    events = trace.events
    node = launches(trace)[event]
    start = events.start_ns[event]
    return Work(
        metric="device",
        event=event,
        node=node,
        start_ns=start,
        end_ns=start + events.duration_ns[event],
        duration_ns=events.duration_ns[event],
        launch_ns=np.where(node < 0, start, events.start_ns[node]),
        device=events.device[event].astype(np.int64),
        kind=events.kind[event],
        collective=named(trace, of_kind(trace, Kind.KERNEL), is_collective)[event],
    )


def _cpu_work(trace: Trace, operators: Operators) -> Work:
    events = trace.events
    event = operators.nodes
    start = events.start_ns[event]
    return Work(
        metric="cpu_self",
        event=event,
        node=event,
        start_ns=start,
        end_ns=start + events.duration_ns[event],
        duration_ns=operators.self_ns,
        launch_ns=start,
        device=np.zeros(len(event), np.int64),
        kind=events.kind[event],
        collective=named(trace, of_kind(trace, Kind.OPERATOR), is_collective)[event],
    )
