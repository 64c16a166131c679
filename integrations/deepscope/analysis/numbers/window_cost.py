"""What recording lines cost a whole window: the recorder's own time, and the slower interpreter.

Below Python 3.12 all Python code runs slower while lines are recorded, which no hook sees. The recorder measures how
much slower instructions are; the cost follows from that and from how long Python ran outside operators.
"""

from __future__ import annotations

import numpy as np

from deepscope.analysis.ownership.locations import Location
from deepscope.trace.format.header import LineAccount
from deepscope.trace.model import Int64, Trace

_PER_EVENT_NS = 3_000
"""At most so much Python lies behind one event of the hooks. More is code in C, which runs no slower."""
_MOST = 2**62
_GREATEST_SLOWDOWN = 100.0


def recording_ns(trace: Trace, locations: list[Location], python_cpu_ns: Int64, taken_off_ns: int) -> int:
    """The whole cost in nanoseconds; 0 where the trace states nothing.

    `python_cpu_ns` has shape (lines + 1,); `taken_off_ns` is the part of the cost that it no longer holds.
    """
    lines = trace.header.lines
    if not lines.total_ns or not 1 < lines.slowdown <= _GREATEST_SLOWDOWN:
        return lines.total_ns
    share = lines.on_core if 0 < lines.on_core < 1 else 1.0
    # In a trace, time on the core cannot be told from time when another process had it.
    whole_ns = max((int(python_cpu_ns.sum()) + taken_off_ns) * share - lines.total_ns, 0)
    exact = np.array([one.exact for one in locations] + [True])
    lowered_ns = min(int(python_cpu_ns[~exact].sum()) * share, whole_ns)
    slowed_ns = lowered_ns + min(whole_ns - lowered_ns, _events(lines) * _PER_EVENT_NS)
    return min(lines.total_ns + round(slowed_ns * (1 - 1 / lines.slowdown)), _MOST)


def _events(lines: LineAccount) -> int:
    unrecorded = sum(entries for _, entries in lines.over_budget)
    return min(lines.entries + lines.calls + lines.left_alone + unrecorded, _MOST)
