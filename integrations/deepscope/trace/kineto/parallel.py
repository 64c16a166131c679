"""The events of a large trace decoded by processes side by side, into the columns that one process would make."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from deepscope.trace.kineto.decoders import Decoders
from deepscope.trace.kineto.decoding_process import decode_part
from deepscope.trace.kineto.event_columns import Columns
from deepscope.trace.kineto.pieces import Pieces

BATCH_BYTES = 4 << 20
"""Of JSON, for one process at a time."""
_AHEAD = 8
"""Texts decoded here, at most, while one before them is still under way."""


def decode_together(pieces: Pieces, columns: Columns, decoders: Decoders) -> None:
    """Takes texts from `pieces`, decodes them here and by `decoders`, and joins the results into `columns` in order.

    If a process fails at a text (damaged, events begun and ended apart, its own death), this text and all behind it go
    back to `pieces`. So does what is too little to be taken, and all if the interpreter is ending, which has no more
    threads to wait in. The caller goes on from there by itself.
    """
    waiting: deque[tuple[bytes, Future[Columns | None]]] = deque()
    with ThreadPoolExecutor(decoders.workers, "deepscope-decode") as threads:
        while True:
            is_first_done = bool(waiting) and waiting[0][1].done()
            room = len(waiting) < 2 * decoders.workers + _AHEAD
            if not is_first_done and room and (text := pieces.take(BATCH_BYTES)) is not None:
                away = sum(not future.done() for _, future in waiting)
                waiting.append((text, _asked(threads, decoders, text) if away < 2 * decoders.workers else _done(text)))
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


def _asked(threads: ThreadPoolExecutor, decoders: Decoders, text: bytes) -> Future[Columns | None]:
    """Decoded by the next free process."""
    try:
        return threads.submit(decoders.decode, text)
    except RuntimeError:  # the interpreter is ending
        return _known(None)


def _done(text: bytes) -> Future[Columns | None]:
    """Decoded here and now."""
    return _known(decode_part(text))


def _known(part: Columns | None) -> Future[Columns | None]:
    future: Future[Columns | None] = Future()
    future.set_result(part)
    return future
