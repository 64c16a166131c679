"""Several traces read at once, each by a process of its own."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from deepscope.errors import DeepScopeError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, cores
from deepscope.records import Profile, View
from deepscope.store.files import TraceFile, is_url
from deepscope.store.reading_process import Request
from deepscope.trace.kineto.source import likely_json_bytes

__all__ = ["WORTH_BYTES", "Told", "read_in_processes", "workers_for"]

WORTH_BYTES = 48 << 20
"""Bytes of JSON; below it a process takes longer to start than a trace to read."""

_WORKER = "deepscope.store.reading_process"

Told: TypeAlias = Callable[[int, int], None]
"""Called, in the caller's thread, with the index of a file and how many of its bytes are read."""


def workers_for(files: Sequence[TraceFile]) -> int:
    """How many processes are worth their start for these files; 0 or 1 for none. Remote files are read in place: their
    stores may have been set up by the caller's own code."""
    local = [file for file in files if not is_url(file.path)]
    if len(local) < len(files) or not sys.executable:
        return 0
    whole = sum(likely_json_bytes(file.name, file.size_bytes) for file in files)
    return min(len(files), cores(), whole // WORTH_BYTES)


def read_in_processes(
    files: Sequence[TraceFile], view: View, *, workers: int, partial: bool, cache: bool, told: Told | None
) -> list[Profile | None]:
    """The profiles of the files, in their order; None where a worker ended without an answer.

    Raises what reading the file in this process would raise; the other workers are then ended.
    """
    # None: a worker has no more to do, or has ended without an answer.
    messages: queue.SimpleQueue[tuple[int, int | Profile | Exception] | None] = queue.SimpleQueue()
    # The largest first: it would otherwise be waited for at the end.
    waiting = iter(sorted(range(len(files)), key=lambda index: -files[index].size_bytes))
    turn = threading.Lock()

    def next_index() -> int | None:
        with turn:
            return next(waiting, None)

    def drive(worker: HelperProcess) -> None:
        try:
            while (index := next_index()) is not None:
                file = files[index]
                asked = Request(file.path, file.size_bytes, file.mtime_ns, file.token, view, partial, cache)
                try:
                    body = worker.ask(msgspec.msgpack.encode(asked), _putting(messages, index))
                except (DeepScopeError, MemoryError) as error:
                    messages.put((index, error))
                else:
                    messages.put((index, msgspec.msgpack.decode(body, type=Profile)))
        except (ProcessEndedError, MessageError, msgspec.MsgspecError):
            pass  # the worker is gone, or something else spoke in its place
        finally:
            messages.put(None)

    started = [process for _ in range(workers) if (process := HelperProcess.start(_WORKER)) is not None]
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
            if isinstance(message, Exception):
                raise message
            if isinstance(message, Profile):
                found[index] = message
            if told is not None:
                told(index, message if isinstance(message, int) else files[index].size_bytes)
    finally:
        for process in started:
            process.end()
    return found


def _putting(messages: queue.SimpleQueue[Any], index: int) -> Callable[[int, int], None]:
    return lambda done, _: messages.put((index, done))
