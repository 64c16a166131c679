"""Text from a trace made safe to show: nothing in it that a terminal obeys or that turns the writing direction."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """Text from a trace on one line, with nothing in it that a terminal obeys.

    Control characters, escape sequences, marks that turn the writing direction and lone surrogates become visible
    escapes (`\\x1b`, `\\u202e`); tabs and the various blanks become a space.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character == "\t" or (character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"):
        return " "
    return character.encode("unicode_escape").decode("ascii")
