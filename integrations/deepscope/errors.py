"""Every error that DeepScope raises, in one tree.

A message says what was found, where, and what to do. The core raises; the edges decide: the command line prints one
line and exits with `exit_code`, the recorder warns once and lets training go on.
"""

from __future__ import annotations

__all__ = [
    "DeepScopeError",
    "MissingExtraError",
    "NestedProfileError",
    "NoTraceError",
    "NotATraceError",
    "OptionError",
    "ProfileStoreError",
    "RecorderError",
    "TraceError",
    "TruncatedTraceError",
]


class DeepScopeError(Exception):
    """Base of all errors that DeepScope raises on purpose; printed without a traceback."""

    exit_code = 1


class TraceError(DeepScopeError):
    """A trace could not be read."""


class NoTraceError(TraceError):
    """A path does not exist, or a folder holds no trace."""


class NotATraceError(TraceError):
    """A file is there, but it is empty or no Kineto or Chrome trace."""


class TruncatedTraceError(TraceError):
    """A trace ends early (cut JSON or gzip); `--partial` reads the events before the end."""


class ProfileStoreError(DeepScopeError):
    """A cached profile could not be read or written."""


class OptionError(DeepScopeError, ValueError):
    """An option has a value that cannot be used; the message names the option and the values it takes."""


class RecorderError(DeepScopeError, RuntimeError):
    """The recorder was used in a way that it cannot serve."""


class NestedProfileError(RecorderError):
    """A recording was started inside another one of the same process."""


class MissingExtraError(DeepScopeError, ImportError):
    """An optional dependency is absent; the message names the pip command that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'deepscope[{extra}]'")
        self.package = package
        self.extra = extra
