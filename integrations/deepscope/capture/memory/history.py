"""torch's own history of the GPU's memory in a window, written as a snapshot beside the trace: `memory_snapshot`."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import torch

from deepscope.capture import notices
from deepscope.trace.format.run_account import renamed_when_whole

MOST_ENTRIES = 200_000
"""Each takes about a kilobyte while it is kept; the oldest give way."""
_WANTED = {
    "context": "alloc",
    "stacks": "python",
    "max_entries": MOST_ENTRIES,
    "clear_history": True,
    "global_record_annotations": True,
}
_NO_DEVICE = (
    "no memory snapshot: torch takes them of CUDA's memory, and there is no such device; the trace's own blocks "
    "(profile_memory=True) tell the CPU's memory"
)


class MemoryHistory:
    """Of one window. A history that the user records is left as it is, and the snapshot is of that one.

    https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
    """

    def __init__(self) -> None:
        self._is_own = False
        self._is_recording = False
        self._snapshot: Any = None

    def begin(self) -> None:
        """Record allocations from here on, if there is a device."""
        if not torch.cuda.is_available():
            notices.warn(_NO_DEVICE)
            return
        try:
            self._is_own = not _is_enabled()
            if self._is_own:
                record: Any = torch.cuda.memory._record_memory_history
                known = inspect.signature(record).parameters  # older torch has fewer
                record("all", **{name: value for name, value in _WANTED.items() if name in known})
            self._is_recording = True
        except Exception as error:  # noqa: BLE001 - an allocator without a history, a torch that has changed
            notices.warn("no memory snapshot", error)

    def end(self) -> None:
        """Take the snapshot, and record no longer."""
        if not self._is_recording:
            return
        self._is_recording = False
        try:
            try:
                self._snapshot = torch.cuda.memory._snapshot()
            finally:
                if self._is_own:
                    torch.cuda.memory._record_memory_history(None)
        except Exception as error:  # noqa: BLE001 - a device that is lost
            notices.warn("no memory snapshot", error)

    def write(self, path: Path) -> None:
        """Write the snapshot, once, if there is one. Raises `OSError` where that fails; nothing is left then."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None:
            return
        with renamed_when_whole(path) as part, part.open("wb") as stream:
            pickle.dump(snapshot, stream)


def _is_enabled() -> bool:
    """Whether somebody records a history already."""
    ask = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(ask is not None and ask())
