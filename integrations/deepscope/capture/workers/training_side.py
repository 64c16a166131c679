"""Data-loader workers seen from the training process: what their lines took in a window, collected at its end.

Processes share nothing but a folder: a flag that says which window is open, and a file from each worker that made a
batch in it. Workers that are forked after `arm` take part by themselves, all others through their loader's
`worker_init_fn`, which is ours while the loader starts them.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepscope.capture import torch_compat
from deepscope.capture.lines.hooks import LineTime
from deepscope.capture.lines.user_code import UserCode
from deepscope.capture.naming import workers_prefix
from deepscope.capture.notices import is_alive, warn
from deepscope.capture.options import RecordingOptions
from deepscope.capture.workers.worker_side import Flag, WorkerInit, follow_batches

_PATIENCE_S = 0.5
_POLL_S = 0.005


@dataclass(frozen=True)
class WorkerTiming:
    """What one worker process did in one window."""

    pid: int
    worker_id: int
    num_workers: int
    """How many workers its loader has."""
    lines: list[LineTime]
    wall_ns: int
    """Time in which it was making batches."""


class WorkerClocks:
    """The clocks in all worker processes of one recorder; `arm` it before the loaders start their workers."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._folder: Path | None = None
        self._flag: Flag | None = None
        self._windows = 0
        self._owner = os.getpid()

    def arm(self) -> None:
        """Let workers that start from here on take part. Nothing is timed outside a window.

        Where there is no room for their folder, the recording goes on without them.
        """
        if self._folder is None:
            self._owner = os.getpid()
            try:
                self._folder = Path(tempfile.mkdtemp(prefix=workers_prefix()))
                self._flag = Flag.create(self._folder)
            except OSError as error:
                self.disarm()
                warn("data-loader workers are not timed", error)
                return
            weakref.finalize(self, _remove, self._folder, self._owner)
        _armed.add(self)
        torch_compat.watch_loaders(_following)

    def open_window(self) -> None:
        """Time the lines of each batch that is begun from here on."""
        if self._flag is not None:
            self._windows += 1
            self._flag.window = self._windows

    def end_window(self) -> Callable[[], list[WorkerTiming]]:
        """End the window; what is returned collects, on any thread and before `disarm`.

        It waits half a second at most for workers to report, and not at all where none took part.
        """
        if self._flag is None or self._folder is None or not self._flag.window:
            return list
        self._flag.window = 0
        return functools.partial(_collect, self._folder, f"{self._windows}.")

    def retire(self) -> None:
        """Let workers that start from here on take no part; what the others report can still be collected."""
        _armed.discard(self)
        if not _armed:
            torch_compat.watch_loaders(None)

    def disarm(self) -> None:
        """Take no more part; the folder goes. Workers that still run notice that nothing is timed any more."""
        self.retire()
        folder, self._folder = self._folder, None
        if self._flag is not None:
            self._flag.window = 0
            self._flag.close()
            self._flag = None
        if folder is not None:
            _remove(folder, self._owner)

    def wrap_init(self, inner: Callable[[int], Any] | None = None) -> Callable[[int], Any] | None:
        """A `worker_init_fn` for loaders that spawn their workers, which runs `inner` too; `inner` while not armed."""
        if self._folder is None or (isinstance(inner, WorkerInit) and inner.folder == self._folder):
            return inner
        return WorkerInit(self._folder, self._user_code, inner)

    def follow(self) -> None:
        """In a forked child: time its batches if it becomes a worker."""
        if self._folder is not None:
            with suppress(OSError):
                follow_batches(self._folder, self._user_code)


def armed_clocks(options: RecordingOptions) -> WorkerClocks | None:
    """Clocks in the workers that start from here on; None where no lines are wanted."""
    if not options.lines:
        return None
    clocks = WorkerClocks(UserCode.find(options.root, options.include, options.exclude))
    clocks.arm()
    return clocks


def _collect(folder: Path, prefix: str) -> list[WorkerTiming]:
    deadline = time.monotonic() + _PATIENCE_S
    while any(_missing(folder, prefix)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    timings = [timing for path in folder.glob(f"{prefix}*.json") if (timing := _read(path)) is not None]
    for path in folder.glob(f"{prefix}*"):
        path.unlink(missing_ok=True)
    return sorted(timings, key=lambda timing: (timing.worker_id, timing.pid))


def _missing(folder: Path, prefix: str) -> Iterator[Path]:
    """Workers that took part, are alive and have not reported yet."""
    for path in folder.glob(f"{prefix}*.open"):
        if not path.with_suffix(".json").exists() and is_alive(int(path.stem.rpartition(".")[2])):
            yield path


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends without taking its parent's folder along
        shutil.rmtree(folder, ignore_errors=True)


def _read(path: Path) -> WorkerTiming | None:
    try:
        account = json.loads(path.read_text())
        lines = [LineTime(*line) for line in account["lines"]]
        return WorkerTiming(account["pid"], account["worker_id"], account["num_workers"], lines, account["wall_ns"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a disk that is full: this worker's part is missing


_armed: weakref.WeakSet[WorkerClocks] = weakref.WeakSet()


@contextmanager
def _following(loader: Any) -> Iterator[None]:
    """While `loader` starts its workers: have them take part, however they are started."""
    given = getattr(loader, "worker_init_fn", None)
    wrapped = given
    for clocks in list(_armed):
        wrapped = clocks.wrap_init(wrapped)
    if wrapped is given:
        yield
        return
    try:
        loader.worker_init_fn = wrapped
    except AttributeError:  # a class of the user's that allows no such thing
        yield
        return
    try:
        yield
    finally:
        loader.worker_init_fn = given


def _after_fork() -> None:
    for clocks in list(_armed):
        clocks.follow()
    _armed.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
