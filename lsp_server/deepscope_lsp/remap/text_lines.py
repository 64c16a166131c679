"""Text cut into lines as Python's tokenizer and the protocol cut it: at `\\n`, `\\r\\n` and `\\r`, and nowhere else."""

from __future__ import annotations

__all__ = ["is_meaningful", "split_lines"]

MEANINGFUL_LENGTH = 6


def split_lines(text: str) -> list[str]:
    """The lines without their ends; text that ends in a line end has an empty last line.

    `str.splitlines` would also cut at form feeds and Unicode separators, and so number the lines after them wrongly.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def is_meaningful(line: str) -> bool:
    """Whether a line says enough to be recognised elsewhere: a lone bracket, `else:` or a blank line does not."""
    stripped = line.strip()
    return len(stripped) >= MEANINGFUL_LENGTH and any(character.isalnum() for character in stripped)
