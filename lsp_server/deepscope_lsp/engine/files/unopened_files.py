"""Where recorded lines stand in files that are not open, which may have changed on disk since they ran."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from deepscope.remap import LineMap
from deepscope.trace.source_lines import source_lines

READ_LIMIT_BYTES = 16 << 20

Stamp = tuple[int, int]


class UnopenedFiles:
    """Line maps from recorded texts to files on disk, each made anew when its file has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, LineMap | None]] = {}

    def map_of(self, path: str, recorded: Sequence[str]) -> LineMap | None:
        """The map onto a file as it is now; None where nothing is to be mapped or the file cannot be read.

        Args:
            path: of the file here; one recorded text for each.
            recorded: the text that ran, line by line; empty where the trace has none.
        """
        stamp = _stamp(path)
        if stamp is None or not recorded:
            return None
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            lines = lines_on_disk(path)
            known = self._known[path] = stamp, None if lines is None else LineMap(recorded, lines)
        return known[1]


def lines_on_disk(path: str | None) -> list[str] | None:
    """The lines of a file; None where it is too large or cannot be read."""
    if path is None:
        return None
    try:
        if os.path.getsize(path) > READ_LIMIT_BYTES:  # noqa: PTH202 - the path may hold what `Path` refuses
            return None
        return source_lines(Path(path).read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above; asked for every file of a profile at every answer
    except (OSError, ValueError):
        return None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None
