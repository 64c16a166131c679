"""The process in which the ranks of a run are read for a server: `python -m deepscope.store.ranks_process`."""

from __future__ import annotations

import msgspec

from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Told, serve
from deepscope.store.loader import Request
from deepscope.store.ranks import read_selected
from deepscope.store.runs import select

__all__: list[str] = []


def _read(body: bytes, told: Told) -> bytes:
    request = msgspec.msgpack.decode(body, type=Request)
    selection = request.selection or select(request.path, stage=request.stage)
    try:
        found = read_selected(selection, request.view, partial=request.partial, progress=told)
    except (DeepScopeError, MemoryError):
        raise
    except Exception as error:  # a trace is input from outside: whatever it breaks is told in one line
        raise TraceError(f"{request.path}: {type(error).__name__}: {error}") from error
    return msgspec.msgpack.encode(found)


if __name__ == "__main__":
    serve(_read)
