"""What the program writes: into its scratch folder in the place of links, and a list of what goes elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

_MOST = 50
"""Files outside the scratch folder that are listed."""
_WRITES = os.O_WRONLY | os.O_RDWR


class Writes:
    """Hears of each file that Python opens, before it does."""

    def __init__(self, folder: Path, others: tuple[str, ...]) -> None:
        self._folder = str(folder)
        self._ours = (self._folder + os.sep, *others, "/dev/", "/proc/", "/sys/")
        self._is_busy = False
        self.outside: dict[str, None] = {}

    def start(self) -> None:
        """Begin to hear; Python has no way to end it, and this process has nothing else to do."""
        sys.addaudithook(self._heard)
        save = torch.save

        def saved(thing: Any, file: Any, *arguments: Any, **keywords: Any) -> Any:
            if isinstance(file, (str, os.PathLike)):  # C++ opens it
                self._opened(os.fspath(file), is_emptied=True)
            return save(thing, file, *arguments, **keywords)

        torch.save = saved

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            is_written = any(one in mode for one in "wax+") if isinstance(mode, str) else bool(flags & _WRITES)
            if is_written and isinstance(path, (str, bytes, os.PathLike)):
                is_emptied = "w" in mode if isinstance(mode, str) else bool(flags & os.O_TRUNC)
                self._opened(os.fsdecode(path), is_emptied=is_emptied)
        elif event == "sqlite3.connect" and isinstance(arguments[0], (str, bytes)):
            self._opened(os.fsdecode(arguments[0]), is_emptied=False)

    def _opened(self, name: str, *, is_emptied: bool) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        try:
            with suppress(OSError, ValueError):
                self._prepare(os.path.abspath(name), is_emptied=is_emptied)  # noqa: PTH100  links stay links
        finally:
            self._is_busy = False

    def _prepare(self, path: str, *, is_emptied: bool) -> None:
        is_inside = path.startswith(self._folder + os.sep)
        if is_inside and os.path.islink(path):  # noqa: PTH114  called for each file that is written
            source = os.path.realpath(path)
            os.unlink(path)  # noqa: PTH108
            if not is_emptied:
                shutil.copyfile(source, path)
        elif len(self.outside) < _MOST:
            real = os.path.realpath(path)
            if not real.startswith(self._ours):
                self.outside[real] = None
