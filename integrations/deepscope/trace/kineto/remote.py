"""Files in remote stores and in archives, by fsspec, with every back end's errors as this package's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import IO, Any, NamedTuple, TypeAlias

from deepscope.errors import DeepScopeError, MissingExtraError, NoTraceError, TraceError

_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "adl": "azure",
    "az": "azure",
    "http": "http",
    "https": "http",
    "webhdfs": "hdfs",
    "webHDFS": "hdfs",
}

_LONGEST_REASON = 300
"""Characters; a back end may name every place that it looked into."""

SILENT_SECONDS = 300
"""How long a web server may say nothing."""

Options: TypeAlias = Mapping[str, Mapping[str, Any]]

_OPTIONS: ContextVar[Options] = ContextVar("remote options", default=MappingProxyType({}))


class RemoteFile(NamedTuple):
    """An open file. Closing it is enough, but its filesystem must live as long: an archive's closes what lies below."""

    stream: IO[bytes]
    filesystem: Any
    size_bytes: int
    """0 where the store does not say."""


def is_url(path: str) -> bool:
    """Whether fsspec is asked for this path (`s3://…`, `zip://…::…`) and not the operating system."""
    return "://" in path or "::" in path


def filesystem_of(url: str) -> tuple[Any, str]:
    """The filesystem of a URL, and the path in it."""
    import fsspec

    options = _OPTIONS.get()
    filesystem, path = fsspec.core.url_to_fs(url, **_of_protocols(url, options) if options else {})
    return filesystem, path


@contextmanager
def reached_by(options: Options) -> Iterator[None]:
    """Within it this thread opens remote stores with these options (protocol → its options, as in `fsspec.config`)."""
    token = _OPTIONS.set(options)
    try:
        yield
    finally:
        _OPTIONS.reset(token)


def _of_protocols(url: str, options: Options) -> dict[str, Any]:
    """The options of the protocols in a URL; another's would be taken for the outermost one's."""
    from fsspec.registry import get_filesystem_class

    chosen: dict[str, Any] = {}
    for part in url.split("::"):
        protocol = part.split("://", 1)[0] if "://" in part else part
        try:
            names = get_filesystem_class(protocol).protocol
        except (ImportError, ValueError):  # opening it tells
            continue
        merged: dict[str, Any] = {}
        for name in (names,) if isinstance(names, str) else names:
            merged |= options.get(name, {})
        if merged:
            chosen[protocol] = merged
    return chosen


def open_remote(url: str) -> RemoteFile:
    """Opens a URL for reading its bytes as they are stored.

    Raises `NoTraceError` where nothing is there, `MissingExtraError` where a reader is lacking, else `TraceError`.
    """
    with remote_errors(url):
        filesystem, path = filesystem_of(url)
        stream: Any = filesystem.open(path, "rb")
        size_bytes = int(getattr(stream, "size", 0) or 0)
        if is_web(filesystem) and not (size_bytes and _has_ranges(stream)):
            stream.close()
            filesystem = _patient(filesystem)
            stream = filesystem.open(path, "rb", block_size=0)
        return RemoteFile(stream, filesystem, size_bytes)


def is_web(filesystem: Any) -> bool:
    """Whether it is that of a web server."""
    protocol = filesystem.protocol
    return "http" in ((protocol,) if isinstance(protocol, str) else protocol)


def first_of_page(filesystem: Any, path: str, count: int) -> bytes:
    """The first bytes of a file on a web server; of one that is sent as a whole alone, the rest is not waited for."""
    headers = {**filesystem.kwargs.get("headers", {}), "Range": f"bytes=0-{count - 1}"}
    found = b""
    # With a size nobody asks for it first.
    with filesystem.open(path, "rb", block_size=0, size=count, headers=headers) as stream:
        while len(found) < count and (part := stream.read(count - len(found))):
            found += part
    return found


def _patient(filesystem: Any) -> Any:
    """The same, but a request may take as long as bytes come: aiohttp ends each after five minutes."""
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=None, sock_connect=SILENT_SECONDS, sock_read=SILENT_SECONDS)
    own = {"client_kwargs": {"timeout": timeout, **filesystem.client_kwargs}}
    return type(filesystem)(**{**filesystem.storage_options, **own})


def _has_ranges(stream: Any) -> bool:
    """Whether all of a file can be had from a web server as fsspec asks for it: in parts, unless it is small.

    A server may send files as wholes alone (Python's own does), and its headers do not tell. So the last byte is asked
    for.
    """
    if stream.size <= stream.blocksize:
        return True
    try:
        stream.seek(-1, 2)
        stream.read(1)
    except ValueError:  # raised before anything is downloaded
        return False
    stream.seek(0)
    return True


@contextmanager
def remote_errors(url: str) -> Iterator[None]:
    """Turns what a storage back end raises into this package's errors."""
    try:
        yield
    except (DeepScopeError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise NoTraceError(f"{url}: no such file or folder, or out of reach") from error
    except ImportError as error:
        protocol = _outermost(url)
        if protocol in _EXTRAS:
            raise MissingExtraError(f"the reader of {protocol}://", _EXTRAS[protocol]) from error
        raise TraceError(f"{url}: {error}") from error
    except Exception as error:  # each back end has errors of its own (botocore, aiohttp, …)
        reason = reason_of(error)
        # libhdfs writes its lines with `\\n`.
        short = reason.replace("\\n", "\n").strip().partition("\n")[0][:_LONGEST_REASON]
        if _outermost(url) == "hdfs" and "Unable to load" in reason:
            short += "; hdfs:// needs Hadoop's libhdfs and Java, webhdfs://NAMENODE:9870/… needs neither"
        description = f"{type(error).__name__}: {short}" if short else type(error).__name__  # a time-out has no words
        raise TraceError(f"{url}: cannot be read: {description}") from error


def reason_of(error: Exception) -> str:
    """What went wrong: of an error of the system its own words, without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _outermost(url: str) -> str:
    """The protocol that a URL is opened by first."""
    return url.split("://", 1)[0].rsplit("::", 1)[-1]
