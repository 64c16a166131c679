"""Records from their bytes, in any thread."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_MAKING = Lock()
"""msgspec makes a structure's table of types at its first use, and a second thread that comes meanwhile reads what is
not written yet, and dies: one thread makes it."""


def decoded(body: bytes, kind: type[T]) -> T:
    """A record of this kind, from MessagePack.

    Raises:
        msgspec.MsgspecError: the bytes are none.
    """
    made: Any = kind
    found: T = _of_record(made).decode(body)
    return found


def decoder_of(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of a type; its tables are made."""
    with _MAKING:
        return msgspec.msgpack.Decoder(kind)


@cache
def _of_record(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return decoder_of(kind)
