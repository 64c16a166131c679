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
from typing import Any

from torch.utils.data import get_worker_info

try:
    from torch.utils.data._utils import fetch
except ImportError:  # a torch that has moved it: workers go untimed
    fetch = None

from deepscope.capture.lines.clock import LineClock
from deepscope.capture.lines.user_code import UserCode

__all__ = ["FLAG", "FLAG_FILE", "Flag", "WorkerInit", "follow_batches"]

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
    """Time the batches that this process makes from here on, if it turns out to be a worker; once only.

    Torch has no hook around a batch, so its fetchers are wrapped: in this process alone, which lives for its loader.
    """
    batches = _Batches(folder, user_code)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        kind: Any = getattr(fetch, name, None)
        original = getattr(kind, "fetch", None)
        if original is not None and not hasattr(original, "__wrapped__"):
            kind.fetch = _timed(original, batches)


class WorkerInit:
    """A `worker_init_fn` that starts the timing in a worker that was spawned, then runs the user's own; picklable."""

    def __init__(self, folder: Path, user_code: UserCode, inner: Callable[[int], Any] | None) -> None:
        self.inner = inner
        self._folder = folder
        self._user_code = user_code

    def __call__(self, worker_id: int) -> None:
        """Called by torch in the worker."""
        with suppress(OSError):  # the folder is gone where a worker starts after its recording
            follow_batches(self._folder, self._user_code)
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


class _Batches:
    """The worker's state: the window that it takes part in, if any."""

    def __init__(self, folder: Path, user_code: UserCode) -> None:
        self._folder = folder
        self._user_code = user_code
        self._flag = Flag(folder)
        self._turn: _Turn | None = None

    def begin(self) -> None:
        try:
            self._join_window()
        except Exception:  # noqa: BLE001 - the worker goes on untimed
            self._turn = None
        if self._turn is not None:
            self._turn.batch_since = time.perf_counter_ns()

    def _join_window(self) -> None:
        info = get_worker_info()
        window = self._flag.window if info is not None else 0
        if self._turn is not None and self._turn.window != window:
            self._turn.clock.stop()
            self._turn = None
        if self._turn is None and info is not None and window:
            self._turn = _Turn(window, info.id, LineClock(self._user_code))
            self._turn.announce(self._folder)
            self._turn.clock.start()
            # A loader's workers end with its epoch, which may be long before the window does.
            at_exit = Finalize(None, self._turn.report, args=(self._folder,), exitpriority=0)
            threading.Thread(target=self._report, args=(self._turn, at_exit), daemon=True).start()

    def end(self) -> None:
        turn = self._turn
        if turn is not None:
            turn.wall_ns += time.perf_counter_ns() - turn.batch_since
            turn.batch_since = 0
            if self._flag.window != turn.window:
                turn.clock.stop()
                self._turn = None

    def _report(self, turn: _Turn, at_exit: Finalize) -> None:
        """Wait for the window's end and leave the times."""
        while self._flag.window == turn.window:
            time.sleep(_POLL_S)
        turn.report(self._folder)
        at_exit.cancel()


class _Turn:
    """One window in one worker."""

    def __init__(self, window: int, worker_id: int, clock: LineClock) -> None:
        self.window = window
        self.worker_id = worker_id
        self.clock = clock
        self.wall_ns = 0
        self.batch_since = 0
        """When the batch that is being made began; 0 between batches."""
        self._lock = threading.Lock()
        self._is_reported = False

    def announce(self, folder: Path) -> None:
        """Say that this worker takes part, so that the parent waits for its report."""
        (folder / f"{self._name}.open").touch()

    def report(self, folder: Path) -> None:
        """Leave the times for the parent, once."""
        with self._lock, suppress(OSError):  # the parent may have ended and taken its folder away
            if not self._is_reported:
                self._is_reported = True
                partial = folder / f"{self._name}.part"
                partial.write_text(json.dumps(self._account()))
                partial.replace(folder / f"{self._name}.json")

    @property
    def _name(self) -> str:
        return f"{self.window}.{os.getpid()}"

    def _account(self) -> dict[str, Any]:
        since = self.batch_since
        return {
            "pid": os.getpid(),
            "worker_id": self.worker_id,
            "wall_ns": self.wall_ns + (time.perf_counter_ns() - since if since else 0),
            "lines": self.clock.times(),
        }
