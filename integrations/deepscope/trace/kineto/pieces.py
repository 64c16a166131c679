"""The stream of a trace's bytes, cut into pieces of whole events."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from deepscope.errors import NotATraceError
from deepscope.trace.kineto.decode import FAILURES, Buffer, Event, decode_events
from deepscope.trace.kineto.file_head import ADVICE, BLANK, FileHead, Text, take_head, take_tail


class EventSpan(NamedTuple):
    """Where one whole event stands in a buffer."""

    start: int
    stop: int


TOO_DEEP = -2
_DEEPEST = 10_000
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|"', re.DOTALL)


def spans(buffer: Buffer) -> tuple[list[EventSpan], int]:
    """Events that stand whole in `buffer`, and where the array of events closes (-1: not here).

    `buffer` begins between two events. The slow way, by brackets alone: for pieces that do not decode as they were cut.
    A lone quote is a string that the buffer's end cuts. Where an event is nested deeper than any decoder goes,
    the events before it come with `TOO_DEEP`.
    """
    found: list[EventSpan] = []
    depth = start = 0
    for match in _TOKEN.finditer(buffer):
        first = match[0][:1]
        if first == b'"':
            if len(match[0]) == 1:
                break
        elif first in b"{[":
            if depth == 0:
                start = match.start()
            depth += 1
            if depth > _DEEPEST:
                return found, TOO_DEEP
        else:
            if depth == 0:
                return found, (match.start() if first == b"]" else -1)
            depth -= 1
            if depth == 0 and first == b"}":
                found.append(EventSpan(start, match.end()))
    return found, -1


_NOT_JSON = re.compile(
    r'("[^"\\]*(?:\\.[^"\\]*)*")|(?<![\w.])[-+]?(?:nan(?:\([^)]*\))?|inf(?:inity)?)(?![\w.])', re.IGNORECASE | re.DOTALL
)


def _normalised(event: bytes) -> bytes | None:
    """One event in the shape that `decode_events` takes; None if it is no JSON object even with allowances.

    Allowed for: bytes that are no UTF-8, raw control characters, `nan`, `inf` and `Infinity`, fields of other types.
    Fractions stay text, so that no digit of a time is lost.
    """
    import json  # for such events alone

    text = event.decode("utf-8", "replace")
    text = _NOT_JSON.sub(lambda match: match[1] or "null", text)
    try:
        raw = json.loads(text, strict=False, parse_float=str, parse_int=_bounded_int)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    args = raw.get("args")
    shaped: dict[str, Any] = {key: _word(raw.get(key)) for key in ("ph", "cat", "name")}
    shaped |= {key: _scalar(raw.get(key)) for key in ("pid", "tid", "ts", "dur", "id")}
    shaped["args"] = args if isinstance(args, dict) else None
    try:
        # Lone surrogates (`\ud800`) cannot be written as UTF-8; escaped they could not be read back.
        return json.dumps(shaped, ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None


def decodable(event: bytes) -> bytes | None:
    """The event as it is, or in the expected shape; None where neither decodes."""
    for text in (event, _normalised(event)):
        if text is None:
            return None
        try:
            decode_events(b"[" + text + b"]")
        except FAILURES:
            continue
        return text
    return None


def _bounded_int(text: str) -> int | str:
    return int(text) if len(text) <= 18 else text


def _word(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _scalar(value: object) -> int | str | None:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, str)) or value is None else str(value)


_BETWEEN = re.compile(rb"}\s*(,)\s*{\s*[\"}]")
_LOOK_BACK = 1 << 12  # and twice as much each time
_OVERLAP = 1 << 12
_EVENTS = "\0events"
"""Stands for the key before the array of events, so that no other key is taken for it."""


class Piece(NamedTuple):
    """Events decoded, and the JSON array that they were decoded from (valid until the next piece is asked for)."""

    events: list[Event]
    text: Buffer


class Pieces:
    """An iterable over pieces; afterwards `metadata` has the other top-level keys, `damage` says what ended it early.

    Raises `NotATraceError` on what is no trace at all. A cut file yields its whole events, and sets `damage`.
    Before the iteration `take` hands out texts to be decoded elsewhere; the iteration goes on behind them.
    """

    def __init__(
        self, chunks: Iterable[bytes], path: str, decode: Callable[[Buffer], list[Event]] = decode_events
    ) -> None:
        self._decode = decode
        self.metadata: dict[str, Any] = {}
        self.damage = ""
        self.read_events = 0
        self._path = path
        # Within the array of events its buffer begins with "[", in place of the comma before the next event.
        self._text = Text(chunks)
        self._head: FileHead | None = None
        self._has_looked = False
        self._enough = 0
        self._has_phases = False

    @property
    def _is_bare(self) -> bool:
        return self._head is not None and self._head.is_bare

    def take(self, size: int) -> bytes | None:
        """The next events as a JSON array of at most `size` bytes, undecoded; None where no such piece is left.

        Whether the text decodes is for the caller to find out: `give_back` if it does not, `count_taken` if it does.
        """
        if not self._found_head():
            return None
        while len(self._text.buffer) < size and self._text.fill():
            pass
        if self._text.has_ended:
            return None
        cut = self._last_between(size)
        if cut < 0:
            return None
        text = bytes(memoryview(self._text.buffer)[:cut]) + b"]"
        del self._text.buffer[:cut]
        self._text.buffer[0] = ord("[")
        return text

    def give_back(self, texts: list[bytes]) -> None:
        """Puts the last texts taken, in their order, before what comes next."""
        for text in reversed(texts):
            self._text.buffer[:1] = text[:-1] + b","

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
            while self._text.fill() and len(self._text.buffer) < self._enough:
                pass
            if self._text.has_ended:
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
                    self._enough = 0 if self.read_events > before else 2 * len(self._text.buffer)
                else:
                    yield self._counted(piece)
        tail = take_tail(self._text, is_bare=self._is_bare)
        if tail is None:
            self.damage = f"ends behind event {self.read_events:,}, the last"
        else:
            self.metadata |= tail
        if self._is_bare and not self._has_phases:
            raise NotATraceError(f"{self._path}: is JSON without events; {ADVICE}")

    def _counted(self, piece: Piece) -> Piece:
        self.read_events += len(piece.events)
        self._has_phases = self._has_phases or any(event.ph for event in piece.events)
        return piece

    def _found_head(self) -> bool:
        if not self._has_looked:
            self._has_looked = True
            self._head = take_head(self._text, self._path)
            self.metadata |= self._head.metadata if self._head is not None else {}
        return self._head is not None

    def _cut_piece(self) -> Piece | None:
        """The events up to the last cut that decodes; None if none does."""
        buffer = self._text.buffer
        end = len(buffer)
        for _ in range(4):
            cut = self._last_between(end)
            if cut < 0:
                return None
            buffer[cut] = ord("]")
            piece = bytes(memoryview(buffer)[: cut + 1])
            try:
                events = self._decode(piece)
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
            cuts = [match.start(1) for match in _BETWEEN.finditer(self._text.buffer, start, stop)]
            if cuts:
                return cuts[-1]
        return -1

    def _last_piece(self) -> Generator[Piece, None, bool]:
        """The rest of the events; returns whether the array closes. Leaves the buffer behind the closing bracket."""
        rest: dict[str, Any] = {}
        try:
            if self._is_bare:
                piece = bytes(self._text.buffer)
            else:
                keys = _decode_object(b'{"\\u0000events":' + self._text.buffer)
                piece = bytes(keys.pop(_EVENTS))
                rest = {key: msgspec.json.decode(value) for key, value in keys.items() if key != "traceEvents"}
            events = self._decode(piece)
        except FAILURES:
            return (yield from self._by_brackets())
        self.metadata |= rest
        self._text.buffer = bytearray(b"" if self._is_bare else b"}")
        yield self._counted(Piece(events, piece))
        return True

    def _by_brackets(self) -> Generator[Piece, None, bool]:
        """The events that stand whole in the buffer, the slow and sure way; returns whether the array closes here."""
        found, close = spans(memoryview(self._text.buffer)[1:])
        whole = [bytes(self._text.buffer[span.start + 1 : span.stop + 1]) for span in found]
        yield from self._tolerantly(whole)
        if close >= 0:
            del self._text.buffer[: close + 2]
        elif found:
            self._text.buffer[: found[-1].stop + 1] = b"["
        if close == TOO_DEEP and not self.damage:
            self.damage = f"is nested without end in event {self.read_events + 1:,}"
        return close >= 0

    def _tolerantly(self, whole: list[bytes]) -> Iterator[Piece]:
        piece = b"[" + b",".join(whole) + b"]"
        try:
            events = self._decode(piece)
        except FAILURES:
            shaped = [decodable(event) for event in whole]
            if None in shaped:
                shaped = shaped[: shaped.index(None)]
                self.damage = f"is damaged in event {self.read_events + len(shaped) + 1:,}"
            piece = b"[" + b",".join(text for text in shaped if text) + b"]"
            events = self._decode(piece)
        yield self._counted(Piece(events, piece))

    def _report_cut(self) -> None:
        if not self.damage:
            inside = bool(self._text.buffer.strip(BLANK + b"[,"))
            number = self.read_events + inside
            self.damage = f"ends in the middle of event {number:,}" if inside else f"ends after event {number:,}"


_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
