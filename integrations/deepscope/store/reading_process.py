"""A process that reads traces for another one: requests in, profiles out."""

from __future__ import annotations

import msgspec

from deepscope.processes import Told, serve
from deepscope.records import View
from deepscope.store.files import TraceFile
from deepscope.store.read import read_profile

__all__ = ["Request"]


class Request(msgspec.Struct):
    """A trace to be read; the fields of `TraceFile`, and what is asked."""

    path: str
    size_bytes: int
    mtime_ns: int
    token: str
    view: View
    partial: bool
    cache: bool


def _read(body: bytes, told: Told) -> bytes:
    request = msgspec.msgpack.decode(body, type=Request)
    file = TraceFile(request.path, request.size_bytes, request.mtime_ns, request.token)
    profile = read_profile(file, request.view, partial=request.partial, cache=request.cache, workers=0, progress=told)
    return msgspec.msgpack.encode(profile)


if __name__ == "__main__":
    serve(_read)
