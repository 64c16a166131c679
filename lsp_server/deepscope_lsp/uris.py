"""URIs of files and the paths that they name; names that are not UTF-8 survive both ways."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_DRIVE = re.compile(r"^/[A-Za-z]:")


def to_path(uri: str) -> str | None:
    """The absolute path of a `file:` URI; None for any other (a cell of a notebook, an unsaved text)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file":
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if "\0" in path:
        return None
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif _DRIVE.match(path):
        path = path[1:]
    return os.path.normpath(path)


def to_uri(path: str) -> str:
    """The URI of an absolute path."""
    return Path(path).as_uri()
