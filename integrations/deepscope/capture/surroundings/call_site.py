"""The code that started a recording, and whether it still runs: a cell that was interrupted leaves one open."""

from __future__ import annotations

import inspect
import sys
import threading
from types import FrameType

__all__ = ["CallSite"]

_PACKAGE = "deepscope.capture."
_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CallSite:
    """The innermost running frame outside the recorder, kept by its number: the frame itself would keep its tensors."""

    def __init__(self) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
            frame = frame.f_back
        self._number = id(frame)
        self._code = frame.f_code if frame is not None else None
        self._thread = threading.get_ident()

    @property
    def is_of_this_thread(self) -> bool:
        """Whether the current thread started the recording."""
        return threading.get_ident() == self._thread

    def may_still_run(self) -> bool:
        """False only on its own thread, where the frame has returned or was left by an exception."""
        if not self.is_of_this_thread or self._code is None or self._code.co_flags & _SUSPENDABLE:
            return True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if id(frame) == self._number and frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False
