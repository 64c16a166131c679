"""Several traces read at once, each by a process of its own.

The workers are plain subprocesses that speak over pipes. `multiprocessing` would run the caller's main module again in
every worker, and the caller may be a user's script without a guard, a notebook, or a thread of an editor's server.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypeAlias

import msgspec

from deepscope import errors
from deepscope.store.files import TraceFile, is_url
from deepscope.store.profile import Profile
from deepscope.store.wire import Done, Failed, Request, Step, receive, send

__all__ = ["WORTH_BYTES", "Told", "read_in_processes", "workers_for"]

WORTH_BYTES = 48 << 20
"""Of JSON: below it a process takes longer to start than a trace to read."""

_GZIP_RATIO = 15
_SOURCES = Path(__file__).resolve().parents[2]

Told: TypeAlias = Callable[[int, int], None]
"""Called, in the caller's thread, with the index of a file and how many of its bytes are read."""


def workers_for(files: Sequence[TraceFile]) -> int:
    """How many processes are worth their start for these files; 0 or 1 for none. Remote files are read in place: their
    stores may have been set up by the caller's own code."""
    local = [file for file in files if not is_url(file.path)]
    if len(local) < len(files) or not sys.executable:
        return 0
    whole = sum(file.size_bytes * (_GZIP_RATIO if file.name.endswith(".gz") else 1) for file in files)
    return min(len(files), _cores(), whole // WORTH_BYTES)


def read_in_processes(
    files: Sequence[TraceFile], *, workers: int, step: int | None, partial: bool, cache: bool, told: Told | None
) -> list[Profile | None]:
    """The profiles of the files, in their order; None where a worker ended without an answer.

    Raises what reading the file in this process would raise; the other workers are then ended.
    """
    # None: a worker has no more to do, or has ended without an answer.
    messages: queue.SimpleQueue[tuple[int, Step | Done | Failed] | None] = queue.SimpleQueue()
    # The largest first: it would otherwise be waited for at the end.
    waiting = iter(sorted(range(len(files)), key=lambda index: -files[index].size_bytes))
    turn = threading.Lock()

    def next_index() -> int | None:
        with turn:
            return next(waiting, None)

    def drive(worker: subprocess.Popen[bytes]) -> None:
        try:
            while (index := next_index()) is not None:
                file = files[index]
                asked = Request(file.path, file.size_bytes, file.mtime_ns, file.token, step, partial, cache)
                for message in _exchange(worker, asked):
                    messages.put((index, message))
        except (OSError, ValueError, EOFError, msgspec.MsgspecError):
            pass  # the worker is gone, or something else spoke in its place
        finally:
            messages.put(None)

    started = [process for _ in range(workers) if (process := _start()) is not None]
    for process in started:
        threading.Thread(target=drive, args=(process,), name="deepscope-worker", daemon=True).start()
    found: list[Profile | None] = [None] * len(files)
    running = len(started)
    try:
        while running:
            came = messages.get()
            if came is None:
                running -= 1
                continue
            index, message = came
            if isinstance(message, Failed):
                _raise(message)
            if isinstance(message, Done):
                found[index] = message.profile
            if told is not None:
                told(index, message.done if isinstance(message, Step) else files[index].size_bytes)
    finally:
        for process in started:
            _end(process)
    return found


def _exchange(worker: subprocess.Popen[bytes], request: Request) -> Iterator[Step | Done | Failed]:
    """All messages about one file; the last is its answer."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    send(worker.stdin, request)
    message: Step | Done | Failed | None = Step(0)
    while isinstance(message, Step):
        message = receive(worker.stdout, Step | Done | Failed)
        if message is None:
            raise EOFError
        yield message


def _start() -> subprocess.Popen[bytes] | None:
    """A worker; None where no process can be started."""
    paths = [str(_SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "deepscope.store.worker"]
    try:
        return subprocess.Popen(  # noqa: S603  this very interpreter
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is this process's to handle
        )
    except OSError:
        return None


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    for stream in (worker.stdin, worker.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    worker.wait()


def _raise(failed: Failed) -> NoReturn:
    if failed.error == "MemoryError":
        raise MemoryError
    kind = getattr(errors, failed.error, errors.TraceError)
    raise (errors.TraceError if kind is errors.MissingExtraError else kind)(failed.message)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
