"""What was made of traces, kept in the user's cache folder, so that each is parsed once.

One folder, one limit, one cleaner: profiles and what is kept of a rank as compressed msgpack, columns as files that are
mapped, not read: large ones are there at once.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache as remembered
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

import msgspec

from deepscope.records import PROFILE_FORMAT, WHOLE, Profile, View
from deepscope.records.merging import decoded
from deepscope.store.files import TraceFile

if TYPE_CHECKING:
    import numpy.typing as npt

Kind: TypeAlias = Literal["profile", "summary", "attribution", "timeline"]
"""What is made of a trace: its `Profile`, the `RankSummary` of that, its events with everything joined, or the columns
that the dashboard's timeline is drawn from."""
LIMIT_BYTES = 2 << 30
"""Files beyond this are removed, those unused for longest first."""
T = TypeVar("T")
_PARTS = ("trace", "records", "analysis", "ranks", "store", "quantities.py", "printable.py")
"""The folders and modules whose code makes profiles."""
_PARTS_OF_TIMELINES = ("report", "dashboard/timeline")
_KINDS = frozenset(get_args(Kind))
_EARLIER = re.compile(r"[0-9a-f]{32}\.")
_MAGIC = b"deepscope profile\n"
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


def load_kept(file: TraceFile, view: View = WHOLE, *, partial: bool) -> Profile | None:
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
    head = len(_MAGIC) + DIGEST_BYTES
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
    prune()


def save_body(kind: Kind, file: TraceFile, body: bytes, view: View = WHOLE, *, partial: bool) -> None:
    """The same of any kind, encoded; removes nothing, for that takes as long as there are profiles."""
    if not file.has_version:
        return
    with suppress(OSError, RuntimeError):
        path = _path(kind, file, view, partial=partial)
        packed = zlib.compress(body, _FASTEST)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, [_MAGIC + digest(packed) + packed])


def load_columns(kind: Kind, file: TraceFile, of: type[T], *, partial: bool) -> T | None:
    """Columns that this very code made of this very file, mapped; None where none are whole."""
    if not file.has_version:
        return None
    try:
        path = _path(kind, file, WHOLE, partial=partial)
        found = map_columns(path, of)
    except (OSError, ValueError, RuntimeError, msgspec.MsgspecError):
        return None
    with suppress(OSError):
        os.utime(path)
    return found


def has_columns(kind: Kind, file: TraceFile, *, partial: bool) -> bool:
    """Whether there is such a file, whole or not: asked without NumPy."""
    with suppress(OSError, RuntimeError):
        return file.has_version and _path(kind, file, WHOLE, partial=partial).is_file()
    return False


def save_columns(kind: Kind, file: TraceFile, columns: Any, *, partial: bool) -> None:
    """Keeps columns, as `save` does a profile."""
    if not file.has_version:
        return
    with suppress(OSError, RuntimeError, UnicodeEncodeError):  # text that is no Unicode cannot be kept
        path = _path(kind, file, WHOLE, partial=partial)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, encode_columns(columns))
    prune()


def can_keep() -> bool:
    """Whether the cache folder can be written to."""
    with suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(folder, os.W_OK | os.X_OK)
    return False


def prune() -> None:
    """Removes the files unused for longest until the rest fits into `LIMIT_BYTES`, and what earlier versions kept."""
    with suppress(OSError, RuntimeError):
        _remove_earlier(cache_folder())
        kept = []
        for path in _folder().iterdir():
            with suppress(OSError):
                status = path.stat()
                if path.suffix[1:] in _KINDS:
                    kept.append((status.st_mtime_ns, status.st_size, path))
                elif path.suffix == ".tmp" and time.time() - status.st_mtime > _UNFINISHED_S:
                    path.unlink()  # of a process that was ended in the middle
        size = sum(size for _, size, _ in kept)
        for _, size_bytes, path in sorted(kept):
            if size <= LIMIT_BYTES:
                return
            with suppress(OSError):
                path.unlink()
            size -= size_bytes


def _remove_earlier(folder: Path) -> None:
    """Removes what earlier versions kept, and nothing else: the folder may be anybody's."""
    for name, pattern in (("profiles", "*.msgpack"), ("timelines", "*.timeline")):
        with suppress(OSError):
            for path in (folder / name).glob(pattern):
                if _EARLIER.match(path.name):
                    path.unlink()
            (folder / name).rmdir()


def _folder() -> Path:
    return cache_folder() / "kept"


