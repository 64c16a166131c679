"""The user's files as they are in a trace: path, hash and text."""

from __future__ import annotations

import hashlib
import linecache
import os
import subprocess
import tokenize
import zipimport
import zlib
from collections.abc import Collection, Iterable
from importlib.util import decode_source
from pathlib import Path

from deepscope.trace.format.header import File, Git

_LARGEST_BYTES = 4 << 20
"""Generated tables of data are no source that anybody reads; above this a file is listed with its hash alone."""


def describe_files(
    paths: Iterable[str], source: str, *, users: Collection[str], libraries: Collection[str] = ()
) -> list[File]:
    """The files of a header. One of a library's lines has no text, but its hash; any other has its path alone."""

    def source_of(path: str) -> str:
        if path in users or source == "none":
            return source if path in users else "none"
        return "hash" if path in libraries else "none"

    return [describe_file(path, source_of(path)) for path in paths]


def describe_file(path: str, source: str) -> File:
    """Path, with `source="hash"` the SHA-256 of the text in UTF-8, with `source="text"` the text as well."""
    described = File(path)
    text = source_text(path) if source != "none" else None
    if text is not None:
        encoded = text.encode("utf-8", "surrogatepass")
        described.sha256 = hashlib.sha256(encoded).hexdigest()
        if source == "text" and len(encoded) <= _LARGEST_BYTES:
            described.text = text
    return described


def source_text(path: str) -> str | None:
    """The text of a file, also of one in an archive, or of a notebook's cell, which only `linecache` has; else None."""
    try:
        with tokenize.open(path) as stream:  # in the encoding that the file declares, as Python read it
            return stream.read()
    except NotADirectoryError:
        return _archived_text(path)
    except (OSError, SyntaxError, ValueError):  # UnicodeError is one; a name with a null character is another
        pass
    cached = linecache.cache.get(path)
    if cached is not None and len(cached) == 4 and not Path(path).exists():
        return "".join(cached[2])
    return None


def _archived_text(path: str) -> str | None:
    """The text of a file in a ZIP archive that Python imports from; None where there is none."""
    try:
        return decode_source(zipimport.zipimporter(str(Path(path).parent)).get_data(path))
    except (ImportError, OSError, SyntaxError, ValueError, zlib.error):
        return None


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
