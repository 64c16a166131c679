"""A process of this package's own that answers messages over pipes.

A plain subprocess: `multiprocessing` would run the caller's main module again in it, and the caller may be a user's
script without a guard, a notebook, or a thread of an editor's server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["HelperProcess", "MessageError", "cores", "own_pipes", "read_message", "write_message"]

_MARK = b"DSM1"
"""Stands before each message: what else might speak on the pipe is not taken for a length."""
_LENGTH_BYTES = 8
_SOURCES = Path(__file__).resolve().parents[2]


class MessageError(ValueError):
    """What came over the pipe is no message."""


class HelperProcess:
    """A running process, to be ended with `end`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout

    @classmethod
    def start(cls, module: str) -> HelperProcess | None:
        """`python -m module`, of this interpreter and this package; None where no process can be started."""
        if not sys.executable:
            return None
        paths = [str(_SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            process = subprocess.Popen(  # noqa: S603  this very interpreter
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,  # Ctrl-C is this process's to handle
            )
        except OSError:
            return None
        return cls(process)

    def send(self, body: bytes) -> None:
        """Raises `OSError` or `ValueError` where the process is gone."""
        write_message(self._requests, body)

    def receive(self) -> bytes | None:
        """The next answer; None where the process has ended. Raises `MessageError` on anything else."""
        return read_message(self._answers)

    def end(self) -> None:
        """Ends it at once, whatever it is doing; a thread that waits in `receive` gets None."""
        self._process.kill()
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        self._process.wait()


def write_message(stream: IO[bytes], body: bytes) -> None:
    """Writes one message at once."""
    stream.write(_MARK + len(body).to_bytes(_LENGTH_BYTES, "big"))
    stream.write(body)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """The next message; None where the other side has ended. Raises `MessageError` on anything else."""
    head = stream.read(len(_MARK) + _LENGTH_BYTES)
    if len(head) < len(_MARK) + _LENGTH_BYTES:
        return None
    if not head.startswith(_MARK):
        raise MessageError("something else spoke in the place of a process of DeepScope's")
    size = int.from_bytes(head[len(_MARK) :], "big")
    body = stream.read(size)
    return body if len(body) == size else None


def own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """In such a process: requests and answers. Whatever else would be printed goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
