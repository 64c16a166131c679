"""The process that reads for a server: one, started when it is needed and ended when it is idle.

Reading a large trace takes hundreds of megabytes and holds the interpreter for seconds; in a process of its own neither
reaches a server, running out of memory does not end it, and cancelling is ending the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Timer
from typing import TYPE_CHECKING, TypeVar

import msgspec

from deepscope.errors import DeepScopeError, NotATraceError, TraceError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, Progress
from deepscope.records import Profile
from deepscope.store.files import TraceFile
from deepscope.store.load import LoadRequest, cached_profile
from deepscope.store.ranks import ReadRanks, kept_ranks
from deepscope.store.selection import TraceSelection, select
from deepscope.store.single_trace import WORKER, ColumnsRequest
from deepscope.trace.kineto.file_head import EMPTY
from deepscope.trace.kineto.remote import is_url

if TYPE_CHECKING:
    from deepscope.records.memory import SnapshotReport


T = TypeVar("T")

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


def ask_worker(request: ColumnsRequest, progress: Progress, decode: Callable[[bytes], T], *, what: str = "it") -> T:
    """A process's answer, read by `decode`; `what` of the file was to be read, for the message where it ends early.

    Raises:
        TraceError: the file cannot be read, or no process could be started.
    """
    path = request.file.path
    try:
        with worker() as process:
            if process is None:
                raise TraceError(f"{path}: no process could be started to read it")
            return decode(process.ask(msgspec.msgpack.encode(request), progress))
    except (ProcessEndedError, MessageError, MemoryError, ValueError, msgspec.MsgspecError) as error:
        why = "not enough memory to read it" if isinstance(error, MemoryError) else f"reading {what} ended early"
        raise TraceError(f"{path}: {why}") from error


def read_snapshot_apart(file: TraceFile, progress: Progress) -> SnapshotReport:
    """`load_snapshot` in the process, which a file from a stranger may cost its time and memory.

    Raises:
        TraceError: as `load_snapshot`; or the process ended early.
    """
    from deepscope.records.memory import SnapshotReport

    return ask_worker(ColumnsRequest(file, "snapshot"), progress, msgspec.msgpack.Decoder(SnapshotReport).decode)


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


class CancelledLoadError(DeepScopeError):
    """Loading was cancelled."""


@dataclass(eq=False)
class Loader:
    """One load that can be cancelled from another thread."""

    request: LoadRequest
    _process: HelperProcess | None = None
    _is_cancelled: bool = False

    def __post_init__(self) -> None:
        self._lock = Lock()

    def cancel(self) -> None:
        """Ends the load; `load` raises CancelledLoadError."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.end()

    def load(self, progress: Progress | None = None) -> Profile:
        """Loads, from the cache or in a process of its own; called from a thread of its own.

        Raises:
            CancelledLoadError: `cancel` was called.
            TraceError, OptionError: as `load_profile`.
        """
        profile = cached_profile(self.request)
        return profile or self._answer(self.request, Profile, progress)

    def ranks(self, progress: Progress | None = None) -> ReadRanks:
        """The request's ranks one by one, from the cache or in a process of its own; called from a thread of its own.

        Raises:
            CancelledLoadError: `cancel` was called.
            TraceError, OptionError: as `read_selected`.
        """
        request = self.request
        selection = request.selection or select(request.path, stage=request.stage)
        kept = kept_ranks(selection, request.view, partial=request.partial)
        return kept or self._answer(msgspec.structs.replace(request, answer="ranks"), ReadRanks, progress)

    def _answer(self, request: LoadRequest, kind: type[T], progress: Progress | None) -> T:
        _check_empty(request.selection)
        try:
            body = msgspec.msgpack.encode(request)
        except UnicodeEncodeError:
            raise TraceError(f"{self.request.path}: its path has bytes that are no text; rename it") from None
        try:
            with worker() as process:
                if process is None:
                    raise TraceError(f"{self.request.path}: no process could be started to read it")
                self._follow(process)
                answer = msgspec.msgpack.decode(process.ask(body, progress), type=kind)
                self._follow(None)
        except (ProcessEndedError, MessageError, MemoryError, msgspec.MsgspecError) as error:
            if self._is_cancelled:
                raise self._cancelled() from None
            raise TraceError(f"{self.request.path}: {_why(error)}") from error
        return answer

    def _follow(self, process: HelperProcess | None) -> None:
        """From now on `cancel` has to end this process, if any."""
        with self._lock:
            self._process = process
            if self._is_cancelled:
                raise self._cancelled()

    def _cancelled(self) -> CancelledLoadError:
        return CancelledLoadError(f"{self.request.path}: loading was cancelled")


def _check_empty(selection: TraceSelection | None) -> None:
    """Raises NotATraceError where all files are empty, as a killed training leaves them: no process is asked for it."""
    if (
        selection is not None
        and selection.files
        and not any(file.size_bytes or is_url(file.path) for file in selection.files)
    ):
        raise NotATraceError(f"{selection.files[0].path}: {EMPTY}")


def _why(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory to read it"
    if isinstance(error, ProcessEndedError):
        code = error.exit_code
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"reading it ended with {ended} (not enough memory?); try `deepscope report` on it in a terminal"
    return f"its profile could not be handed over: {error}"
