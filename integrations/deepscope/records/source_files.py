"""Source files: their paths as they are shown, and their texts cut into lines."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import msgspec

_INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")


def short_path(path: str, root: str = "") -> str:
    """A path relative to the recorded project root, else to the current folder, else to the installed packages."""
    if root and (inner := path_below(path, root)):
        return inner
    with suppress(OSError):  # the current folder may have been removed
        # Compared as text, with the trace's own separators.
        if inner := path_below(path, os.getcwd()):  # noqa: PTH109
            return inner
    return installed_path(path)


def installed_path(path: str) -> str:
    """The path from the installed packages on; as it is where it lies elsewhere."""
    return _INSTALLED.sub("", path)


def base_name(path: str) -> str:
    """The last part of a path of any system: `train.py`."""
    return path.replace("\\", "/").rpartition("/")[2]


def short_place(file: str, line: int, root: str = "") -> str:
    """`train.py:46`: a line, with its file as `short_path` has it."""
    return f"{short_path(file, root)}:{line}"


def path_below(path: str, root: str) -> str:
    """The path from a folder on; "" where it does not lie in it. Compared as text, on any system."""
    root = root.rstrip("/\\")
    if path.startswith(root) and path[len(root) : len(root) + 1] in {"/", "\\"}:
        return path[len(root) + 1 :]
    return ""


def source_lines(text: str) -> list[str]:
    """The lines without their ends; text that ends in a line end has an empty last line.

    `str.splitlines` would also cut at form feeds and Unicode separators, and so number the lines after them wrongly.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


class SourceFile(msgspec.Struct, kw_only=True):
    """One user file as it was when it ran."""

    sha256: str = ""
    text: str | None = None
