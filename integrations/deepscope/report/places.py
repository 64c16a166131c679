"""Where a line stands, worded for people: short paths, and the source text that ran."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

from deepscope.printable import printable
from deepscope.records import Line, PartKind, Profile
from deepscope.report.event_names import readable
from deepscope.trace.source_lines import source_lines

LARGEST_BYTES = 32 << 20
"""Of a source file that is read."""


def place_name(kind: PartKind, name: str) -> str:
    """What a part of a line's work is, safe to print."""
    if kind == "other":
        return "(other)"
    return printable(readable(name) if kind in {"operator", "kernel"} else name)


class Sources:
    """Source texts as they ran: from the trace, else from the file itself when its hash is the recorded one."""

    def __init__(self, profile: Profile) -> None:
        self._files = profile.files
        self._lines: dict[str, list[str]] = {}

    def text(self, line: Line) -> str:
        """The source line without its indentation; "" where what ran is not known for certain."""
        if line.text is not None:
            return line.text.strip()
        texts = self.whole(line.file)
        return texts[line.line - 1].strip() if 0 < line.line <= len(texts) else ""

    def whole(self, path: str) -> list[str]:
        """All lines of a file; none where what ran is not known for certain."""
        texts = self._lines.get(path)
        if texts is None:
            texts = self._lines[path] = source_lines(self._read(path))
        return texts

    def _read(self, path: str) -> str:
        recorded = self._files.get(path)
        if recorded is None:
            return ""
        if recorded.text is not None:
            return recorded.text
        try:
            content = _content(Path(path))
        except (OSError, ValueError):
            return ""
        same = hashlib.sha256(content).hexdigest() == recorded.sha256
        return content.decode("utf-8", "replace") if same else ""


def _content(path: Path) -> bytes:
    """A file's bytes; none of what a trace may name to do harm: a device, a pipe, something huge."""
    found = path.stat()
    return path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_BYTES else b""
