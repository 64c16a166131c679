"""Work in a process of this package's own: requests and answers over pipes, errors as what they are.

A plain subprocess: `multiprocessing` would run the caller's main module again in it, and the caller may be a user's
script without a guard, a notebook, or a thread of an editor's server.

A module that does such work ends with `if __name__ == "__main__": serve(work)`; whoever wants it done starts
`HelperProcess.start("that.module")` and asks.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

from deepscope.errors import DeepScopeError, remake

if TYPE_CHECKING:
    import subprocess

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes that are read, and the bytes in all (0 where unknown)."""


class Answered(NamedTuple):
    """An answer, and what is still to be done once it is given."""

    body: bytes
    afterwards: Callable[[], None]


Work: TypeAlias = Callable[[bytes, Progress], "bytes | Answered"]
"""From a request, and a callback for progress, to the answer."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Environment of a process that only reads traces: it has no matrices, for which NumPy would start a thread a core."""

_RUNNING: set[HelperProcess] = set()
_MARK = b"DSM2"
"""Stands before each message, so that other output on the pipe is not taken for a length."""
_PROGRESS, _DONE, _FAILED = b"P", b"D", b"F"
_HEAD = struct.Struct(">4scQ")
"""The mark, the kind of a message, and how many bytes follow."""
_BYTES_READ = struct.Struct(">QQ")
"""Those that are read, and all."""
_SOURCES = Path(__file__).resolve().parents[1]
_REPORT_EVERY_SECONDS = 0.05


class MessageError(Exception):
    """What came over the pipe is no message."""


class ProcessEndedError(Exception):
    """The process ended without an answer; `exit_code` is negative for a signal."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class HelperProcess:
    """A running process, to be ended with `end`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout
        _RUNNING.add(self)

    @classmethod
    def start(cls, module: str, *, is_quiet: bool = False) -> HelperProcess | None:
        """`python -m module`, of this interpreter and this package; None where no process can be started.

        Args:
            module: one that calls `serve`.
            is_quiet: what it prints to standard error goes nowhere.
        """
        import subprocess  # for large traces alone

        if not sys.executable:
            return None
        # No module of the working folder's: an empty entry would be that folder.
        paths = [str(_SOURCES), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        try:
            process = subprocess.Popen(  # noqa: S603  this very interpreter
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if is_quiet else None,
                env={**ONE_THREAD, **os.environ, **own},
                start_new_session=True,  # Ctrl-C, and a scheduler's signals, are this process's to handle
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError:
            return None
        return cls(process)

    def ask(self, request: bytes, progress: Progress | None = None) -> bytes:
        """The answer, while `progress` hears how far the work is.

        Raises:
            DeepScopeError: the work raised it.
            MemoryError: the process had not enough memory.
            ProcessEndedError: it ended without an answer.
            MessageError: something else spoke in its place.
        """
        with suppress(OSError, ValueError):  # it is gone, or `end` closed the pipe: the answer will show it
            _write(self._requests, _DONE, request)
        while (message := self._next())[0] == _PROGRESS:
            if progress is not None:
                progress(*_BYTES_READ.unpack(message[1]))
        if message[0] == _DONE:
            return message[1]
        raise _made_again(message[1])

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def _next(self) -> tuple[bytes, bytes]:
        message = None
        with suppress(OSError, ValueError):
            message = _read(self._answers)
        if message is None:
            raise ProcessEndedError(self._process.wait())
        return message

    def finish(self) -> None:
        """Waits until it has done what it has begun and has ended, and asks it nothing more."""
        _RUNNING.discard(self)
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        self._process.wait()

    def end(self) -> None:
        """Ends it at once, whatever it is doing; a thread that waits in `ask` gets `ProcessEndedError`."""
        self._process.kill()
        self.finish()


def end_all() -> None:
    """Ends each one that this process has started and that still runs: for a server that ends."""
    for process in tuple(_RUNNING):
        process.end()


def serve(work: Work) -> None:
    """In such a process: does the work for each request until there are no more.

    `DeepScopeError` and `MemoryError` are answers; any other exception ends the process.
    """
    requests, answers = _own_pipes()
    teller = _Teller(answers)
    try:
        while (message := _read(requests)) is not None:
            afterwards = None
            try:
                kind, body = _DONE, work(message[1], teller.report)
            except (DeepScopeError, MemoryError) as error:
                kind, body = _FAILED, _described(error)
            if isinstance(body, Answered):
                body, afterwards = body
            _write(answers, kind, body)
            if afterwards is not None:
                afterwards()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # nobody waits for the answer any more


class _Teller:
    """Tells how far the work is, at most twenty times a second; it always tells the end."""

    def __init__(self, answers: IO[bytes]) -> None:
        self._answers = answers
        self._next = 0.0

    def report(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next or done >= total:
            self._next = now + _REPORT_EVERY_SECONDS
            _write(self._answers, _PROGRESS, _BYTES_READ.pack(done, total))


def _described(error: DeepScopeError | MemoryError) -> bytes:
    import json

    return json.dumps([type(error).__name__, error.args], default=str).encode()


def _made_again(body: bytes) -> DeepScopeError | MemoryError:
    import json

    kind, arguments = json.loads(body)
    return MemoryError() if kind == "MemoryError" else remake(kind, arguments)


def _write(stream: IO[bytes], kind: bytes, body: bytes) -> None:
    stream.write(_HEAD.pack(_MARK, kind, len(body)))
    stream.write(body)
    stream.flush()


def _read(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """The next message's kind and body; None where the other side has ended. Raises `MessageError` on anything else."""
    head = stream.read(_HEAD.size)
    if head and not head.startswith(_MARK[: len(head)]):
        raise MessageError("something else spoke in the place of a process of DeepScope's")
    if len(head) < _HEAD.size:
        return None
    _, kind, length = _HEAD.unpack(head)
    body = stream.read(length)
    return (kind, body) if len(body) == length else None


def _own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Requests and answers. Whatever else would be printed goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
