"""The process in which a trace is read for its memory: `python -m deepscope.dashboard.memory.process`."""

from __future__ import annotations

import msgspec

from deepscope.dashboard.memory.build import moments_of
from deepscope.dashboard.memory.reading import ReadingRequest
from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Told, serve
from deepscope.trace.read import read_trace

__all__: list[str] = []


def _read(body: bytes, told: Told) -> bytes:
    request = msgspec.msgpack.decode(body, type=ReadingRequest)
    try:
        moments = moments_of(read_trace(request.path, partial=request.partial, progress=told))
    except (DeepScopeError, MemoryError):
        raise
    except Exception as error:  # a trace is input from outside: whatever it breaks is told in one line
        raise TraceError(f"{request.path}: {type(error).__name__}: {error}") from error
    return msgspec.msgpack.encode(moments.packed())


if __name__ == "__main__":
    serve(_read)
