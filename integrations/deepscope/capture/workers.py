"""Data-loader workers: what their lines took in a window, timed in the workers and collected at its end.

Processes share nothing but a folder: a flag that says which window is open, and a file from each worker that made a
batch in it. Workers that are forked after `arm` take part by themselves, all others through their loader's
`worker_init_fn`, which is ours while the loader starts them.

While a window is open, a worker's first batch starts a clock and a thread that waits for the window's end, since the
worker itself may by then be waiting for work that never comes. The thread leaves the times in the recording's folder.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import shutil
import struct
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.data import get_worker_info

from deepscope.capture import torch_compat
from deepscope.capture.lines.hooks import LineClock, LineTime
from deepscope.capture.lines.recorded_code import UserCode
from deepscope.capture.naming import is_alive, workers_prefix
from deepscope.capture.notices import warn
from deepscope.capture.options import RecordingOptions

try:
    from torch.utils.data._utils import fetch
except ImportError:  # a torch that has moved it: workers go untimed
    fetch = None


_FLAG_FILE = "window"
_FLAG = struct.Struct("=q")
"""The number of the open window, 0 while none is."""

_POLL_S = 0.01


class _Flag:
    """The number of the open window, shared by all processes through a mapped file; OSError where there is none."""

    def __init__(self, folder: Path) -> None:
        with (folder / _FLAG_FILE).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FLAG.size)

    @property
    def window(self) -> int:
        """The open window's number; 0 while none is."""
        return int(_FLAG.unpack_from(self._map)[0])

    @window.setter
    def window(self, number: int) -> None:
        _FLAG.pack_into(self._map, 0, number)

    def close(self) -> None:
        self._map.close()


def _follow_batches(folder: Path, user_code: UserCode) -> None:
    """Time the batches that this process makes while the window of this recording is open; OSError if it is gone.

    Torch has no hook around a batch, so its fetchers are wrapped: in this process alone, which lives for its loader.
    """
    _batches.follow(folder, user_code)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        kind: Any = getattr(fetch, name, None)
        original = getattr(kind, "fetch", None)
        if original is not None and not hasattr(original, "__wrapped__"):
            kind.fetch = _timed(original, _batches)


class _WorkerInit:
    """A `worker_init_fn` that starts the timing in a worker that was spawned, then runs the user's own; picklable."""

    def __init__(self, folder: Path, user_code: UserCode, inner: Callable[[int], Any] | None) -> None:
        self.inner = inner
        self.folder = folder
        self._user_code = user_code

    def __call__(self, worker_id: int) -> None:
        with suppress(OSError):  # the folder is gone where a worker starts after its recording
            _follow_batches(self.folder, self._user_code)
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
    flag: _Flag


class _Batches:
    """The worker's state: the recordings that it may take part in, and its part in the window that is open, if any."""

    def __init__(self) -> None:
        self._recordings: dict[Path, _Recording] = {}
        self._window: _WorkerWindow | None = None

    def follow(self, folder: Path, user_code: UserCode) -> None:
        """Take part in this recording's windows; OSError if it is gone."""
        if folder not in self._recordings:
            self._recordings[folder] = _Recording(folder, user_code, _Flag(folder))

    def begin(self) -> None:
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
        return self._flag.window == self._window

    def begin_batch(self) -> None:
        self._batch_since = time.perf_counter_ns()

    def end_batch(self) -> None:
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


_PATIENCE_S = 0.5


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
        self._flag: _Flag | None = None
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
                (self._folder / _FLAG_FILE).write_bytes(_FLAG.pack(0))
                self._flag = _Flag(self._folder)
            except OSError as error:
                self.disarm()
                warn("data-loader workers are not timed", error)
                return
            weakref.finalize(self, _remove, self._folder, self._owner)
        _armed.add(self)
        global _unwatch
        if _unwatch is None:
            _unwatch = torch_compat.watch_loaders(_following)

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
        global _unwatch
        if not _armed and _unwatch is not None:
            _unwatch()
            _unwatch = None

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
        if self._folder is None or (isinstance(inner, _WorkerInit) and inner.folder == self._folder):
            return inner
        return _WorkerInit(self._folder, self._user_code, inner)

    def follow(self) -> None:
        """In a forked child: time its batches if it becomes a worker."""
        if self._folder is not None:
            with suppress(OSError):
                _follow_batches(self._folder, self._user_code)


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
_unwatch: Callable[[], None] | None = None
"""Ends the watch over loaders; None while there is none."""


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
