"""The brackets of JSON that may be cut off: where values begin and end, without decoding them."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A text that the head cuts off is one token too: looking for its end from each quote inside takes squared time.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\[\s\S])*)(?:"(\s*:)?|\\?\Z)|[\[\]{}]')


def with_depth(text: bytes, at: int = 0) -> Iterator[tuple[re.Match[bytes], int]]:
    """The texts and brackets from `at` on, and how many brackets are open behind each.

    Group 1 is what a text holds; group 2 is there where it is a key.
    """
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in b"{[":
            depth += 1
        elif token[0] in b"}]":
            depth -= 1
        yield token, depth
