"""A process that makes the timeline of a trace for another one, and keeps it where the other finds it."""

from __future__ import annotations

import msgspec

from deepscope.dashboard.timeline.kept import save
from deepscope.dashboard.timeline.opening import Request, make_timeline
from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Told, serve
from deepscope.store.files import TraceFile

__all__: list[str] = []


def _make(body: bytes, told: Told) -> bytes:
    request = msgspec.msgpack.decode(body, type=Request)
    file = TraceFile(request.path, request.size_bytes, request.mtime_ns, request.token)
    try:
        columns = make_timeline(file, partial=request.partial, progress=told)
    except (DeepScopeError, MemoryError):
        raise
    except Exception as error:  # a trace is input from outside: whatever it breaks is told in one line
        raise TraceError(f"{request.path}: {type(error).__name__}: {error}") from error
    save(file, columns, partial=request.partial)
    return b""


if __name__ == "__main__":
    serve(_make)
