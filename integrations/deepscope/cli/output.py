"""Where a command's result goes: standard output or a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deepscope.errors import DeepScopeError

__all__ = ["emit"]


def emit(text: str, path: str | None) -> None:
    """Writes to a file, or to standard output; a reader that has gone (`| head`) ends the command in silence.

    Raises:
        DeepScopeError: it cannot be written (a full disk, no such folder, no right to).
    """
    try:
        if path is not None and path != "-":
            Path(path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
            return
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at its end: to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise DeepScopeError(f"{path or 'standard output'}: cannot be written: {error.strerror or error}") from error
