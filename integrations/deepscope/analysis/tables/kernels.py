"""Kernels and other device work by name."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.ranking import largest_named
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.records import Kernel, KernelKind
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64, Kind, Trace

__all__ = ["kernel_table"]


def kernel_table(trace: Trace, work: OwnedWork, operator: Int64, extent: Extent) -> list[Kernel]:
    """Device work by name, largest sum first; none where the CPU is the device.

    Args:
        trace: any trace.
        work: its work.
        operator: the event of the operator that launched each piece of work, -1 for none; shape (w,).
        extent: the part of the trace that counts.
    """
    if work.metric != "device":
        return []
    strings = trace.strings
    counted = np.flatnonzero(extent.launched(work.launch_ns))
    kind = np.where(work.collective, _COLLECTIVE, work.kind.astype(np.int64))[counted]
    name = trace.events.name[work.event[counted]].astype(np.int64)
    rows, group = distinct_places(name * 16 + kind)
    calls = np.bincount(group[work.counts[counted]], minlength=len(rows))
    duration = work.duration_ns[counted]
    total = np.zeros(len(rows), np.int64)
    np.add.at(total, group, duration)
    longest = np.zeros(len(rows), np.int64)
    np.maximum.at(longest, group, (work.end_ns - work.start_ns)[counted])
    launched_by = operator[counted]
    operator_name = np.where(launched_by < 0, -1, trace.events.name[launched_by])
    main = {share.group: share.member for share in largest_named(group, operator_name, duration, 1, strings)}
    return [
        Kernel(
            name=strings[int(rows[i]) // 16],
            kind=_KIND_NAMES[int(rows[i]) % 16],
            calls=int(calls[i]),
            device_ns=int(total[i]),
            mean_ns=int(total[i]) // int(calls[i]),
            max_ns=int(longest[i]),
            operator=strings[main[i]] if main.get(i, -1) >= 0 else "",
        )
        for i in np.argsort(-total, kind="stable").tolist()
    ]


_COLLECTIVE = 15
_KIND_NAMES: dict[int, KernelKind] = {
    int(Kind.KERNEL): "kernel",
    int(Kind.MEMCPY): "memcpy",
    int(Kind.MEMSET): "memset",
    _COLLECTIVE: "collective",
}
