"""Files where traces lie: local paths and fsspec URLs, listed and opened alike."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from deepscope.errors import NotATraceError, NoTraceError, TraceError
from deepscope.trace.kineto.remote import filesystem_of, is_url, open_remote, remote_errors

__all__ = [
    "NAMED_TRACE_ENDINGS",
    "SKIPPED_FOLDERS",
    "TRACE_ENDINGS",
    "TraceFile",
    "is_url",
    "list_files",
    "local_file",
    "open_file",
    "single_file",
]

TRACE_ENDINGS = (".json", ".gz", ".trace")
"""Endings of the file names that are looked into."""

NAMED_TRACE_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
"""How torch and DeepScope name traces."""

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders that are skipped, like hidden ones and virtual environments: large, and without traces."""

_TIMESTAMP = re.compile(r"\.(\d{10,19})\.(?:pt\.trace\.)?json(?:\.gz)?$")


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file as its folder lists it."""

    path: str
    """Absolute, or a URL."""
    size_bytes: int
    mtime_ns: int
    """0 where a remote store does not say."""
    token: str = ""
    """A remote store's own mark of this version of the file (an ETag, say)."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return re.split(r"[/\\]" if os.sep == "\\" else "/", self.path)[-1]

    @property
    def folder(self) -> str:
        """The path without its last part."""
        return self.path[: -len(self.name)]

    @property
    def is_named_trace(self) -> bool:
        """Whether it is named as torch and DeepScope name traces: one of these is a trace, even if a broken one."""
        return self.name.endswith(NAMED_TRACE_ENDINGS)

    @property
    def named_ns(self) -> int:
        """When the trace was written, since the epoch, from torch's `<worker>.<time>.pt.trace.json`; 0 unknown.

        torch wrote milliseconds before 1.13 and nanoseconds since.
        """
        match = _TIMESTAMP.search(self.name)
        if match is None:
            return 0
        digits = match[1]
        return int(digits) * 10 ** max(0, 19 - len(digits)) if len(digits) in {10, 13, 16, 19} else 0


def single_file(path: str) -> TraceFile | None:
    """The file at `path`; None when a folder is there.

    Raises:
        NoTraceError: nothing is there.
        NotATraceError: a device, a pipe or a socket is there.
        TraceError: it may not be read.
    """
    if is_url(path):
        return _single_remote(path)
    try:
        status = os.stat(path)  # noqa: PTH116 - `Path` would fold `a//b`, and costs start-up time
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoTraceError(f"{path}: no such file or folder") from error
    except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
        raise TraceError(f"{path}: cannot be read: {_reason(error)}") from error
    if stat.S_ISDIR(status.st_mode):
        return None
    if not stat.S_ISREG(status.st_mode):
        raise NotATraceError(
            f"{path}: neither a file nor a folder (a device or a pipe); save the trace to a file first"
        )
    return TraceFile(path=os.path.abspath(path), size_bytes=status.st_size, mtime_ns=status.st_mtime_ns)  # noqa: PTH100


def local_file(path: str) -> TraceFile | None:
    """The regular file at a path of this machine; None where there is none, or none that can be asked about."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return TraceFile(path, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def list_files(path: str) -> list[TraceFile]:
    """Every file below a folder that is named like `TRACE_ENDINGS`, links followed, each folder once.

    Hidden files and folders, `SKIPPED_FOLDERS` and virtual environments are left out, unless `path` is one itself.

    Raises:
        TraceError: the folder may not be read.
    """
    if is_url(path):
        return _list_remote(path)
    try:
        os.scandir(path).close()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {_reason(error)}") from error
    return list(_walk(os.path.abspath(path)))  # noqa: PTH100


@contextmanager
def open_file(file: TraceFile) -> Iterator[IO[bytes]]:
    """Opens a file for reading its bytes as they are stored."""
    if not is_url(file.path):
        with Path(file.path).open("rb") as stream:
            yield stream
        return
    with remote_errors(file.path):
        remote = open_remote(file.path)
        with remote.stream:
            yield remote.stream


def _walk(top: str) -> Iterator[TraceFile]:
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            status = os.stat(folder)  # noqa: PTH116 - called for every folder at every look
            if (status.st_dev, status.st_ino) in seen:  # a link to a folder above or beside this one
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (OSError, ValueError):  # removed meanwhile, or not for us to read
            continue
        if folder != top and any(entry.name == "pyvenv.cfg" for entry in listed):
            continue
        below = []
        for entry in listed:
            if entry.name.startswith("."):
                continue
            if entry.name.endswith(TRACE_ENDINGS):
                if (file := local_file(entry.path)) is not None:
                    yield file
            elif entry.name not in SKIPPED_FOLDERS and _is_folder(entry):
                below.append(entry.path)
        waiting.extend(reversed(below))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _single_remote(url: str) -> TraceFile | None:
    with remote_errors(url):
        fs, path = filesystem_of(url)
        info = fs.info(path)
        return None if info["type"] == "directory" else _remote_file(url, info)


def _list_remote(url: str) -> list[TraceFile]:
    with remote_errors(url):
        fs, path = filesystem_of(url)
        outer = url[url.index("::") :] if "::" in url else ""  # `zip://inner::outer.zip`
        found = cast(dict[str, dict[str, Any]], fs.find(path, detail=True))
        return [
            _remote_file(fs.unstrip_protocol(name) + outer, info)
            for name, info in found.items()
            if name.endswith(TRACE_ENDINGS)
        ]


def _remote_file(url: str, info: dict[str, Any]) -> TraceFile:
    written = info.get("mtime") or info.get("LastModified") or info.get("updated") or info.get("last_modified") or 0
    seconds = written.timestamp() if isinstance(written, datetime) else written
    return TraceFile(
        path=url,
        size_bytes=int(info.get("size") or 0),
        mtime_ns=int(seconds * 10**9) if isinstance(seconds, (int, float)) else 0,
        token=str(info.get("ETag") or info.get("etag") or info.get("md5Hash") or written or ""),
    )


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
