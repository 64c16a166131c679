"""Several traces read at once, each by a process of its own, and the processes that read for a server."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import TypeAlias, TypeVar

import msgspec

from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, Progress, cores
from deepscope.store.files import TraceFile, is_reached_by_others, own_settings
from deepscope.store.requests import ColumnsRequest, RankRequest, ReadRequest, trace_error
from deepscope.trace.kineto.remote import is_url
from deepscope.trace.kineto.source import likely_json_bytes

Answer = TypeVar("Answer")

WORKER = "deepscope.worker"
IDLE_SECONDS = 60.0
"""Then it ends, so that a server that nobody asks is small."""

_lock = Lock()
_idle: list[HelperProcess] = []
"""At most one."""
_environment: dict[str, str] = {}
"""Which it was started in: it says where the cache is."""


@contextmanager
def worker() -> Iterator[HelperProcess | None]:
    """A process for one question; None where none can be started. It ends where the question fails."""
    process = _take()
    try:
        yield process
    except BaseException:
        if process is not None:
            process.end()
        raise
    if process is not None:
        _give_back(process)


def columns_answer(
    request: ColumnsRequest, progress: Progress, decode: Callable[[bytes], Answer], *, what: str = "it"
) -> Answer:
    """A process's answer, read by `decode`; `what` of the file was to be read, for the message where it ends early.

    Raises:
        TraceError: the file cannot be read, or no process could be started.
    """
    path = request.file.path
    try:
        with worker() as process:
            if process is None:
                raise TraceError(f"{path}: no process could be started to read it")
            return decode(process.ask(msgspec.msgpack.encode(request), progress))
    except (ProcessEndedError, MessageError, MemoryError, ValueError, msgspec.MsgspecError) as error:
        why = "not enough memory to read it" if isinstance(error, MemoryError) else f"reading {what} ended early"
        raise TraceError(f"{path}: {why}") from error


def _take() -> HelperProcess | None:
    with _lock:
        process = _idle.pop() if _idle else None
        is_same, environment = _environment == os.environ, dict(os.environ)
        _environment.clear()
        _environment.update(environment)
    if process is not None:
        if process.is_running and is_same:
            return process
        process.end()
    return HelperProcess.start(WORKER, is_quiet=True)


def _give_back(process: HelperProcess) -> None:
    """Keeps a process that has answered; it may still be writing what it parsed."""
    with _lock:
        is_kept = not _idle
        if is_kept:
            _idle.append(process)
    if not is_kept:
        process.end()
        return
    timer = Timer(IDLE_SECONDS, _end, (process,))
    timer.daemon = True
    timer.start()


def _end(process: HelperProcess) -> None:
    with _lock:
        if process not in _idle:
            return  # somebody took it; it has another timer once it is back
        _idle.remove(process)
    process.end()


WORTH_BYTES = 48 << 20
"""Bytes of JSON; below it a process takes longer to start than a trace to read."""
REMOTE_WORTH_FILES = 4
"""Of a remote store each file is also waited for."""
_REMOTE_PER_CORE = 2
_TRIES = 2
"""Processes that read a trace, the second one when the first was killed."""

ReadAnswer: TypeAlias = bytes | DeepScopeError
"""A record, encoded, or why there is none."""
Got: TypeAlias = Callable[[int, ReadAnswer], None]
"""Called, in the caller's thread, with the index of a request and its answer."""
RequestProgress: TypeAlias = Callable[[int, int], None]
"""Called, in the caller's thread, with the index of a file and how many of its bytes are read."""


