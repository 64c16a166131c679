"""The code around a recording: where it was started, and how a loop over its items was left."""

from __future__ import annotations

import dis
import inspect
import sys
import threading
from types import FrameType

_PACKAGE = "deepscope.capture."
_DROPS = {dis.opmap[name] for name in ("POP_TOP", "POP_ITER") if name in dis.opmap}
"""What `break`, and `return` in a loop, do with what the loop goes through."""
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


def is_loop_left() -> bool:
    """In a generator that is closed: whether the loop around it was left by `break` or `return`, not by an exception.

    Python tells a generator no more than that it is closed, so the loop's own instruction is looked at. Generators in
    between (a progress bar) are closed at the place that they wait at.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_code[frame.f_lasti] in _DROPS:
            return True
        if not frame.f_code.co_flags & _SUSPENDABLE:
            return False
        frame = frame.f_back
    return False
