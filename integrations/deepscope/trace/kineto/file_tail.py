"""What stands behind a trace's events: the top-level keys that some recorders write last."""

from __future__ import annotations

from typing import Any

from deepscope.trace.kineto.file_head import read_object
from deepscope.trace.kineto.text import BLANK, Text


def take_tail(text: Text, *, is_bare: bool) -> dict[str, Any] | None:
    """The keys after the array: `, "a": 1}` or `}`; nothing may follow a bare array. None where it is not whole."""
    while text.fill():
        pass
    if is_bare:
        return None if text.buffer.strip(BLANK) else {}
    value = read_object(b'{"traceEvents":0' + text.buffer)
    if value is not None:
        value.pop("traceEvents", None)
    return value
