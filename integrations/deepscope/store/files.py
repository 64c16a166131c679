"""Files where traces lie: local paths and fsspec URLs, listed and opened alike, and how remote stores are reached."""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from deepscope.errors import NotATraceError, NoTraceError, TraceError
from deepscope.trace.kineto.remote import (
    filesystem_of,
    first_of_page,
    is_url,
    is_web,
    open_remote,
    reached_by,
    reason_of,
    remote_errors,
)

TRACE_ENDINGS = (".json", ".gz", ".trace")
"""Endings of the file names that are looked into."""

NAMED_TRACE_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
"""How torch and DeepScope name traces."""

_ASCEND_TRACES = frozenset({"trace_view.json", "trace_view.json.gz"})
"""How Ascend's profiler names them, in a folder a rank."""

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders that are skipped, like hidden ones and virtual environments: large, and without traces."""

REMOTE_AT_ONCE = 32
"""Remote files that are asked about at the same time."""

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
    def has_version(self) -> bool:
        """Whether another content would be told from this one: a store that says neither time nor mark may change it
        unseen."""
        return bool(self.mtime_ns or self.token) or not is_url(self.path)

    @property
    def name(self) -> str:
        """The last part of the path; of a file in an archive, of its path there."""
        return re.split(r"[/\\]" if os.sep == "\\" else "/", self._own_path)[-1]

    @property
    def folder(self) -> str:
        """The path without its last part; of a file in an archive, its path there."""
        return self._own_path.removesuffix(self.name)

    @property
    def archive(self) -> str:
        """What stands behind the path of a file in an archive (`::/a/logs.zip`); "" of any other."""
        return self.path.partition(self._link)[2]

    @property
    def _own_path(self) -> str:
        """Without the archive, and without the query of a web address (a signature, say)."""
        link = self._link
        return link.partition("?")[0] if link.startswith(("http://", "https://")) else link

    @property
    def _link(self) -> str:
        """The first link of a URL's chain that is an address (`simplecache::` is none); any other path as it is."""
        return next((link for link in self.path.split("::") if "://" in link), self.path)

    @property
    def is_named_trace(self) -> bool:
        """Whether it is named as recorders name traces: one of these is a trace, even if a broken one."""
        return self.name.endswith(NAMED_TRACE_ENDINGS) or self.name in _ASCEND_TRACES

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
        raise TraceError(f"{path}: cannot be read: {reason_of(error)}") from error
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


def list_files(path: str, endings: tuple[str, ...] = TRACE_ENDINGS) -> list[TraceFile]:
    """Every file below a folder that is named with one of the endings, links followed, each folder once.

    Hidden files and folders, `SKIPPED_FOLDERS` and virtual environments are left out, unless `path` is one itself.

    Raises:
        TraceError: the folder may not be read.
    """
    if is_url(path):
        return _list_remote(path, endings)
    try:
        os.scandir(path).close()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {reason_of(error)}") from error
    return list(_walk(os.path.abspath(path), endings))  # noqa: PTH100


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


def first_bytes(file: TraceFile, count: int) -> bytes:
    """The first bytes of a file as they are stored: of a remote one these alone, in one request."""
    if not is_url(file.path):
        with Path(file.path).open("rb") as stream:
            return stream.read(count)
    with remote_errors(file.path):
        fs, path = filesystem_of(file.path)
        end = min(count, file.size_bytes or count)
        return (
            first_of_page(fs, path, end) if is_web(fs) else cast("bytes", fs.cat_file(path, start=0, end=end))[:count]
        )


def _walk(top: str, endings: tuple[str, ...]) -> Iterator[TraceFile]:
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
            if entry.name.endswith(endings):
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


def _asked_anew(url: str) -> tuple[Any, str]:
    """The filesystem of a URL without the listings that it remembers: a server would never see what is new."""
    fs, path = filesystem_of(url)
    fs.invalidate_cache()
    return fs, path


def _single_remote(url: str) -> TraceFile | None:
    with remote_errors(url):
        fs, path = _asked_anew(url)
        info = fs.info(path)
        # A web server's folder is a page of links; older fsspec does not tell what is a page.
        kind = info.get("mimetype") or ("text/html" if is_web(fs) and path.endswith("/") else "")
        is_page = str(kind).startswith("text/html")
        file = _remote_file(url, info)
        if is_page and file.name.endswith(TRACE_ENDINGS) and not str(info.get("url")).endswith("/"):
            raise NotATraceError(
                f"{url}: a web page (to sign in, or about the file?); give the address of the file itself"
            )
        return None if info["type"] == "directory" or is_page else file


