"""Text cut into lines as Python's tokenizer and editors cut it: at `\\n`, `\\r\\n` and `\\r`, and nowhere else."""

from __future__ import annotations


def source_lines(text: str) -> list[str]:
    """The lines without their ends; text that ends in a line end has an empty last line.

    `str.splitlines` would also cut at form feeds and Unicode separators, and so number the lines after them wrongly.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")
