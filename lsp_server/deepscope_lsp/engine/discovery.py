"""Traces in the configured places: found quickly, by their names alone, the newest first."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deepscope.store.files import TraceFile, is_url

__all__ = ["TRACE_SUFFIXES", "Places", "TraceStamp", "find_stamps", "lies_below", "resolve_places"]

TRACE_SUFFIXES = (".pt.trace.json", ".pt.trace.json.gz")
DEPTH_LIMIT = 6
"""Folders below a configured one that are looked into: `lightning_logs/version_12/…`."""
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "checkpoints"})
GLOB_FOLDER_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Places:
    """Where one workspace folder's traces are looked for."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    """Named one by one: taken whatever they are called."""
    urls: tuple[str, ...] = ()
    """Remote folders: loaded when asked for, never polled."""


@dataclass(frozen=True, slots=True)
class TraceStamp:
    """A trace file as it was seen: a change of size or time is another version of it."""

    path: str
    size_bytes: int
    mtime_ns: int

    @property
    def time_ns(self) -> int:
        """When it was recorded, as its name says, else when it was written."""
        return TraceFile(self.path, self.size_bytes, self.mtime_ns).recorded_ns or self.mtime_ns


def resolve_places(entries: Sequence[str], root: str) -> Places:
    """What the setting `deepscope.traces` means in one workspace folder: folders, files, globs and URLs."""
    folders: list[str] = []
    files: list[str] = []
    urls: list[str] = []
    for entry in entries:
        if is_url(entry):
            urls.append(entry)
            continue
        path = os.path.join(root, Path(entry).expanduser())  # noqa: PTH118 - an absolute entry stands as it is
        matches = _expand(path) if any(sign in entry for sign in "*?[") else [path]
        for match in matches:
            (files if os.path.isfile(match) else folders).append(os.path.normpath(match))  # noqa: PTH113
    return Places(tuple(dict.fromkeys(folders)), tuple(dict.fromkeys(files)), tuple(urls))


def lies_below(folder: str, root: str) -> bool:
    """Whether a folder is really below another, where an editor watches: not behind a link that leads out of it."""
    real_folder, real_root = (os.path.normcase(os.path.realpath(one)) for one in (folder, root))
    return real_folder.startswith(os.path.join(real_root, ""))  # noqa: PTH118


def find_stamps(places: Places) -> list[TraceStamp]:
    """All traces that are there now, the newest first; what cannot be read is not there."""
    found: dict[str, TraceStamp] = {}
    for path in places.files:
        if (stamp := _stamp(path)) is not None:
            found[path] = stamp
    for folder in places.folders:
        for path in _walk(folder, 0, set()):
            if path not in found and (stamp := _stamp(path)) is not None:
                found[path] = stamp
    return sorted(found.values(), key=lambda stamp: (-stamp.time_ns, stamp.path))


def _walk(folder: str, depth: int, seen: set[tuple[int, int]]) -> Iterator[str]:
    try:
        status = os.stat(folder)  # noqa: PTH116 - called for every folder at every poll
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except (OSError, ValueError):
        return
    if (status.st_dev, status.st_ino) in seen:  # a link to a folder above or beside
        return
    seen.add((status.st_dev, status.st_ino))
    for entry in listed:
        if entry.name.endswith(TRACE_SUFFIXES):
            yield entry.path
        elif depth < DEPTH_LIMIT and not entry.name.startswith(".") and entry.name not in SKIPPED and _is_folder(entry):
            yield from _walk(entry.path, depth + 1, seen)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _stamp(path: str) -> TraceStamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return TraceStamp(path, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _expand(pattern: str) -> list[str]:
    """Folders and files that a glob names; `**` does not go into hidden folders, environments and packages."""
    anchor, *parts = Path(pattern).parts
    found = [anchor]
    for part in parts:
        if part == "**":
            found = [below for folder in found for below in _folders_below(folder)]
        elif any(sign in part for sign in "*?["):
            found = [os.path.join(folder, name) for folder in found for name in _names(folder, part)]  # noqa: PTH118
        else:
            found = [os.path.join(folder, part) for folder in found]  # noqa: PTH118
    return [path for path in found if os.path.exists(path)]  # noqa: PTH110


def _folders_below(top: str) -> list[str]:
    folders = []
    for folder, names, files in os.walk(top):
        if "pyvenv.cfg" in files:
            names.clear()
            continue
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in SKIPPED)
        folders.append(folder)
        if len(folders) >= GLOB_FOLDER_LIMIT:
            break
    return folders


def _names(folder: str, pattern: str) -> list[str]:
    try:
        return sorted(fnmatch.filter(os.listdir(folder), pattern))  # noqa: PTH208
    except OSError:
        return []
