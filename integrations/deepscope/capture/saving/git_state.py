"""The commit that the user's code stands at, asked of git itself within a time limit."""

from __future__ import annotations

import os
import subprocess

from deepscope.trace.format.header import Git

_TIMEOUT_S = 5.0


def git_state(folder: str) -> Git | None:
    """Commit, and whether tracked files differ from it; None outside a repository, without git or with a slow one."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Git(commit, dirty=changes is None or bool(changes))


def _git(folder: str, *arguments: str) -> str | None:
    # Without optional locks git writes nothing into the user's repository, not even a fresher index.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        answer = subprocess.run(  # noqa: S603 - fixed words and a folder, no shell
            ["git", "-C", folder, *arguments],  # noqa: S607 - the git that the user's PATH names
            capture_output=True,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.decode("utf-8", "replace").strip()
