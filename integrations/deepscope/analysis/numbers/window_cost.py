"""What recording lines cost a whole window: the recorder's account, and that Python itself ran slower meanwhile.

Below Python 3.12 the interpreter is slower as long as lines are recorded, in all code. No hook sees that; it is worked
out from how much slower instructions were (measured by the recorder) and how long Python ran outside of operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepscope.analysis.ownership.locations import Location
from deepscope.trace.model import Int64, Trace

__all__ = ["recording_ns"]

_PER_EVENT_NS = 3_000
"""Python behind one event of the hooks, a line or a library's function; more is code in C, which is no slower."""
_MOST = 2**62
_GREATEST_SLOWDOWN = 100.0


def recording_ns(trace: Trace, locations: list[Location], python_cpu_ns: Int64, taken_off_ns: int) -> int:
    """All of it, in nanoseconds; 0 where the trace states nothing.

    `python_cpu_ns`: by line, shape (lines + 1,); `taken_off_ns` is what of the recording it is rid of.
    """
    lines = (trace.deepscope or {}).get("lines")
    if not isinstance(lines, dict):
        return 0
    stated_ns = _count(lines, "total_ns")
    slowdown = lines.get("slowdown")
    if not stated_ns or not isinstance(slowdown, int | float) or not 1 < slowdown <= _GREATEST_SLOWDOWN:
        return stated_ns
    on_core = lines.get("on_core")
    share = on_core if isinstance(on_core, float) and 0 < on_core < 1 else 1.0
    # In a trace, time for which another process had the core looks like time on it.
    whole_ns = max((int(python_cpu_ns.sum()) + taken_off_ns) * share - stated_ns, 0)
    exact = np.array([one.exact for one in locations] + [True])
    lowered_ns = min(int(python_cpu_ns[~exact].sum()) * share, whole_ns)
    slowed_ns = lowered_ns + min(whole_ns - lowered_ns, _events(lines) * _PER_EVENT_NS)
    return min(stated_ns + round(slowed_ns * (1 - 1 / slowdown)), _MOST)


def _events(lines: Mapping[str, Any]) -> int:
    rows = lines.get("over_budget")
    quiet = sum(row[1] for row in rows if _is_pair(row)) if isinstance(rows, list) else 0
    return min(_count(lines, "entries") + _count(lines, "calls") + _count(lines, "left_alone") + quiet, _MOST)


def _is_pair(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and type(row[1]) is int and 0 <= row[1] < _MOST


def _count(lines: Mapping[str, Any], name: str) -> int:
    value = lines.get(name)
    return value if type(value) is int and 0 <= value < _MOST else 0
