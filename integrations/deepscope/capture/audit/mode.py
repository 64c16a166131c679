"""The dispatch mode that shows each operator as it returns; it changes nothing of what is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torch.utils import _python_dispatch as dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from deepscope.capture.process_hooks.interrupts import comes_from_handler

Note = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]
"""Called with an operator, its arguments and its result."""


class AuditMode(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """Calls `note` behind each operator of the thread that entered it, and of autograd's threads that work for it.

    An exception of `note` ends the notes, and `on_error` is told of it.
    """

    supports_higher_order_operators = True

    def __init__(self, note: Note, on_error: Callable[[Exception], None]) -> None:
        super().__init__()
        self._note: Note | None = note
        self._on_error = on_error
        self._process = os.getpid()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Dynamo is not in use; torch would import it for a wrapper around each call."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls the operator as it would be called without a mode."""
        del types
        named = kwargs or {}
        result = func(*args, **named)
        note = self._note
        if note is not None and os.getpid() == self._process:
            try:
                note(func, args, named, result)
            except Exception as error:
                self._note = None
                if comes_from_handler(error):
                    raise
                self._on_error(error)
        return result

    def mute(self) -> None:
        """Show no more operators; for a thread that may not leave it."""
        self._note = None

    def leave(self) -> None:
        """Take the mode off this thread's stack; modes that were entered since stay."""
        self._note = None
        above = []
        while dispatch._get_current_dispatch_mode_stack():
            top = dispatch._pop_mode()
            if top is self:
                dispatch._push_mode(self)  # its flags are put back as it is left
                self.__exit__(None, None, None)
                break
            above.append(top)
        for mode in reversed(above):
            dispatch._push_mode(mode)


def is_another_active() -> bool:
    """Whether a dispatch mode is on this thread's stack."""
    return bool(dispatch._get_current_dispatch_mode_stack())
