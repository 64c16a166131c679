"""Profiles kept in the user's cache folder, so that a trace is read once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from deepscope.records import PROFILE_FORMAT, WHOLE, Profile, View
from deepscope.store.files import TraceFile

__all__ = ["LIMIT_BYTES", "cache_folder", "code_fingerprint", "digest", "load", "prune", "save", "write_whole"]

LIMIT_BYTES = 512 << 20
"""Profiles beyond this are removed, those unused for longest first."""

_MAGIC = b"deepscope profile\n"
_DIGEST_BYTES = 16


def cache_folder() -> Path:
    """`$DEEPSCOPE_CACHE_DIR`, else the operating system's cache folder for DeepScope."""
    chosen = os.environ.get("DEEPSCOPE_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("deepscope", appauthor=False))


def load(file: TraceFile, view: View = WHOLE, *, partial: bool) -> Profile | None:
    """The profile that this very code made of this very file (path, size and time); None where none is whole."""
    try:
        path = _path(file, view, partial=partial)
        content = path.read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    body = memoryview(content)[head:]
    if not content.startswith(_MAGIC) or content[len(_MAGIC) : head] != digest(body):
        return None
    try:
        profile = msgspec.msgpack.decode(body, type=Profile)
    except msgspec.MsgspecError:
        return None
    with suppress(OSError):
        os.utime(path)
    return profile


def save(file: TraceFile, profile: Profile, view: View = WHOLE, *, partial: bool) -> None:
    """Keeps a profile; a cache that cannot be written is no error, since it only saves time."""
    with suppress(OSError, RuntimeError):
        path = _path(file, view, partial=partial)
        body = msgspec.msgpack.encode(profile)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, [_MAGIC + digest(body) + body])
        prune(path.parent)


def prune(folder: Path, limit_bytes: int = LIMIT_BYTES, pattern: str = "*.msgpack") -> None:
    """Removes the files of a cache unused for longest until the rest fits into `limit_bytes`."""
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


def _path(file: TraceFile, view: View, *, partial: bool) -> Path:
    """The cache file's name holds all that the profile depends on: the trace, the options and the code that made it."""
    words = (file.path, file.size_bytes, file.mtime_ns, file.token, view, partial, PROFILE_FORMAT, code_fingerprint())
    return (
        cache_folder()
        / "profiles"
        / (digest("\0".join(map(str, words)).encode("utf-8", "surrogateescape")).hex() + ".msgpack")
    )


def code_fingerprint(
    package: Path | None = None, parts: Sequence[str] = ("trace", "records", "analysis", "store")
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
