"""A process that writes one rank's large trace when its turn has come (`python -m deepscope.capture.saving.writer`).

It is no child to be waited for: a rank that is killed meanwhile leaves it behind, and it ends what it has begun.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from deepscope.capture.naming import remove_raw
from deepscope.capture.saving.turns import memory_needed, turn
from deepscope.processes import Progress, serve


def request(instructions: bytes, *, raw: Path, local_rank: int, is_awaited: bool = False) -> bytes:
    """What the process is asked: `instructions` of `rewrite` as JSON, and which rank of this host they are of.

    It lets other processes go first unless somebody waits for the trace.
    """
    return json.dumps([str(raw), local_rank, os.getpid(), is_awaited]).encode() + b"\n" + instructions


def _write_trace(words: bytes, _: Progress) -> bytes:
    head, instructions = words.split(b"\n", 1)
    raw, local_rank, owner, is_awaited = json.loads(head)
    if hasattr(os, "nice") and not is_awaited:
        os.nice(5)
    size = 0
    with suppress(OSError):  # `rewrite` tells
        size = Path(raw).stat().st_size
    with turn(local_rank, memory_needed(size)):
        # Not before: NumPy and all the reading need not be in memory of processes that wait.
        from deepscope.capture.saving.rewrite import write_trace

        answer = write_trace(instructions)
    if hasattr(os, "getppid") and os.getppid() != owner:  # nobody hears the answer, nor removes what is left
        remove_raw(Path(raw))
    return answer


if __name__ == "__main__":
    serve(_write_trace)
