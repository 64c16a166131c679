"""The bytes of a trace, unpacked within limits, ahead of the reader in a thread of their own."""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from deepscope.errors import DeepScopeError, NoTraceError, TraceError, VariableError
from deepscope.processes import Progress
from deepscope.trace.kineto.remote import is_url, open_remote

VARIABLE = "DEEPSCOPE_MAX_UNPACKED_GB"
"""Environment variable: the limit in gigabytes, 0 for none."""

_HARMLESS_BYTES = 128 << 20
_HIGHEST_RATIO = 100
"""Recorded traces unpack to 10 to 40 times their size; gzip can write 1,030 times."""
_MOST_BYTES = 32 << 30


@dataclass(frozen=True, slots=True)
class UnpackLimit:
    """At most so many bytes, and beyond 128 MiB at most `ratio` times the compressed ones; 0: no limit."""

    most_bytes: int
    ratio: int

    @classmethod
    def of_environment(cls) -> UnpackLimit:
        """What the variable says; without it 32 GiB, and 100 times the compressed size.

        Raises:
            VariableError: the variable holds no number of gigabytes.
        """
        word = os.environ.get(VARIABLE, "")
        if not word:
            return cls(_MOST_BYTES, _HIGHEST_RATIO)
        try:
            gigabytes = float(word)
            return cls(int(gigabytes * 10**9) if gigabytes > 0 else 0, 0)
        except (ValueError, OverflowError):
            raise VariableError(f"{VARIABLE}={word}: must be a number of gigabytes, 0 for no limit") from None

    def check(self, path: str, packed_bytes: int, unpacked_bytes: int) -> None:
        """Raises `TraceError` where so many bytes, unpacked from so many, are too many."""
        if self.most_bytes and unpacked_bytes > self.most_bytes:
            found = f"more than {self.most_bytes / 10**9:.4g} GB"
        elif self.ratio and unpacked_bytes > max(_HARMLESS_BYTES, self.ratio * packed_bytes):
            found = f"more than {self.ratio} times its size, which no recorder writes"
        else:
            return
        raise TraceError(f"{path}: unpacks to {found}; if it is to be read all the same, set {VARIABLE}=0 (no limit)")


_zlib: Any = zlib
with contextlib.suppress(ImportError):  # no wheel for this machine
    # The same interface as zlib's, three times as fast, and it lets go of the interpreter's lock.
    from isal import isal_zlib as _zlib

CHUNK_BYTES = 1 << 20
"""What is decoded at once. Smaller pieces cost more calls for the same events, larger ones more memory."""
READ_BYTES = 1 << 18
"""How much of a file is read at once; its first bytes are as many."""
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_RATIO = 15


def likely_json_bytes(name: str, size_bytes: int) -> int:
    """About how much JSON a file of that size holds, by its name alone."""
    return size_bytes * (_GZIP_RATIO if name.endswith(".gz") else 1)


class TraceSource:
    """An iterable over chunks; afterwards `damage` says what is wrong with the compression, if anything.

    Raises `NoTraceError` when opened on what is not there, and `TraceError` when a file unpacks to more than
    `UnpackLimit` allows.
    """

    def __init__(self, path: str, progress: Progress | None = None) -> None:
        self.path = path
        self.damage = ""
        self._progress = progress
        self._file, self.size_bytes, self._keep = _open(path)
        self._read_bytes = 0

    def __iter__(self) -> Generator[bytes, None, None]:
        with self._file, contextlib.closing(_ahead(self._chunks(), self.path)) as chunks:
            for chunk in chunks:
                if self._progress is not None:
                    self._progress(self._read_bytes, self.size_bytes)
                yield chunk

    def _chunks(self) -> Iterator[bytes]:
        """Runs in the second thread."""
        first = self._read()
        if not first.startswith(_GZIP_MAGIC):
            yield first
            while data := self._read(CHUNK_BYTES):
                yield data
            return
        yield from self._inflate(first)

    def _read(self, size: int | None = None) -> bytes:
        data: bytes = self._file.read(READ_BYTES if size is None else size)
        self._read_bytes += len(data)
        return data

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        """Members one after another; ignores what follows the last and is no member, as `gzip -d` does."""
        inflater = _zlib.decompressobj(wbits=31)
        limit = UnpackLimit.of_environment()
        unpacked_bytes = 0
        pending: list[bytes] = []
        pending_bytes = 0
        try:
            while True:
                out = inflater.decompress(data, CHUNK_BYTES - pending_bytes)
                pending.append(out)
                pending_bytes += len(out)
                unpacked_bytes += len(out)
                limit.check(self.path, self._read_bytes, unpacked_bytes)
                if pending_bytes >= CHUNK_BYTES:
                    yield b"".join(pending)
                    pending, pending_bytes = [], 0
                if inflater.eof:
                    data = (inflater.unused_data or self._read()).lstrip(b"\0")
                    data = data if len(data) >= 2 else data + self._read()
                    if not data.startswith(_GZIP_MAGIC):
                        break
                    inflater = _zlib.decompressobj(wbits=31)
                    continue
                data = inflater.unconsumed_tail or self._read()
                if not data and not out:
                    self.damage = "the gzip stream ends early"
                    break
        except (zlib.error, _zlib.error) as error:
            self.damage = f"the gzip stream is damaged ({error})"
        if pending_bytes:
            yield b"".join(pending)


def _open(path: str) -> tuple[IO[bytes], int, object]:
    """The file, its size, and what has to live as long as it."""
    if is_url(path):
        remote = open_remote(path)
        return remote.stream, remote.size_bytes, remote.filesystem
    try:
        file = Path(path).open("rb")  # noqa: SIM115  the Source closes it
    except IsADirectoryError:
        raise NoTraceError(f"{path}: is a folder; name a trace file in it") from None
    except (FileNotFoundError, NotADirectoryError):
        raise NoTraceError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise NoTraceError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    return file, os.fstat(file.fileno()).st_size, None


_END = object()


def _fail(error: BaseException, path: str) -> NoReturn:
    """Remote stores and archives have errors of their own; whatever went wrong, the bytes did not come."""
    if isinstance(error, Exception) and not isinstance(error, (MemoryError, DeepScopeError)):
        reason = str(error) or type(error).__name__  # a time-out has no words
        raise TraceError(f"{path}: cannot be read ({reason}); check the disk or the connection") from error
    raise error


def _with_explained_errors(chunks: Iterator[bytes], path: str) -> Iterator[bytes]:
    try:
        yield from chunks
    except BaseException as error:  # noqa: BLE001
        _fail(error, path)


def _ahead(chunks: Iterator[bytes], path: str) -> Generator[bytes, None, None]:
    """`chunks`, made in another thread, at most two ahead; its exceptions are raised here."""
    ready: deque[Any] = deque()
    filled = threading.Semaphore(0)
    free = threading.Semaphore(2)
    stopped = False

    def produce() -> None:
        last: Any = _END
        try:
            for chunk in chunks:
                free.acquire()
                if stopped:
                    return
                ready.append(chunk)
                filled.release()
        except BaseException as error:  # noqa: BLE001  whatever it is, the reader's thread raises it
            last = error
        ready.append(last)
        filled.release()

    thread = threading.Thread(target=produce, name="deepscope-inflate", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is ending, and some versions of it start no more threads then
        return (yield from _with_explained_errors(chunks, path))
    try:
        while True:
            filled.acquire()
            item = ready.popleft()
            if item is _END:
                return
            if isinstance(item, BaseException):
                _fail(item, path)
            free.release()
            yield item
    finally:
        stopped = True
        free.release()
        thread.join()
