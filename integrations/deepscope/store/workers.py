"""The process that reads traces for a server. It is kept for a while after an answer: the next question comes soon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer

from deepscope.processes import HelperProcess

WORKER = "deepscope.worker"
IDLE_SECONDS = 60.0
"""Then it ends, so that a server that nobody asks is small."""

_lock = Lock()
_idle: list[HelperProcess] = []
"""At most one."""
_environment: dict[str, str] = {}
"""Which it was started in: it says where the cache is."""


@contextmanager
def worker() -> Iterator[HelperProcess | None]:
    """A process for one question; None where none can be started. It ends where the question fails."""
    process = _take()
    try:
        yield process
    except BaseException:
        if process is not None:
            process.end()
        raise
    if process is not None:
        _give_back(process)


def _take() -> HelperProcess | None:
    with _lock:
        process = _idle.pop() if _idle else None
        is_same, environment = _environment == os.environ, dict(os.environ)
        _environment.clear()
        _environment.update(environment)
    if process is not None:
        if process.is_running and is_same:
            return process
        process.end()
    return HelperProcess.start(WORKER, is_quiet=True)


def _give_back(process: HelperProcess) -> None:
    """Keeps a process that has answered; it may still be writing what it parsed."""
    with _lock:
        is_kept = not _idle
        if is_kept:
            _idle.append(process)
    if not is_kept:
        process.end()
        return
    timer = Timer(IDLE_SECONDS, _end, (process,))
    timer.daemon = True
    timer.start()


def _end(process: HelperProcess) -> None:
    with _lock:
        if process not in _idle:
            return  # somebody took it; it has another timer once it is back
        _idle.remove(process)
    process.end()
