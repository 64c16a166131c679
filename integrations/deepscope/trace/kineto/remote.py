"""Files in remote stores and in archives, by fsspec, with every back end's errors as this package's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from deepscope.errors import DeepScopeError, MissingExtraError, NoTraceError, TraceError

__all__ = ["RemoteFile", "filesystem_of", "is_url", "open_remote", "remote_errors"]

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
}


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

    filesystem, path = fsspec.core.url_to_fs(url)
    return filesystem, path


def open_remote(url: str) -> RemoteFile:
    """Opens a URL for reading its bytes as they are stored.

    Raises `NoTraceError` where nothing is there, `MissingExtraError` where a reader is lacking, else `TraceError`.
    """
    with remote_errors(url):
        filesystem, path = filesystem_of(url)
        stream: Any = filesystem.open(path, "rb")
        return RemoteFile(stream, filesystem, int(getattr(stream, "size", 0) or 0))


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
        protocol = url.split("://", 1)[0].rsplit("::", 1)[-1]
        if protocol in _EXTRAS:
            raise MissingExtraError(f"the reader of {protocol}://", _EXTRAS[protocol]) from error
        raise TraceError(f"{url}: {error}") from error
    except Exception as error:  # each back end has errors of its own (botocore, aiohttp, …)
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TraceError(f"{url}: cannot be read: {type(error).__name__}: {reason}") from error
