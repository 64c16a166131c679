"""A process that writes one rank's large trace when its turn has come (`python -m deepscope.capture.saving.writer`).

It is no child to be waited for: a rank that is killed meanwhile leaves it behind, and it ends what it has begun. Behind
its answer it leaves the trace's profile in the cache.

The ranks of a host write large traces a few at a time, the lowest rank first: rewriting a trace takes a core and
several times the trace's memory. If all ranks did it at once, training would miss the cores that its data loaders run
on, and the host might run out of memory. Nobody but the writing processes themselves waits here.

Each keeps a ticket in a folder of the user's in the temporary folder, and holds a lock on it for as long as it lives.
The system drops the locks of a process that is killed, so that nobody waits for the dead. Locks are taken without
waiting, and nothing is shared between hosts.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from deepscope.capture.counters.container import available_bytes
from deepscope.capture.naming import remove_raw
from deepscope.processes import Answered, Progress, cores, serve

try:
    import fcntl
except ImportError:  # Windows, where all write at once
    fcntl = None  # type: ignore[assignment]


LONGEST_S = 600.0
"""After so long nobody waits any more: a writer may hang on a file system that is gone."""
SETTLE_S = 1.0
"""So long a rank leaves room for lower ones, whose windows end at the same moment."""
_DRAWN_WITHIN_S = 10.0
"""So long a rank tries to draw its ticket, while others hold the gate; one without a ticket does not wait."""
_EVERY_S = 0.1
_TIMES_THE_EXPORT = 8
"""Memory that rewriting takes: measured at exports of 0.3 and 1 GB."""
_AT_LEAST_BYTES = 300 << 20
_CORES_A_WRITER = 4
_GATE = "gate"


def memory_needed(export_bytes: int) -> int:
    """Bytes that rewriting an export of this size takes, roughly."""
    return _AT_LEAST_BYTES + _TIMES_THE_EXPORT * export_bytes


@contextmanager
def turn(rank: int, need_bytes: int, *, folder: Path | None = None, writers: int | None = None) -> Iterator[None]:
    """Wait for this process's turn among the writers of this host and user, and keep it within the block.

    Args:
        rank: on this host.
        need_bytes: of memory.
        folder: where the tickets lie; by default a folder of the user's own.
        writers: how many may write at once; by default one for each four cores.
    """
    ticket = _Ticket.drawn(_own_folder() if folder is None else folder, rank)
    if ticket is None:
        yield
        return
    try:
        most = max(1, cores() // _CORES_A_WRITER) if writers is None else writers
        until = time.monotonic() + LONGEST_S
        while not ticket.is_admitted(need_bytes, most) and time.monotonic() < until:
            time.sleep(_EVERY_S)
        yield
    finally:
        ticket.give_back()


class _Other(NamedTuple):
    rank: int
    pid: int
    need_bytes: int
    """0 while it waits."""


class _Ticket:
    def __init__(self, folder: Path, rank: int, stream: IO[bytes]) -> None:
        self._folder, self._rank, self._stream = folder, rank, stream
        self._path = folder / _name(rank)
        self._drawn_s = time.monotonic()

    @classmethod
    def drawn(cls, folder: Path | None, rank: int) -> _Ticket | None:
        """None where there are no locks, or no folder of one's own: then nobody waits."""
        if fcntl is None or folder is None:
            return None
        until = time.monotonic() + _DRAWN_WITHIN_S
        try:
            while True:
                with _gate(folder) as is_open:
                    if is_open:
                        stream = (folder / _name(rank)).open("wb")
                        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        return cls(folder, rank, stream)
                if time.monotonic() > until:
                    return None
                time.sleep(_EVERY_S / 10)
        except OSError:
            return None

    def is_admitted(self, need_bytes: int, most: int) -> bool:
        """Whether the turn has come; it is taken then."""
        if self._rank and time.monotonic() < self._drawn_s + SETTLE_S:
            return False
        try:
            with _gate(self._folder) as is_open:
                if not is_open or not self._may_begin(need_bytes, most):
                    return False
                self._stream.write(b"%d" % max(need_bytes, 1))
                self._stream.flush()
        except OSError:
            pass  # a folder that was removed: nobody is to wait for that
        return True

    def _may_begin(self, need_bytes: int, most: int) -> bool:
        others = list(_others(self._folder, self._path))
        writing = [other for other in others if other.need_bytes]
        if any(not other.need_bytes and (other.rank, other.pid) < (self._rank, os.getpid()) for other in others):
            return False
        needed = need_bytes + sum(other.need_bytes for other in writing)
        return not writing or (len(writing) < most and 2 * needed <= available_bytes())

    def give_back(self) -> None:
        with suppress(OSError):
            self._path.unlink()
        self._stream.close()


def _name(rank: int) -> str:
    return f"{rank}-{os.getpid()}"


@contextmanager
def _gate(folder: Path) -> Iterator[bool]:
    """Whether this process alone looks at the tickets now."""
    with (folder / _GATE).open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _others(folder: Path, own: Path) -> Iterator[_Other]:
    """Those whose owners live; tickets of the dead are removed. Only behind the gate."""
    for path in folder.iterdir():
        rank, _, pid = path.name.partition("-")
        if path == own or not (rank.isdigit() and pid.isdigit()):
            continue
        with suppress(OSError), path.open("rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                words = stream.read(20)
                yield _Other(int(rank), int(pid), int(words) if words.isdigit() else 0)
            else:
                path.unlink()


def _own_folder() -> Path | None:
    """A folder that nobody else can write to; None where there is none."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"deepscope-turns-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    is_own = not folder.is_symlink() and folder.is_dir() and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if is_own else None


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
        is_written = rewrite(given)
    if hasattr(os, "getppid") and os.getppid() != owner:  # nobody hears the answer, nor removes what is left
        remove_raw(Path(raw))
    return Answered(msgspec.json.encode(is_written), partial(_leave_profile, given.target, local_rank, need_bytes))


def _leave_profile(trace: str, local_rank: int, need_bytes: int) -> None:
    """Has the cache keep the trace's profile, while the training goes on and before anybody asks for it.

    The first rank's may be waited for; those of others are made behind the traces of all.
    """
    from deepscope.store.load import keep_profile

    with turn(local_rank and local_rank + _BEHIND_ALL, need_bytes), suppress(Exception):  # a reader is told what it is
        keep_profile(trace)


if __name__ == "__main__":
    serve(_write_trace)
