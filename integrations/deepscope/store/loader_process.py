"""The process in which a trace is read for a server: `python -m deepscope.store.loader_process`."""

from __future__ import annotations

from functools import partial

import msgspec

from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Told, serve
from deepscope.store.load import load_profile, load_selection
from deepscope.store.loader import Request

__all__: list[str] = []


def _load(body: bytes, told: Told) -> bytes:
    request = msgspec.msgpack.decode(body, type=Request)
    load = (
        partial(load_profile, request.path) if request.selection is None else partial(load_selection, request.selection)
    )
    try:
        profile = load(
            step=request.step,
            phase=request.phase,
            module=request.module,
            details=request.details,
            rank=request.rank,
            stage=request.stage,
            partial=request.partial,
            peaks=request.peaks,
            progress=told,
        )
    except (DeepScopeError, MemoryError):
        raise
    except Exception as error:  # a trace is input from outside: whatever it breaks is told in one line
        raise TraceError(f"{request.path}: {type(error).__name__}: {error}") from error
    return msgspec.msgpack.encode(profile)


if __name__ == "__main__":
    serve(_load)