def _path(kind: Kind, file: TraceFile, view: View, *, partial: bool) -> Path:
    """The cache file's name holds all that its content depends on: the trace, the options and the code that made it."""
    own = _own_fingerprint(kind == "timeline")
    words = (file.path, file.size_bytes, file.mtime_ns, file.token, view, partial, PROFILE_FORMAT, own)
    name = digest("\0".join(map(str, words)).encode("utf-8", "surrogateescape")).hex()
    return _folder() / f"{name}.{kind}"


DIGEST_BYTES = 16


def digest(content: bytes | memoryview) -> bytes:
    """What two contents do not have in common, in 16 bytes."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


@remembered
def _own_fingerprint(of_timelines: bool) -> str:
    """Of the code that runs here: it is what was imported, so it is found once."""
    return code_fingerprint(parts=_PARTS + _PARTS_OF_TIMELINES if of_timelines else _PARTS)


def code_fingerprint(package: Path | None = None, parts: Sequence[str] = _PARTS) -> str:
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


def _modules(part: Path) -> Iterable[tuple[str, int, int]]:
    if part.suffix == ".py":
        status = part.stat()
        yield part.name, status.st_size, status.st_mtime_ns
        return
    with os.scandir(part) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _modules(part / entry.name)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{part.name}/{entry.name}", status.st_size, status.st_mtime_ns


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


_COLUMNS_MAGIC = b"deepscope columns\n"
_ALIGNED = 64
_TYPES = frozenset({"|b1", "|u1", "<i2", "<i4", "<i8", "<f4", "<f8"})


class _Array(msgspec.Struct, array_like=True):
    """Where an array stands behind the description."""

    type: str
    shape: list[int]
    offset: int


class _Description(msgspec.Struct):
    arrays: list[_Array]
    value: msgspec.Raw
    size_bytes: int
    """Of all arrays."""


def encode_columns(value: object) -> Iterator[bytes | memoryview]:
    """A file's content, part by part."""
    import numpy as np  # a cached profile needs none

    arrays: list[npt.NDArray[Any]] = []
    places: list[_Array] = []
    end = 0

    def number_of(array: object) -> int:
        nonlocal end
        if not isinstance(array, np.ndarray):
            raise NotImplementedError(type(array))
        arrays.append(np.ascontiguousarray(array))
        places.append(_Array(array.dtype.str, list(array.shape), end))
        end += _aligned(array.nbytes)
        return len(arrays) - 1

    content = msgspec.msgpack.encode(value, enc_hook=number_of)
    head = msgspec.msgpack.encode(_Description(places, msgspec.Raw(content), end))
    start = _COLUMNS_MAGIC + len(head).to_bytes(8, "little") + digest(head) + head
    yield start + bytes(_aligned(len(start)) - len(start))
    for array in arrays:
        if array.nbytes:
            yield array.reshape(-1).view(np.uint8).data
            yield bytes(_aligned(array.nbytes) - array.nbytes)


def map_columns(path: Path, kind: type[T]) -> T:
    """The value in a file; its arrays cannot be written to.

    Raises:
        OSError: there is no such file.
        ValueError: it is not whole, or none of this machine's.
    """
    with path.open("rb") as stream:
        return decode_columns(memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)), kind)


def decode_columns(content: bytes | memoryview, kind: type[T]) -> T:
    """The value in what `encode_columns` made, without a copy of its arrays.

    Raises:
        ValueError: it is not whole, or none of this machine's.
    """
    content = memoryview(content)
    mark, length_end = len(_COLUMNS_MAGIC), len(_COLUMNS_MAGIC) + 8
    body = length_end + len(digest(b""))
    end = body + int.from_bytes(content[mark:length_end], "little")
    if content[:mark] != _COLUMNS_MAGIC or digest(content[body:end]) != content[length_end:body]:
        raise ValueError("no columns")
    description = msgspec.msgpack.decode(content[body:end], type=_Description)
    begin = _aligned(end)
    if len(content) != begin + description.size_bytes:
        raise ValueError("cut")
    arrays = [_array_at(content, begin, one) for one in description.arrays]
    return msgspec.msgpack.decode(description.value, type=kind, dec_hook=lambda _, number: arrays[number])


def _array_at(content: memoryview, begin: int, one: _Array) -> npt.NDArray[Any]:
    import numpy as np

    if one.type not in _TYPES:
        raise ValueError(one.type)
    count = int(np.prod(one.shape, dtype=np.int64))
    flat = np.frombuffer(content, np.dtype(one.type), count, begin + one.offset) if count else np.zeros(0, one.type)
    return flat.reshape(one.shape)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
