"""Profiles kept in the user's cache folder, so that a trace is read once; beside them what is kept of a rank."""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache as remembered
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from deepscope.records import PROFILE_FORMAT, WHOLE, Profile, View
from deepscope.records.decoding import decoded
from deepscope.store.files import TraceFile

__all__ = [
    "LIMIT_BYTES",
    "Kind",
    "cache_folder",
    "code_fingerprint",
    "digest",
    "load",
    "load_body",
    "prune",
    "prune_profiles",
    "save",
    "save_body",
    "write_whole",
]

Kind: TypeAlias = Literal["profile", "summary"]
"""What is made of a trace: its `Profile`, or the `RankSummary` of that."""

LIMIT_BYTES = 512 << 20
"""Profiles beyond this are removed, those unused for longest first."""

_MAGIC = b"deepscope profile\n"
_DIGEST_BYTES = 16
_UNFINISHED_S = 3600
_FASTEST = 1
"""Level of compression: a sixth of the size for a millisecond, so that the profiles of a thousand ranks fit."""


def cache_folder() -> Path:
    """`$DEEPSCOPE_CACHE_DIR`, else the operating system's cache folder for DeepScope."""
    chosen = os.environ.get("DEEPSCOPE_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("deepscope", appauthor=False))


def load(file: TraceFile, view: View = WHOLE, *, partial: bool) -> Profile | None:
    """The profile that this very code made of this very file (path, size and time); None where none is whole."""
    body = load_body("profile", file, view, partial=partial)
    try:
        return None if body is None else decoded(body, Profile)
    except msgspec.MsgspecError:
        return None


def load_body(kind: Kind, file: TraceFile, view: View = WHOLE, *, partial: bool) -> bytes | None:
    """The same, of any kind, as the bytes that were kept."""
    if not file.has_version:
        return None
    try:
        path = _path(kind, file, view, partial=partial)
        content = path.read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    packed = memoryview(content)[head:]
    if not content.startswith(_MAGIC) or content[len(_MAGIC) : head] != digest(packed):
        return None
    try:
        body = zlib.decompress(packed)
    except zlib.error:
        return None
    with suppress(OSError):
        os.utime(path)
    return body


def save(file: TraceFile, profile: Profile, view: View = WHOLE, *, partial: bool) -> None:
    """Keeps a profile; a cache that cannot be written is no error, since it only saves time."""
    save_body("profile", file, msgspec.msgpack.encode(profile), view, partial=partial)
    prune_profiles()


def save_body(kind: Kind, file: TraceFile, body: bytes, view: View = WHOLE, *, partial: bool) -> None:
    """The same of any kind, encoded; removes nothing, for that takes as long as there are profiles."""
    if not file.has_version:
        return
    with suppress(OSError, RuntimeError):
        path = _path(kind, file, view, partial=partial)
        packed = zlib.compress(body, _FASTEST)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, [_MAGIC + digest(packed) + packed])


def prune_profiles() -> None:
    """Removes the profiles unused for longest until the rest fits into `LIMIT_BYTES`."""
    with suppress(OSError, RuntimeError):
        prune(cache_folder() / "profiles", LIMIT_BYTES)


def _remove_unfinished(folder: Path) -> None:
    """Removes what processes that were ended in the middle have left."""
    for path in folder.glob("*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _UNFINISHED_S:
                path.unlink()


def prune(folder: Path, limit_bytes: int = LIMIT_BYTES, pattern: str = "*.msgpack") -> None:
    """Removes the files of a cache unused for longest until the rest fits into `limit_bytes`."""
    _remove_unfinished(folder)
    kept = []
    for path in folder.glob(pattern):
        with suppress(OSError):
            status = path.stat()
            kept.append((status.st_mtime_ns, status.st_size, path))
    size = sum(size for _, size, _ in kept)
    for _, size_bytes, path in sorted(kept):
        if size <= limit_bytes:
            return
        with suppress(OSError):
            path.unlink()
        size -= size_bytes


def _path(kind: Kind, file: TraceFile, view: View, *, partial: bool) -> Path:
    """The cache file's name holds all that its content depends on: the trace, the options and the code that made it."""
    words = (file.path, file.size_bytes, file.mtime_ns, file.token, view, partial, PROFILE_FORMAT, _own_fingerprint())
    name = digest("\0".join(map(str, words)).encode("utf-8", "surrogateescape")).hex()
    return cache_folder() / "profiles" / (name + (".msgpack" if kind == "profile" else f".{kind}.msgpack"))


@remembered
def _own_fingerprint() -> str:
    """Of the code that runs here: it is what was imported, so it is found once."""
    return code_fingerprint()


def code_fingerprint(
    package: Path | None = None, parts: Sequence[str] = ("trace", "records", "analysis", "ranks", "store")
) -> str:
    """Names the code that makes profiles: after an update, or an edit in a checkout, older profiles are unused.

    Sizes and times of the modules are compared, which costs a tenth of reading the installed version from its metadata.
    """
    package = package or Path(__file__).resolve().parent.parent
    try:
        entries = [entry for part in parts for entry in _modules(package / part)]
    except OSError:  # imported from an archive
        from importlib.metadata import version

        return version("deepscope")
    return digest(repr(sorted(entries)).encode()).hex()


def _modules(folder: Path) -> Iterable[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _modules(folder / entry.name)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{folder.name}/{entry.name}", status.st_size, status.st_mtime_ns


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Writes under another name first: a reader never sees half a file."""
    import tempfile  # imports all of `random`; only writing needs it

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            for part in parts:
                stream.write(part)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def digest(content: bytes | memoryview) -> bytes:
    """What two contents do not have in common, in 16 bytes."""
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
