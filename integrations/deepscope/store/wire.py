"""What the process that loads several traces and its workers say to each other: a mark, the length, then msgpack."""

from __future__ import annotations

from typing import IO, Any

import msgspec

from deepscope.store.profile import Profile

__all__ = ["Done", "Failed", "Request", "Step", "receive", "send"]

_MARK = b"DSW1"
"""Stands before each message: what else might speak on the pipe is not taken for a length."""
_LENGTH_BYTES = 8


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
    """An error of `deepscope.errors` by its name, and its message."""

    error: str
    message: str


def send(stream: IO[bytes], message: object) -> None:
    """Writes one message at once."""
    body = msgspec.msgpack.encode(message)
    stream.write(_MARK + len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    stream.flush()


def receive(stream: IO[bytes], kind: Any) -> Any:
    """The next message, of a type or a union of types; None where the other side has ended.

    Raises `msgspec.MsgspecError` on anything else.
    """
    head = stream.read(len(_MARK) + _LENGTH_BYTES)
    if len(head) < len(_MARK) + _LENGTH_BYTES:
        return None
    if not head.startswith(_MARK):
        raise msgspec.DecodeError("no message of DeepScope's")
    size = int.from_bytes(head[len(_MARK) :], "big")
    body = stream.read(size)
    return msgspec.msgpack.decode(body, type=kind) if len(body) == size else None
