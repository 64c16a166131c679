"""A profile from the cache at once, or made in a process of its own.

Reading a large trace takes hundreds of megabytes and holds the interpreter for seconds; in a process of its own neither
reaches the server, running out of memory does not end it, and cancelling is ending the process.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from deepscope.errors import DeepScopeError, TraceError, remake
from deepscope.records import Profile
from deepscope.records.ranks import merge_profiles
from deepscope.store import cache
from deepscope.store.runs import Selection, select

__all__ = ["CancelledLoadError", "Loader", "Request", "cached_profile"]

Progress = Callable[[int, int], None]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to load: the arguments of `load_profile`, or of `load_selection` where the traces are selected."""

    path: str
    selection: Selection | None = None
    step: int | None = None
    rank: int | None = None
    stage: str | None = None
    partial: bool = False


class Report(msgspec.Struct, omit_defaults=True):
    """One line that the loading process writes."""

    done: int = 0
    total: int = 0
    kind: str = ""
    arguments: list[Any] = []
    """Of an error, to be made again by `remake`."""


class CancelledLoadError(DeepScopeError):
    """Loading was cancelled."""


def cached_profile(request: Request) -> Profile | None:
    """The profile if the cache has every part of it; None if some trace has to be read.

    Raises:
        TraceError, OptionError: as `load_profile`.
    """
    selection = request.selection or select(request.path, rank=request.rank, stage=request.stage)
    kept = []
    for file in selection.files:
        profile = cache.load(file, step=request.step, partial=request.partial)
        if profile is None:
            return None
        kept.append(profile)
    profile = merge_profiles(kept)
    profile.trace.also_recorded = list(selection.also_recorded)
    return profile


@dataclass
class Loader:
    """One load that can be cancelled from another thread."""

    request: Request
    _process: subprocess.Popen[bytes] | None = None
    _is_cancelled: bool = False

    def __post_init__(self) -> None:
        self._lock = Lock()

    def cancel(self) -> None:
        """Ends the load; `load` raises CancelledLoadError."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.kill()

    def load(self, progress: Progress | None = None) -> Profile:
        """Loads, from the cache or in a process of its own; called from a thread of its own.

        Raises:
            CancelledLoadError: `cancel` was called.
            TraceError, OptionError: as `load_profile`.
        """
        profile = cached_profile(self.request)
        if profile is not None:
            return profile
        with tempfile.TemporaryDirectory(prefix="deepscope-") as folder:
            result = Path(folder) / "profile.msgpack"
            self._run(result, progress)
            try:
                return msgspec.msgpack.decode(result.read_bytes(), type=Profile)
            except (OSError, msgspec.MsgspecError) as error:
                raise TraceError(f"{self.request.path}: its profile could not be handed over: {error}") from error

    def _run(self, result: Path, progress: Progress | None) -> None:
        with self._start(result) as process:
            assert process.stdout is not None
            report = Report()
            for row in process.stdout:
                with contextlib.suppress(msgspec.MsgspecError):
                    report = msgspec.json.decode(row, type=Report)
                    if progress is not None and report.total:
                        progress(report.done, report.total)
        if self._is_cancelled:
            raise CancelledLoadError(f"{self.request.path}: loading was cancelled")
        if report.kind:
            raise remake(report.kind, report.arguments)
        if process.returncode:
            ended = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
            raise TraceError(
                f"{self.request.path}: reading it ended with {ended} (not enough memory?); "
                "try `deepscope report` on it in a terminal"
            )

    def _start(self, result: Path) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_cancelled:
                raise CancelledLoadError(f"{self.request.path}: loading was cancelled")
            arguments = msgspec.json.encode(self.request).decode()
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "deepscope_lsp.engine.loading_process", arguments, str(result)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            return self._process
