"""Ascend's `trace_view.json` made like the others: calls on the threads that made them.

msprof (https://gitee.com/ascend/msprof-analyze) puts the calls into CANN under a process of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.model import Int32

__all__ = ["CANN", "home_threads"]

CANN = "CANN"


def home_threads(threads: list[tuple[Any, Any]], process_names: list[str], used: npt.NDArray[np.bool_]) -> Int32:
    """For each thread the one that its events go to: from CANN's to that of the same number, if that is `used`."""
    home = np.arange(len(threads), dtype=np.int32)
    if CANN in process_names:
        own = {tid: i for i, (_, tid) in enumerate(threads) if used[i] and process_names[i] != CANN}
        for i, (_, tid) in enumerate(threads):
            if process_names[i] == CANN:
                home[i] = own.get(tid, i)
    return home
