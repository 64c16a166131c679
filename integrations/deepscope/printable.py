"""Text made safe to show: no control characters, nothing that turns the writing direction, and no passwords."""

from __future__ import annotations

import re

_WEB = r"\bhttps?://"
_USER = re.compile(rf"({_WEB})[^\s/?#'\"]+@")
_PASSWORD = re.compile(r"\b(?!github:)([a-z][a-z0-9+.-]{0,30}://[^\s/?#@:]*):[^\s/?#'\"]+@", re.IGNORECASE)
_QUERY = re.compile(rf"({_WEB}[^\s?'\"]*\?)[^\s'\"]*?(?=::|[:;,.)\]]*(?:[\s'\"]|$))")


def printable(text: str) -> str:
    """Text from a trace on one line, with nothing in it that a terminal interprets.

    Control characters, escape sequences, marks that turn the writing direction and lone surrogates become visible
    escapes (`\\x1b`, `\\u202e`); tabs and the various blanks become a space.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def clipped(text: str, longest: int) -> str:
    """Printable text of at most so many characters; the last is `…` where it was cut."""
    safe = printable(text)
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"


def without_secrets(text: str) -> str:
    """Text without what addresses in it may be opened by: passwords, users of web addresses (tokens) and their queries
    (signatures) become `…`."""
    if "://" not in text:
        return text
    return _QUERY.sub(r"\1…", _PASSWORD.sub(r"\1:…@", _USER.sub(r"\1…@", text)))


def _escaped(character: str) -> str:
    if character == "\t" or (character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"):
        return " "
    return character.encode("unicode_escape").decode("ascii")
