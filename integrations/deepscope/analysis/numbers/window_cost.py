"""What recording lines cost a whole window: the recorder's account, and that Python itself ran slower meanwhile.

Below Python 3.12 the interpreter is slower as long as lines are recorded, in all code. No hook sees that; it is worked
out from how much slower instructions were (measured by the recorder) and how long Python ran outside of operators.
"""

from __future__ import annotations

import numpy as np

from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.format.header import LineAccount
from deepscope.trace.model import Int64

__all__ = ["recording_ns"]

_PER_EVENT_NS = 3_000
"""Python behind one event of the hooks, a line or a library's function; more is code in C, which is no slower."""
_MOST = 2**62
_GREATEST_SLOWDOWN = 100.0


def recording_ns(attribution: Attribution, python_cpu_ns: Int64, taken_off_ns: int) -> int:
    """All of it, in nanoseconds; 0 where the trace states nothing.

    `python_cpu_ns`: by line, shape (lines + 1,); `taken_off_ns` is what of the recording it is rid of.
    """
    lines = attribution.trace.header.lines
    if not lines.total_ns or not 1 < lines.slowdown <= _GREATEST_SLOWDOWN:
        return lines.total_ns
    share = lines.on_core if 0 < lines.on_core < 1 else 1.0
    # In a trace, time for which another process had the core looks like time on it.
    whole_ns = max((int(python_cpu_ns.sum()) + taken_off_ns) * share - lines.total_ns, 0)
    exact = np.array([one.exact for one in attribution.scopes.locations] + [True])
    lowered_ns = min(int(python_cpu_ns[~exact].sum()) * share, whole_ns)
    slowed_ns = lowered_ns + min(whole_ns - lowered_ns, _events(lines) * _PER_EVENT_NS)
    return min(lines.total_ns + round(slowed_ns * (1 - 1 / lines.slowdown)), _MOST)


def _events(lines: LineAccount) -> int:
    unrecorded = sum(entries for _, entries in lines.over_budget)
    return min(lines.entries + lines.calls + lines.left_alone + unrecorded, _MOST)
