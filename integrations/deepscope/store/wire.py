"""What the process that loads several traces and its workers say to each other, in msgpack."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from deepscope.records import Profile

__all__ = ["Answer", "Done", "Failed", "Request", "Step", "decode_answer", "decode_request", "encode"]


class Request(msgspec.Struct):
    """A trace to be read; the fields of `TraceFile`, and what is asked."""

    path: str
    size_bytes: int
    mtime_ns: int
    token: str
    step: int | None
    partial: bool
    cache: bool


class Step(msgspec.Struct, tag=True):
    """So many bytes of the file have been read."""

    done: int


class Done(msgspec.Struct, tag=True):
    """The trace's profile."""

    profile: Profile


class Failed(msgspec.Struct, tag=True):
    """An error of `deepscope.errors`, to be made again by `remake`; or a `MemoryError`."""

    kind: str
    arguments: list[Any]


Answer: TypeAlias = Step | Done | Failed

encode = msgspec.msgpack.encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
"""Raise `msgspec.MsgspecError` on anything else."""
