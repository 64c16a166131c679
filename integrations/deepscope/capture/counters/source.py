"""A source of counters: some series, and their values whenever it is asked."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from deepscope.capture.process_hooks.open_recorders import abandoned_in_children


class NoSensorError(Exception):
    """There is nothing to count here; the message says why."""


class Series(NamedTuple):
    """One number over time."""

    track: str
    """One of `trace.format.counters.TRACKS`."""
    name: str
    """Within its track."""
    is_total: bool = False
    """What is read grows; its growth in a second is what counts."""
    scale: float = 1.0
    """To the track's unit."""
    most: float = math.inf
    """What it cannot be above: CPU time is counted in ticks of 10 ms, so that short stretches seem to have more."""
    may_vanish: bool = False
    """It is left out of a trace in which it is 0 all the time; a total always is."""


class CounterSource(Protocol):
    """Opened once; its constructor raises `NoSensorError` where there is nothing to count."""

    @property
    def series(self) -> Sequence[Series]:
        """What it counts."""

    def read(self) -> Sequence[float]:
        """What each series has at this moment; NaN for none. Raises `OSError`, too, where a sensor goes."""

    def close(self) -> None:
        """Lets go of what is open."""


class KernelFile:
    """A file of /proc or /sys that is read again and again: it is kept open, and each read makes it anew."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise NoSensorError(f"{path}: {error.strerror or error}") from None
        _open_files.add(self)

    def read(self) -> bytes:
        parts = []
        at = 0
        while part := os.pread(self._descriptor, 1 << 16, at):
            parts.append(part)
            at += len(part)
            if len(part) < 1 << 11:  # whole records come, as many as fit into a page or more
                break
        return b"".join(parts)

    def close(self) -> None:
        """Close it; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def abandon(self) -> None:
        """In a forked child, where nobody reads it: close it."""
        self.close()


_open_files: weakref.WeakSet[KernelFile] = abandoned_in_children()


def text_of(path: Path) -> str:
    """The text of a small file without the spaces around it; "" where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return ""


def number_in(path: Path, default: int = -1) -> int:
    """The whole number in a small file."""
    try:
        return int(text_of(path))
    except ValueError:
        return default