def workers_for(files: Sequence[TraceFile]) -> int:
    """How many processes are worth their start for these files; 0 or 1 for none."""
    if not sys.executable or len(files) < 2:
        return 0
    whole = sum(likely_json_bytes(file.name, file.size_bytes) for file in files)
    if not any(is_url(file.path) for file in files):
        return min(len(files), cores(), whole // WORTH_BYTES)
    if not all(map(is_reached_by_others, files)) or own_settings(files) is None:
        return 0
    return min(len(files), cores() * _REMOTE_PER_CORE, max(whole // WORTH_BYTES, len(files) // REMOTE_WORTH_FILES))


def answers_of_processes(requests: Sequence[ReadRequest], *, workers: int, got: Got, progress: RequestProgress) -> None:
    """Has processes answer. What gets no answer could not be asked: no process, or something spoke in its place.

    A process that is killed while it reads (by the system, for want of memory) is replaced. What it was reading is read
    again when the others are done; if that process is killed too, this is the answer.
    """
    settings = own_settings([request.file for request in requests])
    if settings is not None:
        _Pool(requests, [_encoded(RankRequest(request, settings)) for request in requests], got, progress).run(workers)


def _encoded(asked: RankRequest) -> bytes | None:
    try:
        return msgspec.msgpack.encode(asked)
    except UnicodeEncodeError:  # a path with bytes that are no text can be read by this process alone
        return None


class _Pool:
    """Processes, each with a thread that gives it one request after another."""

    def __init__(
        self, requests: Sequence[ReadRequest], bodies: Sequence[bytes | None], got: Got, progress: RequestProgress
    ) -> None:
        self._requests = requests
        self._bodies = bodies
        self._got, self._progress = got, progress
        # None: a thread has no more to do.
        self._messages: queue.SimpleQueue[tuple[int, int | ReadAnswer] | None] = queue.SimpleQueue()
        # The largest first: it would otherwise be waited for at the end.
        by_size = sorted(range(len(requests)), key=lambda index: -requests[index].file.size_bytes)
        self._waiting = deque(index for index in by_size if bodies[index] is not None)
        self._killed: deque[int] = deque()
        self._tries = [0] * len(requests)
        self._started: list[HelperProcess] = []
        self._is_over = False
        self._lock = threading.Lock()

    def run(self, workers: int) -> None:
        try:
            self._gather(self._waiting, workers)
            while self._killed:  # one at a time: the memory was too small for several
                self._gather(self._killed, 1)
        finally:
            with self._lock:
                self._is_over = True
            for process in self._started:
                process.end()

    def _gather(self, waiting: deque[int], workers: int) -> None:
        processes = [process for _ in range(workers) if (process := self._start()) is not None]
        running = 0
        for process in processes:
            thread = threading.Thread(target=self._drive, args=(process, waiting), name="deepscope-worker", daemon=True)
            with suppress(RuntimeError):  # the interpreter is ending, and some versions start no more threads then
                thread.start()
                running += 1
        if not running:
            waiting.clear()
        while running:
            came = self._messages.get()
            if came is None:
                running -= 1
            elif isinstance(came[1], int):
                self._progress(came[0], came[1])
            else:
                self._got(came[0], came[1])

    def _start(self) -> HelperProcess | None:
        with self._lock:
            process = None if self._is_over else HelperProcess.start(WORKER)
            if process is not None:
                self._started.append(process)
            return process

    def _drive(self, first: HelperProcess, waiting: deque[int]) -> None:
        """In a thread of its own: one request after another, while there are some and a process to ask."""
        worker: HelperProcess | None = first
        try:
            while worker is not None and (index := self._next(waiting)) is not None:
                worker = self._ask(worker, index)
        except (MessageError, msgspec.MsgspecError):
            pass  # something else spoke in its place
        finally:
            self._messages.put(None)

    def _next(self, waiting: deque[int]) -> int | None:
        with self._lock:
            return waiting.popleft() if waiting else None

    def _ask(self, worker: HelperProcess, index: int) -> HelperProcess | None:
        """The process for the next request; None where there is none any more."""
        file, body = self._requests[index].file, self._bodies[index]
        assert body is not None
        self._tries[index] += 1
        try:
            self._messages.put((index, worker.ask(body, lambda done, _: self._messages.put((index, done)))))
        except MemoryError as error:
            self._messages.put((index, trace_error(file, error)))
        except DeepScopeError as error:
            # A store may be set up by the caller's own code, of which a process knows nothing: the caller tries.
            if not is_url(file.path):
                self._messages.put((index, error))
        except ProcessEndedError as ended:
            if ended.exit_code >= 0:  # it could not start, or not read this: the caller tries
                return None
            if self._tries[index] < _TRIES:
                self._killed.append(index)
            else:
                self._messages.put((index, _killed(file, ended.exit_code)))
            return self._start()
        return worker


def _killed(file: TraceFile, exit_code: int) -> TraceError:
    return TraceError(f"{file.path}: the process that read it was ended by signal {-exit_code} (not enough memory?)")
