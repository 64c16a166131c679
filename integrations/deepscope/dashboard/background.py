"""Results that take long, made by threads while questions come again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import Generic, TypeVar

from deepscope.processes import Progress
from deepscope.store.worker_process import CancelledLoadError

PATIENCE_SECONDS = 0.4
"""How long a question waits for a profile that is being read before it is told how far the reading is."""
READERS = 2
"""Reading at the same time."""
_CLOSED = "the dashboard was closed"

T = TypeVar("T")
K = TypeVar("K")


class NotYetError(Exception):
    """The answer needs a trace that is still being read."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__(done, total)
        self.done = done
        self.total = total


class Background(Generic[K, T]):
    """Results that take long, made by threads, each once; the last few are kept."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="deepscope-read")
        self._jobs: OrderedDict[K, _Job[T]] = OrderedDict()
        self._is_closed = False

    def get(self, key: K, make: Callable[[Progress], T], size: int) -> T:
        """The result; made now where it is not there.

        Raises:
            NotYetError: it is being made.
            CancelledLoadError: `close` was called.
            Exception: what making it raised; the next question tries again.
        """
        with self._lock:
            if self._is_closed:
                raise CancelledLoadError(_CLOSED)
            job = self._jobs.get(key)
            if job is None:
                job = _Job(size)
                job.future = self._threads.submit(make, job.advance)
                self._jobs[key] = job
            self._jobs.move_to_end(key)
            finished = [name for name, one in self._jobs.items() if one.future.done()]
            for old in finished[: -self._kept]:
                del self._jobs[old]
        if not wait([job.future], timeout=PATIENCE_SECONDS).done:
            raise NotYetError(*job.progress)
        try:
            return job.future.result()
        except BaseException:
            with self._lock:
                if self._jobs.get(key) is job:  # else another question tries again already
                    del self._jobs[key]
            raise

    def close(self) -> None:
        """Begins nothing more; what runs ends when it next tells how far it is."""
        with self._lock:
            self._is_closed = True
            for job in self._jobs.values():
                job.is_cancelled = True
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Job(Generic[T]):
    future: Future[T]

    def __init__(self, size: int) -> None:
        self.progress = (0, size)
        self.is_cancelled = False

    def advance(self, done: int, total: int) -> None:
        if self.is_cancelled:
            raise CancelledLoadError(_CLOSED)
        self.progress = (done, total)
