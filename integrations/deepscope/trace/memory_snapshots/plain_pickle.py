"""Pickles of plain types alone: every instruction is checked before any is carried out.

https://github.com/python/cpython/blob/main/Lib/pickletools.py describes the instructions. Those that name a class, call
something or reach outside the file (`GLOBAL`, `REDUCE`, `BUILD`, `PERSID`, `EXT1`, …) are none of those that pass.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

from deepscope.errors import NotATraceError

MOST_BYTES = 1 << 30
_MOST_CONTAINERS = 1 << 25
"""Each takes 64 bytes or more once it is loaded, and one in the file."""

_SHORT = re.compile(
    rb"(?:[(}\])Naeust\x85-\x89\x94]|h.|K.|M..|[jJ].{4}|G.{8}|\x95.{8}"
    rb"|\x8a(?:\x00|\x01.|\x02..|\x03...|\x04.{4}|\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8})){1,4096}",
    re.DOTALL,
)
"""Instructions of one length: marks, containers and their items, constants, numbers of at most 64 bits, what was
remembered."""
_TEXT_SIZES = {ord("\x8c"): 1, ord("C"): 1, ord("X"): 4, ord("B"): 4, ord("q"): 0, ord("r"): 0}
"""Instructions with a text or bytes → bytes of the length before it; `q` and `r` remember what is there."""
_CONTAINERS = (b"]", b"}", b")")


def loads_plain(data: bytes, name: str) -> Any:
    """What a pickle of protocol 2 or later holds: dicts, lists, tuples, str, bytes, int, float, bool and None.

    Args:
        data: the pickle.
        name: what messages call it.

    Raises:
        NotATraceError: it is no pickle, it is damaged, too large, or holds anything else; nothing of it has run.
    """
    _check(data, name)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except NotATraceError:
        raise
    except Exception as error:  # every kind of damage has a class of its own
        raise NotATraceError(f"{name}: a damaged pickle ({type(error).__name__}); record the snapshot again") from error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise NotATraceError(f"a pickle that names {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002
        raise NotATraceError("a pickle that reaches outside itself")


def _check(data: bytes, name: str) -> None:
    if len(data) < 2 or data[0] != 0x80 or not 2 <= data[1] <= 5:
        raise NotATraceError(f"{name}: no memory snapshot: it is not a pickle as torch writes it")
    if len(data) > MOST_BYTES:
        raise NotATraceError(
            f"{name}: more than {MOST_BYTES >> 30} GiB; record fewer entries (max_entries of _record_memory_history)"
        )
    at = 2
    containers = remembered = 0
    while True:
        found = _SHORT.match(data, at)
        if found is not None:
            containers += sum(data.count(one, at, found.end()) for one in _CONTAINERS)
            if containers > _MOST_CONTAINERS:
                raise NotATraceError(f"{name}: more than {_MOST_CONTAINERS:,} lists and tables; record fewer entries")
            remembered += data.count(b"\x94", at, found.end())
            at = found.end()
            continue
        if at >= len(data):
            raise NotATraceError(f"{name}: the pickle ends early; record the snapshot again")
        code = data[at]
        if code == ord("."):
            return
        width = _TEXT_SIZES.get(code)
        if width is None:
            raise NotATraceError(
                f"{name}: not read: at byte {at:,} it has more than plain values, which a memory snapshot never has"
            )
        if width:
            at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
            continue
        width = 1 if code == ord("q") else 4
        # What is remembered is numbered without gaps; a large number would have the reader make room for all below it.
        if int.from_bytes(data[at + 1 : at + 1 + width], "little") > remembered:
            raise NotATraceError(f"{name}: a damaged pickle (at byte {at:,}); record the snapshot again")
        remembered += 1
        at += 1 + width
