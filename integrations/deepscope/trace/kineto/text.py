"""The text of a trace as far as it has come: what is read is taken from the front of one buffer."""

from __future__ import annotations

from collections.abc import Iterable

BLANK = b" \t\r\n"
"""What JSON has between its tokens."""


class Text:
    """The part that has come and is not read yet, in `buffer`."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.buffer = bytearray()
        self.has_ended = False
        """All of it has come."""
        self._chunks = iter(chunks)

    def fill(self) -> bool:
        """One chunk more; False where there is none."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.has_ended = True
            return False
        self.buffer += chunk
        return True

    def fill_to(self, size: int) -> bool:
        """At least one chunk more, up to a size; False where there is none."""
        if not self.fill():
            return False
        while len(self.buffer) < size and self.fill():
            pass
        return True
