"""What the recorder says to the person at the terminal: one line for a trace saved, one warning for what went wrong."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deepscope.errors import DeepScopeError

_hearer: Callable[[str], None] | None = None
_is_announced = True

_SOURCE_WORDS = {
    "text": "source text included",
    "hash": "source as hashes only",
    "none": "source not included",
}


class RecordingWarning(UserWarning):
    """The recording is incomplete or absent; the run itself is not touched."""


def announce(path: Path, source: str) -> None:
    """Say on stderr where a trace lies and what it holds of the user's files."""
    if _is_announced:
        _say(f"trace saved to {path} ({_SOURCE_WORDS[source]})")


@contextmanager
def unannounced() -> Iterator[None]:
    """Say nothing of traces that are saved meanwhile: they go with what they are shown as."""
    global _is_announced
    _is_announced = False
    try:
        yield
    finally:
        _is_announced = True


def announce_recovered(path: Path) -> None:
    """Say on stderr where the trace of a recording lies that was killed before it could write it."""
    _say(f"trace of a recording that was killed saved to {path}")


def _say(message: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # a terminal that is gone, a stderr closed or never opened
        sys.stderr.write(f"DeepScope: {message}\n")
        sys.stderr.flush()


def hear(hearer: Callable[[str], None] | None) -> None:
    """Tell `hearer`, too, what is warned of from here on: whoever asked for a window is not at the job's terminal."""
    global _hearer
    _hearer = hearer


def warn(message: str, error: BaseException | None = None) -> None:
    """Warn, attributing the warning to the caller's caller; never raises.

    Where warnings are errors (`-W error`) it is logged instead: the run is not to end for it.
    """
    detail = f": {error_words(error)}" if error is not None else ""
    text = f"DeepScope: {message}{detail}"
    if _hearer is not None:
        _hearer(f"{message}{detail}")
    try:
        warnings.warn(text, RecordingWarning, stacklevel=3)
    except RecordingWarning:
        logging.getLogger("deepscope").warning(text)


def error_words(error: BaseException) -> str:
    """The class and text of an exception, of ours the text alone; one of the user's may be unable to say its text."""
    try:
        if isinstance(error, DeepScopeError):
            return str(error)
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - as above
        return type(error).__name__
