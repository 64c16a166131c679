"""The process that reads traces for another one: `python -m deepscope.worker`. Requests in, records out."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Answered, Progress, serve
from deepscope.store.cache import encode_columns
from deepscope.store.companion_files import load_snapshot
from deepscope.store.files import remote_access
from deepscope.store.load import LoadRequest, load_profile, load_selection
from deepscope.store.selection import select
from deepscope.store.single_trace import (
    ColumnsRequest,
    Parsed,
    RankRequest,
    answer,
    collect_parsed,
    keep_parsed,
    open_attribution,
)


def work(body: bytes, progress: Progress) -> Answered:
    """The answer to one request; what was parsed for it is kept once it is given."""
    request = msgspec.msgpack.decode(body, type=RankRequest | ColumnsRequest | LoadRequest)
    with collect_parsed() as parsed:
        if isinstance(request, RankRequest):
            with remote_access(request.settings):
                found = answer(request.request, progress)
        else:
            found = _answered(request, progress)
    return Answered(found, partial(_keep, parsed))


def _keep(parsed: list[Parsed]) -> None:
    while parsed:
        keep_parsed(parsed.pop())


def _answered(request: ColumnsRequest | LoadRequest, progress: Progress) -> bytes:
    path = request.path if isinstance(request, LoadRequest) else request.file.path
    try:
        if isinstance(request, ColumnsRequest):
            return _columns(request, progress)
        return _ranks(request, progress) if request.answer == "ranks" else _profile(request, progress)
    except (DeepScopeError, MemoryError):
        raise
    except Exception as error:  # a trace is input from outside: whatever it breaks is told in one line
        raise TraceError(f"{path}: {type(error).__name__}: {error}") from error


def _profile(request: LoadRequest, progress: Progress) -> bytes:
    options: dict[str, Any] = {name: getattr(request, name) for name in ("rank", "stage", "partial", "peaks")}
    options["progress"] = progress
    if request.selection is None:
        profile = load_profile(request.path, **msgspec.structs.asdict(request.view), **options)
    else:
        profile = load_selection(request.selection, request.view, **options)
    return msgspec.msgpack.encode(profile)


def _ranks(request: LoadRequest, progress: Progress) -> bytes:
    from deepscope.store.ranks import read_selected

    selection = request.selection or select(request.path, stage=request.stage)
    return msgspec.msgpack.encode(read_selected(selection, request.view, partial=request.partial, progress=progress))


def _columns(request: ColumnsRequest, progress: Progress) -> bytes:
    if request.answer == "timeline":
        from deepscope.dashboard.timeline.index import make_timeline

        make_timeline(request.file, partial=request.partial, progress=progress)
        return b""
    if request.answer == "snapshot":
        return msgspec.msgpack.encode(load_snapshot(request.file.path))
    from deepscope.dashboard.memory_moments import moments_of

    attribution = open_attribution(request.file, partial=request.partial, progress=progress)
    return b"".join(encode_columns(moments_of(attribution)))


if __name__ == "__main__":
    serve(work)
