"""Text from a trace in Markdown: nothing in it is interpreted.

Names in a trace come from outside. Here every character that CommonMark or HTML could read as markup is escaped, so a
kernel called `[x](command:…)` or `<img …>` shows as these letters. No link is made but to a file that is there.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from deepscope.printable import clipped

_SPECIAL = re.compile(r"([\\`*_\[\]<>|&~$@])")
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""Where GitHub's Markdown finds addresses in plain words (https://github.github.com/gfm/#autolinks-extension-)."""
_BLOCK_START = re.compile(r"^(?=[#+=-])")
_BACKTICKS = re.compile(r"`+")
NAME_LENGTH = 120


def plain(text: str, length: int = NAME_LENGTH) -> str:
    """Text as it is, on one line, cut where it is longer than `length`."""
    escaped = _ADDRESS.sub(r"\\", _SPECIAL.sub(r"\\\1", clipped(text, length).lstrip()))
    return _BLOCK_START.sub(r"\\", escaped)


def code(text: str) -> str:
    """Text as code on one line, also in a table's cell."""
    shown = clipped(text, NAME_LENGTH)
    if not shown.strip():
        return ""
    if "|" in shown:
        # Inside a table a bar ends the cell even in code, and an escape would show in some editors.
        return plain(text)
    longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{blank}{shown}{blank}{fence}"


def link(text: str, uri: str, line: int) -> str:
    """A link to a line (from 1) of a file, by its URI with the fragment that editors read."""
    target = quote(uri, safe="/:%~.-_") + f"#L{line}"
    return f"[{plain(text)}]({target})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table whose first column is words and whose others are numbers; cells are Markdown already."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])
