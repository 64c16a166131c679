"""The events of a large trace decoded by processes side by side, into the columns that one process would make.

Run as a module it is such a process: JSON of a part of a trace in, its columns out.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepscope.errors import DeepScopeError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, Progress, cores, serve
from deepscope.trace.kineto.event_columns import EventColumns
from deepscope.trace.kineto.pieces import Pieces
from deepscope.trace.kineto.source import CHUNK_BYTES, likely_json_bytes

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType

WORTH_BYTES = 128 << 20
"""Bytes of JSON; below it starting the processes (a third of a second of CPU time) takes longer than they save."""
_MOST_WORKERS = 5  # decompressing, cutting and joining are done in the caller's process, and take a sixth of the whole
_WORKER = "deepscope.trace.kineto.parallel"


def decode_part(text: bytes) -> EventColumns | None:
    """The columns of a JSON array of events; None where it is not whole, or holds events that other parts may end."""
    columns = EventColumns()
    pieces = Pieces(_chunks(text), "")
    try:
        for piece in pieces:
            columns.add(piece.events, piece.text)
    except DeepScopeError:
        return None
    columns.read_events = pieces.read_events
    return None if pieces.damage or columns.has_halves else columns


def _chunks(text: bytes) -> Iterator[bytes]:
    for start in range(0, len(text), CHUNK_BYTES):
        yield text[start : start + CHUNK_BYTES]


def _pickled(text: bytes, _: Progress) -> bytes:
    import pickle

    return pickle.dumps(decode_part(text), pickle.HIGHEST_PROTOCOL)


def workers_for(path: str, size_bytes: int) -> int:
    """How many processes beside this one are worth their start for a file of that size; 0 for none."""
    is_large = likely_json_bytes(path, size_bytes) >= WORTH_BYTES
    return min(cores() - 1, _MOST_WORKERS) if is_large else 0


class Decoders:
    """Some running processes, ended when the context is left; `decode` may be called from as many threads."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._started = [HelperProcess.start(_WORKER) for _ in range(workers)]
        self._free: queue.SimpleQueue[HelperProcess | None] = queue.SimpleQueue()
        """The processes that are free, to be taken and put back; None in the place of one that is gone."""
        for process in self._started:
            self._free.put(process)

    def __enter__(self) -> Decoders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._started:
            if process is not None:
                process.end()

    def decode(self, text: bytes) -> EventColumns | None:
        """The columns of a JSON array of events, by the next free process; None where it cannot do it or is gone."""
        import pickle

        process = self._free.get()
        part: EventColumns | None = None
        try:
            if process is not None:
                part = pickle.loads(process.ask(text))  # noqa: S301  made by this package's own process
        except (ProcessEndedError, MessageError, MemoryError, EOFError, pickle.UnpicklingError):
            process = None
        finally:
            self._free.put(process)
        return part


BATCH_BYTES = 4 << 20
"""Of JSON, for one process at a time."""
_AHEAD = 8
"""Texts decoded here, at most, while one before them is still under way."""


def decode_together(pieces: Pieces, columns: EventColumns, decoders: Decoders) -> None:
    """Takes texts from `pieces`, decodes them here and by `decoders`, and joins the results into `columns` in order.

    If a process fails at a text (damaged, events begun and ended apart, its own death), this text and all behind it go
    back to `pieces`. So does what is too little to be taken, and all if the interpreter is ending, which has no more
    threads to wait in. The caller goes on from there by itself.
    """
    try:  # not before: it cannot be imported once the main thread has ended, when other threads may still record
        from concurrent.futures import ThreadPoolExecutor
    except RuntimeError:
        return
    waiting: deque[tuple[bytes, Future[EventColumns | None]]] = deque()
    with ThreadPoolExecutor(decoders.workers, "deepscope-decode") as threads:
        while True:
            is_first_done = bool(waiting) and waiting[0][1].done()
            room = len(waiting) < 2 * decoders.workers + _AHEAD
            if not is_first_done and room and (text := pieces.take(BATCH_BYTES)) is not None:
                away = sum(not future.done() for _, future in waiting)
                is_for_others = away < 2 * decoders.workers
                waiting.append((text, _submit(threads, decoders, text) if is_for_others else _known(decode_part(text))))
                continue
            if not waiting:
                return
            text, future = waiting.popleft()
            part = future.result()
            if part is None:
                pieces.give_back([text, *(later for later, _ in waiting)])
                return
            pieces.count_taken(part.read_events)
            columns.join(part)


def _submit(threads: ThreadPoolExecutor, decoders: Decoders, text: bytes) -> Future[EventColumns | None]:
    """Have the next free process decode a text."""
    try:
        return threads.submit(decoders.decode, text)
    except RuntimeError:  # the interpreter is ending
        return _known(None)


def _known(part: EventColumns | None) -> Future[EventColumns | None]:
    from concurrent.futures import Future

    future: Future[EventColumns | None] = Future()
    future.set_result(part)
    return future


if __name__ == "__main__":
    import gc

    gc.disable()  # nothing made while decoding can form a cycle
    serve(_pickled)
