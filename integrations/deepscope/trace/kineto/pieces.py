"""The stream of a trace's bytes, cut into pieces of whole events: head, events, tail, in whatever order and spacing."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from deepscope.errors import NotATraceError
from deepscope.trace.kineto.decode import FAILURES, TOO_DEEP, Buffer, Event, decode_events, normalise, spans

__all__ = ["Piece", "Pieces"]

_ARRAY_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"}\s*(,)\s*{\s*[\"}]")
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_LOOK_BACK = 1 << 12  # and twice as much each time
_OVERLAP = 1 << 12
_MOST_HEADS = 32
"""Places named `traceEvents` that are tried: more than a few are no head of a trace."""
_EVENTS = "\0events"
"""Stands for the key before the array of events, so that no other key is taken for it."""
_ADVICE = "give a Kineto or Chrome trace (.json or .json.gz)"


class Piece(NamedTuple):
    """Events decoded, and the JSON array that they were decoded from (valid until the next piece is asked for)."""

    events: list[Event]
    text: Buffer


class Pieces:
    """An iterable over pieces; afterwards `metadata` has the other top-level keys, `damage` says what ended it early.

    Raises `NotATraceError` on what is no trace at all. Of a cut file the whole events come, and `damage` is set.
    `take` hands out texts to be decoded elsewhere, before the iteration, which goes on behind them.
    """

    def __init__(self, chunks: Iterable[bytes], path: str) -> None:
        self.metadata: dict[str, Any] = {}
        self.damage = ""
        self.read_events = 0
        self._path = path
        self._chunks = iter(chunks)
        # Within the array of events it begins with "[", in place of the comma before the next event.
        self._buffer = bytearray()
        self._ended = False
        self._enough = 0
        self._is_bare = False
        self._has_phases = False
        self._has_head: bool | None = None

    def take(self, size: int) -> bytes | None:
        """The next events as a JSON array of at most `size` bytes, undecoded; None where no such piece is left.

        Whether the text decodes is for the caller to find out: `give_back` if it does not, `count_taken` if it does.
        """
        if not self._found_head():
            return None
        while len(self._buffer) < size and self._fill():
            pass
        if self._ended:
            return None
        cut = self._last_between(size)
        if cut < 0:
            return None
        text = bytes(memoryview(self._buffer)[:cut]) + b"]"
        del self._buffer[:cut]
        self._buffer[0] = ord("[")
        return text

    def give_back(self, texts: list[bytes]) -> None:
        """Puts the last texts taken, in their order, before what comes next."""
        for text in reversed(texts):
            self._buffer[:1] = text[:-1] + b","

    def count_taken(self, events: int) -> None:
        """A text taken held so many events."""
        self.read_events += events
        self._has_phases = self._has_phases or events > 0

    def __iter__(self) -> Iterator[Piece]:
        closed = False
        if not self._found_head():
            self.damage = "ends before its first event"
            return
        while not closed:
            # An event of many megabytes: looked at again when there is twice as much of it, not with every chunk.
            while self._fill() and len(self._buffer) < self._enough:
                pass
            if self._ended:
                closed = yield from self._last_piece()
                if not closed:
                    self._report_cut()
                    return
            else:
                piece = self._cut_piece()
                if piece is None:
                    before = self.read_events
                    closed = yield from self._by_brackets()
                    if self.damage:
                        return
                    self._enough = 0 if self.read_events > before else 2 * len(self._buffer)
                else:
                    yield self._counted(piece)
        self._read_tail()
        if self._is_bare and not self._has_phases:
            raise NotATraceError(f"{self._path}: is JSON without events; {_ADVICE}")

    def _fill(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            self._ended = True
            return False
        self._buffer += chunk
        return True

    def _counted(self, piece: Piece) -> Piece:
        self.read_events += len(piece.events)
        self._has_phases = self._has_phases or any(event.ph for event in piece.events)
        return piece

    # --- the head

    def _found_head(self) -> bool:
        if self._has_head is None:
            self._has_head = self._read_head()
        return self._has_head

    def _read_head(self) -> bool:
        """Leaves the buffer at the array of events, its bracket included; False where the file ends before it."""
        while len(self._buffer) < 64 and self._fill():
            pass
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        while not (rest := self._buffer.lstrip(_BLANK)) and self._fill_anew():
            pass
        self._buffer = rest
        if self._buffer.startswith(b"["):
            self._is_bare = True
            return True
        searched = tried = 0
        while self._buffer.startswith(b"{") and tried < _MOST_HEADS:
            match = _ARRAY_KEY.search(self._buffer, searched)
            if match is None:
                searched = self._where_the_key_may_begin(searched)
                if not self._fill_to(2 * len(self._buffer) - searched):
                    break
            elif (head := _object(self._buffer[: match.start()] + b'"traceEvents":0}')) is not None:
                head.pop("traceEvents", None)
                self.metadata |= head
                del self._buffer[: match.end() - 1]
                return True
            else:  # a key of that name further down, or bad JSON
                searched = match.end()
                tried += 1
        if self._is_cut_object():
            return False
        raise NotATraceError(f"{self._path}: {self._what_it_is()}")

    def _where_the_key_may_begin(self, searched: int) -> int:
        """Nothing before that can become the key of the events, whatever comes."""
        key = self._buffer.rfind(b'"traceEvents"', searched)
        if key >= 0 and not self._buffer[key + len(b'"traceEvents"') :].strip(_BLANK + b":"):
            return key
        return max(searched, len(self._buffer) - 64)

    def _fill_anew(self) -> bool:
        self._buffer.clear()
        return self._fill()

    def _fill_to(self, size: int) -> bool:
        """At least one chunk more, up to a size; False where there is none."""
        if not self._fill():
            return False
        while len(self._buffer) < size and self._fill():
            pass
        return True

    def _is_cut_object(self) -> bool:
        try:
            msgspec.json.decode(self._buffer)
        except FAILURES as error:
            return self._buffer.lstrip(_BLANK).startswith(b"{") and "truncated" in str(error)
        return False

    def _what_it_is(self) -> str:
        body = bytes(self._buffer).strip(_BLANK)
        if not body:
            return "is empty; was the run ended before the trace was written?"
        try:
            msgspec.json.decode(body)
        except FAILURES:
            if body.startswith(b"PK\3\4"):
                return f"is a zip archive; unpack it, or name the trace in it: zip://NAME::{self._path}"
            what = "holds binary data" if b"\0" in body[:1024] else "holds no JSON"
            return f"{what}; {_ADVICE}"
        return f"is JSON without `traceEvents`; {_ADVICE}"

    # --- the events

    def _cut_piece(self) -> Piece | None:
        """The events up to the last cut that decodes; None if none does."""
        buffer = self._buffer
        end = len(buffer)
        for _ in range(4):
            cut = self._last_between(end)
            if cut < 0:
                return None
            buffer[cut] = ord("]")
            piece = bytes(memoryview(buffer)[: cut + 1])
            try:
                events = decode_events(piece)
            except FAILURES:
                buffer[cut] = ord(",")
                end = cut
                continue
            del buffer[:cut]
            buffer[0] = ord("[")
            return Piece(events, piece)
        return None

    def _last_between(self, end: int) -> int:
        """Index of the last comma before `end` that looks like one between two events; -1 for none.

        One with many blanks around it may be passed over.
        """
        start, look_back = end, _LOOK_BACK
        while start > 0:
            stop, start = min(end, start + _OVERLAP), max(0, start - look_back)
            look_back *= 2
            cuts = [match.start(1) for match in _BETWEEN.finditer(self._buffer, start, stop)]
            if cuts:
                return cuts[-1]
        return -1

    def _last_piece(self) -> Generator[Piece, None, bool]:
        """The rest of the events; returns whether the array closes. Leaves the buffer behind the closing bracket."""
        rest: dict[str, Any] = {}
        try:
            if self._is_bare:
                piece = bytes(self._buffer)
            else:
                keys = _decode_object(b'{"\\u0000events":' + self._buffer)
                piece = bytes(keys.pop(_EVENTS))
                rest = {key: msgspec.json.decode(value) for key, value in keys.items() if key != "traceEvents"}
            events = decode_events(piece)
        except FAILURES:
            return (yield from self._by_brackets())
        self.metadata |= rest
        self._buffer = bytearray(b"" if self._is_bare else b"}")
        yield self._counted(Piece(events, piece))
        return True

    def _by_brackets(self) -> Generator[Piece, None, bool]:
        """The events that stand whole in the buffer, the slow and sure way; returns whether the array closes here."""
        found, close = spans(memoryview(self._buffer)[1:])
        whole = [bytes(self._buffer[span.start + 1 : span.stop + 1]) for span in found]
        yield from self._tolerantly(whole)
        if close >= 0:
            del self._buffer[: close + 2]
        elif found:
            self._buffer[: found[-1].stop + 1] = b"["
        if close == TOO_DEEP and not self.damage:
            self.damage = f"is nested without end in event {self.read_events + 1:,}"
        return close >= 0

    def _tolerantly(self, whole: list[bytes]) -> Iterator[Piece]:
        piece = b"[" + b",".join(whole) + b"]"
        try:
            events = decode_events(piece)
        except FAILURES:
            shaped = [_decodable(event) for event in whole]
            if None in shaped:
                shaped = shaped[: shaped.index(None)]
                self.damage = f"is damaged in event {self.read_events + len(shaped) + 1:,}"
            piece = b"[" + b",".join(text for text in shaped if text) + b"]"
            events = decode_events(piece)
        yield self._counted(Piece(events, piece))

    # --- the tail

    def _report_cut(self) -> None:
        if not self.damage:
            inside = bool(self._buffer.strip(_BLANK + b"[,"))
            number = self.read_events + inside
            self.damage = f"ends in the middle of event {number:,}" if inside else f"ends after event {number:,}"

    def _read_tail(self) -> None:
        while self._fill():
            pass
        tail = _tail(self._buffer, is_bare=self._is_bare)
        if tail is None:
            self.damage = f"ends behind event {self.read_events:,}, the last"
        else:
            self.metadata |= tail


def _decodable(event: bytes) -> bytes | None:
    """The event as it is, or normalised, or None where neither decodes."""
    for text in (event, normalise(event)):
        if text is None:
            return None
        try:
            decode_events(b"[" + text + b"]")
        except FAILURES:
            continue
        return text
    return None


_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _object(text: bytes | bytearray) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(text)
    except FAILURES:
        return None
    return value if isinstance(value, dict) else None


def _tail(text: bytearray, *, is_bare: bool) -> dict[str, Any] | None:
    """The keys after the array: `, "a": 1}` or `}`; nothing may follow a bare array. None where it is not whole."""
    if is_bare:
        return None if text.strip(_BLANK) else {}
    value = _object(b'{"traceEvents":0' + text)
    if value is not None:
        value.pop("traceEvents", None)
    return value
