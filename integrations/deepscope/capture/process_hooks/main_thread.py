"""A call on the main thread, between two of its instructions: for programs without steps, which have no other moment.

Python has such calls for signals and for C (`Py_AddPendingCall`); a signal would interrupt the program's own waiting.
A main thread that is busy in C, or waits there, makes the call when it is back in Python.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from typing import Any

from deepscope.capture.process_hooks.interrupts import put_off

_Pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_add: Any = getattr(ctypes.pythonapi, "Py_AddPendingCall", None)
_interrupt: Any = getattr(ctypes.pythonapi, "PyErr_SetInterruptEx", None)
_waiting: dict[int, Callable[[], None]] = {}
_numbers = iter(range(1, 1 << 62))


def call_soon(action: Callable[[], None]) -> bool:
    """Has the main thread call `action`, which must catch what it raises; False where Python takes no such call."""
    number = next(_numbers)
    _waiting[number] = action
    for _ in range(3):  # its queue has 32 places
        if _add is not None and _add(_called, ctypes.c_void_p(number)) == 0:
            return True
    _waiting.pop(number, None)
    return False


def _call(number: int | None) -> int:
    action = _waiting.pop(number or 0, None)
    if action is None:
        return 0
    arrived: list[int] = []
    try:
        with put_off(arrived.append):
            action()
    except KeyboardInterrupt:
        arrived.append(signal.SIGINT)
    except SystemExit:  # what a handler of SIGTERM raises
        arrived.append(signal.SIGTERM)
    except BaseException:  # noqa: BLE001  it would reach the program, as a SystemError
        pass
    # Signals arrive once more behind this call, which no exception can leave. Last of all, and without a function of
    # Python's: while a call is waiting, 3.11 hangs in any function that begins here and is traced.
    for one in arrived:
        if _interrupt is not None:
            _add(_interrupt, ctypes.c_void_p(one))
    return 0


_called = _Pending(_call)
