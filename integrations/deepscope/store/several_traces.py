"""Several traces read, each alone: what is wanted of each, or why it cannot be had.

Answers come from the cache where it has them, else from processes, from a Dask cluster or from this process.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec

from deepscope.errors import DeepScopeError, OptionError, TraceError, in_words
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, Progress, cores
from deepscope.store.cache import prune, save_body
from deepscope.store.files import TraceFile, is_reached_by_others, own_settings
from deepscope.store.single_trace import (
    WORKER,
    FilesProgress,
    OnAnswer,
    RankRequest,
    ReadAnswer,
    ReadRequest,
    answer,
    kept_answer,
    trace_error,
)
from deepscope.trace.kineto.remote import is_url
from deepscope.trace.kineto.source import likely_json_bytes


def read_traces(
    requests: Sequence[ReadRequest], *, scheduler: str = "", progress: Progress | None = None
) -> list[bytes | TraceError]:
    """For each request its record, encoded; or the reason why the trace cannot be read.

    A trace without the step that is wanted is such a one, where another one has it.

    Args:
        requests: of one kind, each for another trace.
        scheduler: the address of a Dask scheduler whose workers read; "" for this machine.
        progress: called with bytes done and bytes in all.

    Raises:
        OptionError: no trace has such a step.
        DeepScopeError: what is no matter of one trace: a missing extra, say.
    """
    files = [request.file for request in requests]
    account = _SummedProgress(progress, files)
    found: list[ReadAnswer | None] = []
    for index, request in enumerate(requests):
        found.append(kept_answer(request))
        if found[index] is not None:
            account.answered(index, request.file.size_bytes)
    missing = [index for index, one in enumerate(found) if one is None]

    def got(place: int, one: ReadAnswer) -> None:
        found[missing[place]] = one
        account.answered(missing[place], files[missing[place]].size_bytes)

    unanswered = [requests[index] for index in missing]
    try:
        _ask_others(unanswered, scheduler, got, lambda at, done: account.advance(missing[at], done))
        for index in missing:
            if found[index] is None:
                found[index] = _read_here(requests[index], account.of_file(index))
                account.answered(index, files[index].size_bytes)
    finally:
        if any(request.cache for request in unanswered):
            prune()
    has_some = any(isinstance(answered, bytes) for answered in found)
    return [_checked(answered, file, has_some=has_some) for answered, file in zip(found, files, strict=True)]


def _ask_others(requests: Sequence[ReadRequest], scheduler: str, got: OnAnswer, on_progress: RequestProgress) -> None:
    """Has a cluster or processes answer; what gets no answer is left to this process."""
    if scheduler and requests:
        from deepscope.store.dask_cluster import answers_of_cluster

        def kept(place: int, one: ReadAnswer) -> None:
            request = requests[place]
            if request.cache and isinstance(one, bytes):
                save_body(request.kind, request.file, one, request.view, partial=request.partial)
            got(place, one)

        answers_of_cluster(scheduler, requests, got=kept)
    elif (workers := workers_for([request.file for request in requests])) > 1:
        answers_of_processes(requests, workers=workers, got=got, progress=on_progress)


def _read_here(request: ReadRequest, progress: Progress | None) -> ReadAnswer:
    try:
        return answer(request, progress, workers=None)
    except (DeepScopeError, MemoryError) as error:
        return error if isinstance(error, DeepScopeError) else trace_error(request.file, error)


def _checked(answered: ReadAnswer | None, file: TraceFile, *, has_some: bool) -> bytes | TraceError:
    assert answered is not None
    if isinstance(answered, OptionError) and has_some:
        return TraceError(f"{file.path}: {answered.message(in_words)}")
    if isinstance(answered, DeepScopeError) and not isinstance(answered, TraceError):
        raise answered
    return answered


class _SummedProgress:
    """Adds up the progress of several files."""

    def __init__(self, progress: Progress | None, files: Sequence[TraceFile]) -> None:
        self._progress = progress
        self._counting = progress if isinstance(progress, FilesProgress) else None
        self._done = [0] * len(files)
        self._files_done = 0
        self._sum = 0
        self._total = sum(file.size_bytes for file in files)

    def answered(self, index: int, size_bytes: int) -> None:
        """A file has its answer."""
        self._files_done += 1
        if self._counting is not None:
            self._counting.files_done(self._files_done, len(self._done))
        self.advance(index, size_bytes)

    def advance(self, index: int, done: int) -> None:
        """So many bytes of a file are done."""
        self._sum += done - self._done[index]
        self._done[index] = done
        if self._progress is not None:
            self._progress(self._sum, self._total)

    def of_file(self, index: int) -> Progress | None:
        """The callback for reading one file; None where nobody wants to know."""
        return None if self._progress is None else lambda done, _: self.advance(index, done)


WORTH_BYTES = 48 << 20
"""Bytes of JSON; below it a process takes longer to start than a trace to read."""
REMOTE_WORTH_FILES = 4
"""Of a remote store each file is also waited for."""
_REMOTE_PER_CORE = 2
_TRIES = 2
"""Processes that read a trace, the second one when the first was killed."""
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


def answers_of_processes(
    requests: Sequence[ReadRequest], *, workers: int, got: OnAnswer, progress: RequestProgress
) -> None:
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
        self, requests: Sequence[ReadRequest], bodies: Sequence[bytes | None], got: OnAnswer, progress: RequestProgress
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
