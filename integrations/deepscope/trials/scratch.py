"""Scratch folders that a program runs in, filled with the user's files or with those of a revision of git."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from deepscope.errors import OptionError

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


def fill_scratch(
    source: Path, target: Path, *, without: Collection[str] = (), scratch: ScratchFolder | None = None
) -> ScratchFolder:
    """Fill `target` with what is in `source`; what is there already stays.

    Folders are real, so what is written beside the program stays in the scratch folder. Small files are copies. Larger
    ones are links: Python's own `open` and `torch.save` put a copy, or the new file, in the place of a link that they
    write to (`one_run.py`). Folders of very many files are linked as a whole.

    Args:
        source: the user's folder.
        target: the scratch folder, which may exist.
        without: paths below `source` that are left out.
        scratch: of an earlier call that the limits go on from.
    """
    scratch = scratch or ScratchFolder(target)
    _fill(source, target, Path(), frozenset(without), scratch)
    return scratch


def _fill(source: Path, target: Path, below: Path, without: Collection[str], scratch: ScratchFolder) -> None:
    (target / below).mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError), os.scandir(source / below) as found:
        entries = sorted(found, key=lambda entry: (entry.is_dir(), entry.name))
        for entry in entries:
            path = below / entry.name
            if str(path) in without or entry.name in _LEFT_OUT or target in (source / path, *(source / path).parents):
                continue
            if not entry.is_dir():
                _put_file(source / path, target / path, scratch)
            elif entry.is_symlink() or _is_linked(source / path, scratch):
                if not os.path.lexists(target / path):
                    (target / path).symlink_to((source / path).resolve(), target_is_directory=True)
                    scratch.linked_folders.append(str(path))
            else:
                _fill(source, target, path, without, scratch)


def _is_linked(folder: Path, scratch: ScratchFolder) -> bool:
    if folder.name in _LINKED or (folder / "pyvenv.cfg").exists() or scratch.files >= MOST_FILES:
        return True
    with suppress(OSError), os.scandir(folder) as entries:
        return scratch.files + sum(1 for _ in entries) > MOST_FILES
    return True


def _put_file(source: Path, target: Path, scratch: ScratchFolder) -> None:
    scratch.files += 1
    if os.path.lexists(target):
        return
    with suppress(OSError):
        size = source.stat().st_size if source.is_file() else SMALL_BYTES + 1
        if size <= SMALL_BYTES and scratch.copied_bytes + size <= COPIED_BYTES:
            scratch.copied_bytes += size
            shutil.copy2(source, target)
        else:
            target.symlink_to(source.resolve())


Filler = Callable[[Path], ScratchFolder]
"""Fills a scratch folder with the files of one side of a comparison."""


def repository_root(working: Path, words: Sequence[str]) -> Path | None:
    """The root of the git repository, if a revision is among the words; None where all are files or none is given."""
    if all(not word or (working / word).is_file() for word in words):
        return None
    found = _git(working, "rev-parse", "--show-toplevel")
    if found is None:
        raise OptionError("before", words[0], "is no file here, and this folder is in no git repository")
    return Path(found.strip())


def is_in_git(folder: Path) -> bool:
    """Whether a folder is in a git repository that has a commit."""
    return _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") is not None


@contextmanager
def revision_files(root: Path, folder: Path, option: str, revision: str) -> Iterator[Filler]:
    """A worktree of a revision, and beside its files those that git does not know: data, and what was built."""
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise OptionError(option, revision, "is neither a file here nor a revision that git knows")
    tracked = frozenset((_git(root, "ls-files", "-z") or "").split("\0"))
    if _git(root, "worktree", "add", "--detach", str(folder), commit.strip()) is None:
        raise OptionError(option, revision, f"git made no worktree of it in {folder}")

    def fill(target: Path) -> ScratchFolder:
        return fill_scratch(root, target, without=tracked, scratch=fill_scratch(folder, target))

    try:
        yield fill
    finally:
        _git(root, "worktree", "remove", "--force", str(folder))


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails, or is not installed."""
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
