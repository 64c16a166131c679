"""A process that writes one rank's large trace when its turn has come (`python -m deepscope.capture.saving.writer`).

It is no child to be waited for: a rank that is killed meanwhile leaves it behind, and it ends what it has begun. Behind
its answer it leaves the trace's profile in the cache.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from deepscope.capture.naming import remove_raw
from deepscope.capture.saving.turns import memory_needed, turn
from deepscope.processes import Answered, Progress, serve

_BEHIND_ALL = 1 << 20
"""Ranks; no host has so many."""


def request(instructions: bytes, *, raw: Path, local_rank: int, is_awaited: bool = False) -> bytes:
    """What the process is asked: `instructions` of `rewrite` as JSON, and which rank of this host they are of.

    It lets other processes go first unless somebody waits for the trace.
    """
    return json.dumps([str(raw), local_rank, os.getpid(), is_awaited]).encode() + b"\n" + instructions


def _write_trace(words: bytes, _: Progress) -> Answered:
    head, instructions = words.split(b"\n", 1)
    raw, local_rank, owner, is_awaited = json.loads(head)
    if hasattr(os, "nice") and not is_awaited:
        os.nice(5)
    size = 0
    with suppress(OSError):  # `rewrite` tells
        size = Path(raw).stat().st_size
    need_bytes = memory_needed(size)
    with turn(local_rank, need_bytes):
        # Not before: NumPy and all the reading need not be in memory of processes that wait.
        import msgspec

        from deepscope.capture.saving.rewrite import Instructions, rewrite

        given = msgspec.json.decode(instructions, type=Instructions)
        outcome = rewrite(given)
    if hasattr(os, "getppid") and os.getppid() != owner:  # nobody hears the answer, nor removes what is left
        remove_raw(Path(raw))
    return Answered(msgspec.json.encode(outcome), partial(_leave_profile, given.target, local_rank, need_bytes))


def _leave_profile(trace: str, local_rank: int, need_bytes: int) -> None:
    """Has the cache keep the trace's profile, while the training goes on and before anybody asks for it.

    The first rank's may be waited for; those of others are made behind the traces of all.
    """
    from deepscope.store.load import keep_profile

    with turn(local_rank and local_rank + _BEHIND_ALL, need_bytes), suppress(Exception):  # a reader is told what it is
        keep_profile(trace)


if __name__ == "__main__":
    serve(_write_trace)
