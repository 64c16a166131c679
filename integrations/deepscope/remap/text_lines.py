"""What a line's text says by itself."""

from __future__ import annotations

MEANINGFUL_LENGTH = 6


def is_meaningful(line: str) -> bool:
    """Whether a line says enough to be recognised elsewhere: a lone bracket, `else:` or a blank line does not."""
    stripped = line.strip()
    return len(stripped) >= MEANINGFUL_LENGTH and any(character.isalnum() for character in stripped)


def without_indent(line: str) -> str:
    """A line as it is compared: a line that a new `if` or `with` has moved to the right is the same line."""
    return line.lstrip(" \t\f")
