"""A scratch folder that looks like the folder a program is run in, made anew for each run.

Folders are real, so what is written beside the program stays in the scratch folder. Small files are copies. Larger ones
are links: Python's own `open` and `torch.save` put a copy, or the new file, in the place of a link that they write to
(`child/seen.py`). Folders of very many files are linked as a whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SMALL_BYTES = 1 << 20
COPIED_BYTES = 1 << 27
"""Of all small files together; the others are links."""
MOST_FILES = 5_000
"""A folder's subfolder that would exceed it is a link, and so is every one behind it."""
_LINKED = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "site-packages"})
_LEFT_OUT = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})


@dataclass
class ScratchFolder:
    """What became of a folder's files."""

    folder: Path
    """The scratch folder."""
    linked_folders: list[str] = field(default_factory=list)
    """Folders that are links as a whole: what the program writes there is written to the user's own."""
    files: int = 0
    copied_bytes: int = 0


def make_view(
    source: Path, target: Path, *, without: Collection[str] = (), view: ScratchFolder | None = None
) -> ScratchFolder:
    """Fill `target` with what is in `source`; what is there already stays.

    Args:
        source: the user's folder.
        target: the scratch folder, which may exist.
        without: paths below `source` that are left out.
        view: of an earlier call that the limits go on from.
    """
    view = view or ScratchFolder(target)
    _fill(source, target, Path(), frozenset(without), view)
    return view


def _fill(source: Path, target: Path, below: Path, without: Collection[str], view: ScratchFolder) -> None:
    (target / below).mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError), os.scandir(source / below) as found:
        entries = sorted(found, key=lambda entry: (entry.is_dir(), entry.name))
        for entry in entries:
            path = below / entry.name
            if str(path) in without or entry.name in _LEFT_OUT or target in (source / path, *(source / path).parents):
                continue
            if not entry.is_dir():
                _put_file(source / path, target / path, view)
            elif entry.is_symlink() or _is_linked(source / path, view):
                if not os.path.lexists(target / path):
                    (target / path).symlink_to((source / path).resolve(), target_is_directory=True)
                    view.linked_folders.append(str(path))
            else:
                _fill(source, target, path, without, view)


def _is_linked(folder: Path, view: ScratchFolder) -> bool:
    if folder.name in _LINKED or (folder / "pyvenv.cfg").exists() or view.files >= MOST_FILES:
        return True
    with suppress(OSError), os.scandir(folder) as entries:
        return view.files + sum(1 for _ in entries) > MOST_FILES
    return True


def _put_file(source: Path, target: Path, view: ScratchFolder) -> None:
    view.files += 1
    if os.path.lexists(target):
        return
    with suppress(OSError):
        size = source.stat().st_size if source.is_file() else SMALL_BYTES + 1
        if size <= SMALL_BYTES and view.copied_bytes + size <= COPIED_BYTES:
            view.copied_bytes += size
            shutil.copy2(source, target)
        else:
            target.symlink_to(source.resolve())
