"""Results that take long, made by threads while questions come again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import Generic, TypeVar

from deepscope.processes import Progress
from deepscope.store.loader import CancelledLoadError

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
            job = self._jobs.get(key)
            if self._is_closed:
                raise CancelledLoadError(_CLOSED)
            if job is None:
                job = self._jobs[key] = _Job(size)
                job.future = self._threads.submit(make, job.advance)
            self._jobs.move_to_end(key)
            for old in [name for name, one in self._jobs.items() if one.is_done][: -self._kept or None]:
                del self._jobs[old]
        try:
            return job.result()
        except NotYetError:
            raise
        except BaseException:
            with self._lock:
                self._jobs.pop(key, None)
            raise

    def close(self) -> None:
        """Begins nothing more; what runs ends when it next tells how far it is."""
        with self._lock:
            self._is_closed = True
            for job in self._jobs.values():
                job.is_cancelled = True
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Job(Generic[T]):
    def __init__(self, size: int) -> None:
        self._progress = (0, size)
        self.is_cancelled = False
        self.future: Future[T] = Future()

    @property
    def is_done(self) -> bool:
        return self.future.done()

    def advance(self, done: int, total: int) -> None:
        if self.is_cancelled:
            raise CancelledLoadError(_CLOSED)
        self._progress = (done, total)

    def result(self) -> T:
        if not wait([self.future], timeout=PATIENCE_SECONDS).done:
            raise NotYetError(*self._progress)
        return self.future.result()
