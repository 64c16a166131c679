"""The events of a large trace decoded by processes side by side, into the columns that one process would make."""

from __future__ import annotations

import pickle
import queue
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from deepscope.trace.columns import Columns
from deepscope.trace.pieces import Pieces
from deepscope.trace.process import HelperProcess, cores
from deepscope.trace.source import likely_json_bytes

__all__ = ["decode_elsewhere", "workers_for"]

WORTH_BYTES = 128 << 20
"""Of JSON: below it the processes take longer to start than they save."""
BATCH_BYTES = 4 << 20
"""Of JSON, for one process at a time."""
_MOST_WORKERS = 6  # decompressing, cutting and joining are done here, and take a sixth of the whole
_WORKER = "deepscope.trace.part"


def workers_for(path: str, size_bytes: int) -> int:
    """How many processes are worth their start for a file of that size; 0 for none."""
    available = cores()
    is_large = likely_json_bytes(path, size_bytes) >= WORTH_BYTES
    return min(available, _MOST_WORKERS) if is_large and available > 1 else 0


def decode_elsewhere(pieces: Pieces, columns: Columns, workers: int) -> None:
    """Takes texts from `pieces`, has `workers` processes decode them, and joins the results into `columns` in order.

    What a process cannot do (a damaged text, events begun and ended apart, its own death) and all behind it is given
    back to `pieces`, as is what is too little to be taken: the caller goes on from there by itself.
    """
    waiting: deque[tuple[bytes, Future[Columns | None]]] = deque()
    with _decoders(workers) as decoders, ThreadPoolExecutor(workers, "deepscope-decode") as threads:
        while True:
            while len(waiting) < 2 * workers and (text := pieces.take(BATCH_BYTES)) is not None:
                waiting.append((text, threads.submit(_decode, decoders, text)))
            if not waiting:
                return
            text, future = waiting.popleft()
            part = future.result()
            if part is None:
                pieces.give_back([text, *(later for later, _ in waiting)])
                return
            pieces.count_taken(part.read_events)
            columns.join(part)


_Decoders = queue.SimpleQueue[HelperProcess | None]


@contextmanager
def _decoders(count: int) -> Iterator[_Decoders]:
    """The processes that are free, to be taken and put back; None in the place of one that is gone."""
    started = [HelperProcess.start(_WORKER) for _ in range(count)]
    free: _Decoders = queue.SimpleQueue()
    for process in started:
        free.put(process)
    try:
        yield free
    finally:
        for process in started:
            if process is not None:
                process.end()


def _decode(decoders: _Decoders, text: bytes) -> Columns | None:
    process = decoders.get()
    part: Columns | None = None
    try:
        if process is not None:
            process.send(text)
            body = process.receive()
            if body is not None:
                part = pickle.loads(body)  # noqa: S301  made by this package's own process
    except (OSError, ValueError, EOFError, pickle.UnpicklingError):
        process = None
    finally:
        decoders.put(process)
    return part