def _list_remote(url: str, endings: tuple[str, ...]) -> list[TraceFile]:
    with remote_errors(url):
        fs, path = _asked_anew(url)
        found = cast("dict[str, dict[str, Any]]", _pages(fs, path) if is_web(fs) else fs.find(path, detail=True))
        listed = [
            (name, _remote_file(_below(url, fs, path, name), info))
            for name, info in found.items()
            if name.endswith(endings)
        ]
        bare = [place for place, (_, file) in enumerate(listed) if not file.has_version]
        files = [file for _, file in listed]
        if bare:  # a web server's page of links tells neither size nor time
            with ThreadPoolExecutor(min(len(bare), REMOTE_AT_ONCE), "deepscope-info") as pool:
                infos = pool.map(lambda place: _info(fs, listed[place][0]), bare)
                for place, info in zip(bare, infos, strict=True):
                    files[place] = _remote_file(files[place].path, info)
        return files


def _below(url: str, fs: Any, path: str, name: str) -> str:
    """The URL of a file that the listing of a folder names, by the folder's own URL.

    A path of a filesystem may lack what its URL needs: the host (`webhdfs://host:9870/runs`), the account.
    """
    folder = path.rstrip("/")
    inner, chained, outer = url.partition("::")  # `zip://inner::outer.zip`
    if folder and not name.startswith(f"{folder}/"):
        return str(fs.unstrip_protocol(name)) + chained + outer
    protocol, separator, place = inner.partition("://")
    if folder and not separator:  # `simplecache::s3://bucket/run` has its folder in what follows
        return f"{inner}::{_below(outer, fs, path, name)}"
    if place.strip("/"):
        place = place.rstrip("/") + "/"
    return f"{protocol}://{place}{name[len(folder) :].lstrip('/')}{chained}{outer}"


def _pages(fs: Any, top: str) -> dict[str, dict[str, Any]]:
    """Every file below a folder of a web server.

    A link to a folder above leads round and round there: a folder with all the names of one above it is the same. One
    that may not be read is left out.
    """
    found: dict[str, dict[str, Any]] = {}
    waiting: list[tuple[str, tuple[frozenset[str], ...]]] = [(top, ())]
    while waiting:
        folder, above = waiting.pop()
        try:
            entries = {entry["name"]: entry for entry in fs.ls(folder, detail=True)}
        except Exception:
            if folder == top:
                raise
            continue
        names = frozenset(name.removeprefix(folder.rstrip("/")) for name in entries)
        if names in above:
            continue
        for name, entry in entries.items():
            if entry["type"] == "directory":
                waiting.append((name, (*above, names)))
            else:
                found[name] = entry
    return found


def _info(fs: Any, name: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", fs.info(name))
    except Exception:  # noqa: BLE001  reading it tells what is wrong
        return {}


_TIMES = ("mtime", "LastModified", "Last-Modified", "updated", "last_modified", "created")
_MARKS = ("ETag", "etag", "md5Hash", "Content-MD5", "Digest", "CRC")


def _remote_file(url: str, info: dict[str, Any]) -> TraceFile:
    written = next((info[key] for key in _TIMES if info.get(key)), 0)
    seconds: Any = written
    if isinstance(written, datetime):
        seconds = written.timestamp()
    elif info.get("modificationTime"):  # WebHDFS, in milliseconds
        written = seconds = info["modificationTime"] / 1000
    return TraceFile(
        path=url,
        size_bytes=int(info.get("size") or 0),
        mtime_ns=int(seconds * 10**9) if isinstance(seconds, (int, float)) else 0,
        token=str(next((info[key] for key in _MARKS if info.get(key)), written) or ""),
    )


_OF_ONE_PROCESS = frozenset({"memory"})


class RemoteSettings(msgspec.Struct, frozen=True):
    """What `fsspec.config` holds, from its files and from code, as JSON."""

    fsspec: str = "{}"


def own_settings(files: Sequence[TraceFile]) -> RemoteSettings | None:
    """This process's; None where some cannot be handed over (an object among the options, say)."""
    if not any(is_url(file.path) for file in files):
        return RemoteSettings()
    import fsspec

    try:
        return RemoteSettings(json.dumps(fsspec.config.conf))
    except (TypeError, ValueError):
        return None


def remote_access(settings: RemoteSettings) -> AbstractContextManager[None]:
    """Within it this thread reaches remote stores so. Nothing of the process is changed."""
    return reached_by(json.loads(settings.fsspec))


def is_reached_by_others(file: TraceFile) -> bool:
    """Whether another process of this machine can open the file by its path alone."""
    if not is_url(file.path):
        return True
    return all(_is_fsspec_own(part) for part in file.path.split("::"))


def _is_fsspec_own(part: str) -> bool:
    """Whether a link of a URL's chain has the class that fsspec itself has for its protocol, or is a local path."""
    from fsspec.registry import get_filesystem_class, known_implementations

    protocol, _, rest = part.partition("://")
    if not rest and protocol not in known_implementations:
        return True
    known = known_implementations.get(protocol)
    if known is None or protocol in _OF_ONE_PROCESS:
        return False
    module, _, name = known["class"].rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None) is get_filesystem_class(protocol)
    except (ImportError, ValueError):
        return False
