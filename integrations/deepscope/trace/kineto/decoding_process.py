"""A process that decodes parts of a trace for another one: JSON in, columns out."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator

from deepscope.errors import DeepScopeError
from deepscope.processes import Progress, serve
from deepscope.trace.kineto.event_columns import EventColumns
from deepscope.trace.kineto.pieces import Pieces
from deepscope.trace.kineto.source import CHUNK_BYTES


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
    return pickle.dumps(decode_part(text), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    gc.disable()  # nothing made while decoding can form a cycle
    serve(_pickled)
