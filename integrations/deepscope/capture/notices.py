"""What the recorder says to the person at the terminal: one line for a trace saved, one warning for what went wrong."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["RecordingWarning", "announce", "warn"]

_SOURCE_WORDS = {
    "text": "source text included",
    "hash": "source as hashes only",
    "none": "source not included",
}


class RecordingWarning(UserWarning):
    """The recording is incomplete or absent; the run itself is not touched."""


def announce(path: Path, source: str) -> None:
    """Say on stderr where a trace lies and what it holds of the user's files."""
    sys.stderr.write(f"DeepScope: trace saved to {path} ({_SOURCE_WORDS[source]})\n")
    sys.stderr.flush()


def warn(message: str, error: BaseException | None = None) -> None:
    """Warn, attributing the warning to the caller's caller."""
    detail = f": {type(error).__name__}: {error}" if error is not None else ""
    warnings.warn(f"DeepScope: {message}{detail}", RecordingWarning, stacklevel=3)
