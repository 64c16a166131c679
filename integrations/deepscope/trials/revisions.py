"""Two forms of a program's files: revisions of git in worktrees of their own, files, or the folder as it is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deepscope.errors import OptionError
from deepscope.trials.runs import Command, Filler, ProgramRuns, ScratchFolder, make_view
from deepscope.trials.session import Side


def root_of(working: Path, words: Sequence[str]) -> Path | None:
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
def sides(runs: ProgramRuns, before: str, after: str) -> Iterator[tuple[Side, Side]]:
    """Both sides; worktrees are removed at the end.

    Args:
        runs: whose folder holds the worktrees.
        before: a file that stands in the program's place, or a revision.
        after: the same; "" for the folder as it is.

    Raises:
        OptionError: git knows no such revision, or a file is to take the place of a module.
    """
    with ExitStack() as end:
        found = []
        for option, word in (("before", before), ("after", after)):
            fill = None
            if word and (runs.command.working / word).is_file():
                if runs.command.is_module:
                    raise OptionError(option, word, "is a file, which cannot take a module's place; name a revision")
                fill = _with_file(runs.command, runs.command.working / word)
            elif word:
                fill = end.enter_context(_with_revision(runs.command.root, runs.folder / option, option, word))
            found.append(Side(f"{option} ({word or 'this folder'})", fill=fill))
        yield found[0], found[1]


def _with_file(command: Command, file: Path) -> Filler:
    def fill(scratch: Path) -> ScratchFolder:
        target = Path(command.target_in(scratch))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
        return make_view(command.root, scratch)

    return fill


@contextmanager
def _with_revision(root: Path, folder: Path, option: str, revision: str) -> Iterator[Filler]:
    """A worktree of a revision, and beside its files those that git does not know: data, and what was built."""
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise OptionError(option, revision, "is neither a file here nor a revision that git knows")
    tracked = frozenset((_git(root, "ls-files", "-z") or "").split("\0"))
    if _git(root, "worktree", "add", "--detach", str(folder), commit.strip()) is None:
        raise OptionError(option, revision, f"git made no worktree of it in {folder}")

    def fill(scratch: Path) -> ScratchFolder:
        return make_view(root, scratch, without=tracked, view=make_view(folder, scratch))

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
