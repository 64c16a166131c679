"""The folder that traces go to: made where it is missing, and kept out of version control where it is our own."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from deepscope.errors import RecorderError

DEFAULT_FOLDER = "deepscope_logs"
"""Where traces go unless a folder is given; only a folder of this name gets a `.gitignore`."""

_FULL_BYTES = 1 << 20
"""With less than this the smallest trace does not fit beside torch's export."""

_IGNORE_ALL = "# Traces are large, and made anew with each run.\n*\n"


def current_folder() -> Path:
    """The working folder; where that was removed, the place that it had."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.environ.get("PWD", os.sep))


def seen_from_here(folder: Path) -> Path:
    """`folder` as the working folder of now has it; unchanged where that was removed (`check_folder` refuses it)."""
    try:
        return folder.absolute()
    except OSError:
        return folder


def make_trace_folder(folder: Path) -> None:
    """Makes a folder with those above it; a new `deepscope_logs` gets a `.gitignore` over all that it holds."""
    own = next((one for one in (folder, *folder.parents) if one.name == DEFAULT_FOLDER), None)
    is_new = own is not None and not own.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if own is not None and is_new:
        with suppress(OSError), (own / ".gitignore").open("x", encoding="utf-8") as stream:
            stream.write(_IGNORE_ALL)


def check_folder(folder: Path) -> None:
    """Raises `RecorderError` if no trace could be written to `folder`, which need not be there yet; leaves nothing."""
    try:
        whole = folder.absolute()
        near = next(one for one in (whole, *whole.parents) if one.exists())
        with tempfile.TemporaryFile(dir=near):  # rights alone say nothing of a file system that is read-only
            pass
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RecorderError(f"{folder}: traces cannot be written there ({reason}); choose another folder") from None
    check_space(near)


def check_space(folder: Path) -> None:
    """Raises `RecorderError` if the disk of `folder` is full; torch would only say that a file is missing."""
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return
    if free_bytes < _FULL_BYTES:
        raise RecorderError(f"the disk is full: {free_bytes // 1024:,} KiB are free in {folder}")
