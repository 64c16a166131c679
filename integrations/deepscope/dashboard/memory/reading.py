"""A trace's `Moments`, made in a process of its own: that one holds the whole trace, this one what is asked about."""

from __future__ import annotations

import msgspec

from deepscope.dashboard.memory.moments import Moments, Packed
from deepscope.errors import TraceError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, Told

__all__ = ["ReadingRequest", "read_moments"]


class ReadingRequest(msgspec.Struct, frozen=True):
    """Which trace; `partial`: of one that ends early, what is whole."""

    path: str
    partial: bool = False


def read_moments(request: ReadingRequest, told: Told) -> Moments:
    """Reads them.

    Raises:
        TraceError: the trace cannot be read.
    """
    process = HelperProcess.start("deepscope.dashboard.memory.process", is_quiet=True)
    if process is None:
        raise TraceError(f"{request.path}: no process could be started to read it")
    try:
        packed = process.ask(msgspec.msgpack.encode(request), told)
        return Moments.unpacked(msgspec.msgpack.decode(packed, type=Packed))
    except (ProcessEndedError, MessageError, MemoryError, msgspec.MsgspecError) as error:
        why = "not enough memory to read it" if isinstance(error, MemoryError) else "reading its memory ended early"
        raise TraceError(f"{request.path}: {why}") from error
    finally:
        process.end()
