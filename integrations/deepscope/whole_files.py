"""Files that the user names, written beside their place and put there whole: what fails leaves no half file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_PREFIX = ".deepscope-"
_OPEN_FILES = (Path("/dev"), Path("/proc"))
"""Names below them, `/dev/stdout` say, may be those of a file that another process writes to as well."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to: it takes the place of `path` at the end, and is removed where writing fails.

    A device, a pipe, and a file whose folder takes no new ones are written to themselves; a link keeps its target.
    """
    target = Path(os.path.realpath(path))
    is_special = path.exists() and not path.is_file()
    is_open = any(folder in path.absolute().parents for folder in _OPEN_FILES)
    if is_special or is_open or _is_closed(target.parent):
        yield path
        return
    with TemporaryDirectory(dir=target.parent, prefix=_PREFIX) as beside:
        part = Path(beside) / target.name
        yield part
        _put(part, target)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """A folder within `folder`, which is made, to write files to: they move up at the end, as those of `whole_file`."""
    folder.mkdir(parents=True, exist_ok=True)
    if _is_closed(folder):
        yield folder
        return
    with TemporaryDirectory(dir=folder, prefix=_PREFIX) as beside:
        yield Path(beside)
        for part in Path(beside).iterdir():
            _put(part, Path(os.path.realpath(folder / part.name)))


def _is_closed(folder: Path) -> bool:
    return folder.is_dir() and not os.access(folder, os.W_OK)


def _put(part: Path, target: Path) -> None:
    """Has a finished file take the place of another, whose mode, owner and further names stay."""
    if target.exists():
        old, new = target.stat(), part.stat()
        is_shared = old.st_nlink > 1 or (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid)
        if is_shared or not os.access(target, os.W_OK):
            shutil.copyfile(part, target)
            return
        shutil.copymode(target, part)
    try:
        part.replace(target)
    except OSError:  # the target is a mount of its own, as a file of a container may be
        shutil.copyfile(part, target)
