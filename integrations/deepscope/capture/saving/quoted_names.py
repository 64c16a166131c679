"""Quotes in the names of spans: Kineto's writer leaves them as they are, and its file is then no JSON."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(rb'("name": ")(.*)(",\s*(?:"pid":.*)?)$', re.DOTALL)
"""In a line of an export: up to 2.1 the whole head of an event stands on one line, later the name alone."""


def escape_names(export: Path) -> int:
    """Escape the quotes within the names of events in torch's own export; returns how many names had any.

    Raises `OSError` when the file cannot be read or written anew.
    """
    repaired = export.with_name(f"{export.name}.tmp")
    count = 0
    with export.open("rb") as lines, repaired.open("wb") as out:
        for line in lines:
            found = _NAME.search(line)
            if found is not None and b'"' in found[2]:
                count += 1
                line = line[: found.start()] + found[1] + found[2].replace(b'"', b'\\"') + found[3]  # noqa: PLW2901
            out.write(line)
    repaired.replace(export)
    return count
