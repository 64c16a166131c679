"""The part of a recording that runs inside a data loader's worker process: it times the lines of each batch it makes.

While a window is open, the worker's first batch starts a clock and a thread that waits for the window's end, since the
worker itself may by then be waiting for work that never comes. The thread leaves the times in the recording's folder.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.data import get_worker_info

try:
    from torch.utils.data._utils import fetch
except ImportError:  # a torch that has moved it: workers go untimed
    fetch = None

from deepscope.capture.lines.hooks import LineClock
from deepscope.capture.lines.user_code import UserCode

FLAG_FILE = "window"
FLAG = struct.Struct("=q")
"""The number of the open window, 0 while none is."""

_POLL_S = 0.01


class Flag:
    """The number of the open window, shared by all processes through a mapped file; OSError where there is none."""

    def __init__(self, folder: Path) -> None:
        with (folder / FLAG_FILE).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), FLAG.size)

    @classmethod
    def create(cls, folder: Path) -> Flag:
        """A new flag in a folder that has none."""
        (folder / FLAG_FILE).write_bytes(FLAG.pack(0))
        return cls(folder)

    @property
    def window(self) -> int:
        """The open window's number; 0 while none is."""
        return int(FLAG.unpack_from(self._map)[0])

    @window.setter
    def window(self, number: int) -> None:
        FLAG.pack_into(self._map, 0, number)

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()


def follow_batches(folder: Path, user_code: UserCode) -> None:
    """Time the batches that this process makes while the window of this recording is open; OSError if it is gone.

    Torch has no hook around a batch, so its fetchers are wrapped: in this process alone, which lives for its loader.
    """
    _batches.follow(folder, user_code)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        kind: Any = getattr(fetch, name, None)
        original = getattr(kind, "fetch", None)
        if original is not None and not hasattr(original, "__wrapped__"):
            kind.fetch = _timed(original, _batches)


class WorkerInit:
    """A `worker_init_fn` that starts the timing in a worker that was spawned, then runs the user's own; picklable."""

    def __init__(self, folder: Path, user_code: UserCode, inner: Callable[[int], Any] | None) -> None:
        self.inner = inner
        self.folder = folder
        self._user_code = user_code

    def __call__(self, worker_id: int) -> None:
        """Called by torch in the worker."""
        with suppress(OSError):  # the folder is gone where a worker starts after its recording
            follow_batches(self.folder, self._user_code)
        if self.inner is not None:
            self.inner(worker_id)


def _timed(original: Callable[..., Any], batches: _Batches) -> Callable[..., Any]:
    @functools.wraps(original)
    def fetch_batch(self: Any, *args: Any) -> Any:
        batches.begin()
        try:
            return original(self, *args)
        finally:
            batches.end()

    return fetch_batch


class _Recording(NamedTuple):
    """A recording that this process may take part in."""

    folder: Path
    user_code: UserCode
    flag: Flag


class _Batches:
    """The worker's state: the recordings that it may take part in, and its part in the window that is open, if any."""

    def __init__(self) -> None:
        self._recordings: dict[Path, _Recording] = {}
        self._window: _WorkerWindow | None = None

    def follow(self, folder: Path, user_code: UserCode) -> None:
        """Take part in this recording's windows; OSError if it is gone."""
        if folder not in self._recordings:
            self._recordings[folder] = _Recording(folder, user_code, Flag(folder))

    def begin(self) -> None:
        """A batch begins."""
        try:
            self._join_window()
        except Exception:  # noqa: BLE001 - the worker goes on untimed
            self._window = None
        if self._window is not None:
            self._window.begin_batch()

    def _join_window(self) -> None:
        info = get_worker_info()
        if self._window is not None and not self._window.is_on:
            self._window.clock.stop()
            self._window = None
        if self._window is not None or info is None:
            return
        # Torch has room for one recording, so that one window at most is open.
        recording = next((one for one in self._recordings.values() if one.flag.window), None)
        if recording is not None:
            window = self._window = _WorkerWindow(recording, info)
            window.announce()
            window.clock.start()
            # A loader's workers end with its epoch, which may be long before the window does.
            at_exit = Finalize(None, window.report, exitpriority=0)
            threading.Thread(target=_report, args=(window, at_exit), daemon=True).start()

    def end(self) -> None:
        """The batch is made."""
        window = self._window
        if window is not None:
            window.end_batch()
            if not window.is_on:
                window.clock.stop()
                self._window = None


_batches = _Batches()


def _report(window: _WorkerWindow, at_exit: Finalize) -> None:
    """Wait for the window's end and leave the times."""
    while window.is_on:
        time.sleep(_POLL_S)
    window.report()
    at_exit.cancel()


class _WorkerWindow:
    """One window in one worker."""

    def __init__(self, recording: _Recording, info: Any) -> None:
        self.clock = LineClock(recording.user_code)
        self._folder = recording.folder
        self._flag = recording.flag
        self._window = recording.flag.window
        self._info = info
        self._wall_ns = 0
        self._batch_since = 0
        """When the batch that is being made began; 0 between batches."""
        self._lock = threading.Lock()
        self._is_reported = False

    @property
    def is_on(self) -> bool:
        """Whether the window is still open."""
        return self._flag.window == self._window

    def begin_batch(self) -> None:
        """The worker begins a batch."""
        self._batch_since = time.perf_counter_ns()

    def end_batch(self) -> None:
        """The batch is made."""
        self._wall_ns += time.perf_counter_ns() - self._batch_since
        self._batch_since = 0

    def announce(self) -> None:
        """Say that this worker takes part, so that the parent waits for its report."""
        (self._folder / f"{self._name}.open").touch()

    def report(self) -> None:
        """Leave the times for the parent, once."""
        with self._lock, suppress(OSError):  # the parent may have ended and taken its folder away
            if not self._is_reported:
                self._is_reported = True
                partial = self._folder / f"{self._name}.part"
                partial.write_text(json.dumps(self._account()))
                partial.replace(self._folder / f"{self._name}.json")

    @property
    def _name(self) -> str:
        return f"{self._window}.{os.getpid()}"

    def _account(self) -> dict[str, Any]:
        since = self._batch_since
        return {
            "pid": os.getpid(),
            "worker_id": self._info.id,
            "num_workers": self._info.num_workers,
            "wall_ns": self._wall_ns + (time.perf_counter_ns() - since if since else 0),
            "lines": self.clock.times(),
        }
