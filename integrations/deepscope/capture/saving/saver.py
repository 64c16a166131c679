"""Saving off the training thread: each export is rewritten beside its final name and renamed when it is whole."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from deepscope.capture import notices, torch_compat
from deepscope.capture.audit.step_audit import Audited
from deepscope.capture.counters.sampler import Counted
from deepscope.capture.naming import remove_raw
from deepscope.capture.options import RecordingOptions
from deepscope.capture.process_hooks import signals
from deepscope.capture.process_hooks.open_recorders import known_or
from deepscope.capture.saving.event_text import json_bytes
from deepscope.capture.saving.header import add_audit, add_workers, bare
from deepscope.capture.saving.retention import (
    LARGE_BYTES,
    keep_job,
    recover,
    remove_oldest,
    sweep_worker_folders,
    traces_bytes,
)
from deepscope.capture.saving.rewrite import Instructions, rewrite
from deepscope.capture.saving.writer import request
from deepscope.capture.source_files import git_state
from deepscope.capture.workers import WorkerTiming
from deepscope.errors import DeepScopeError, RecorderError, TraceError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError
from deepscope.trace.format.header import UnrecordedStepTimes

IN_PROCESS_BYTES = 4 << 20
"""Exports up to this size are rewritten here (some tens of milliseconds); starting a process would take longer."""
_KILL = int(getattr(signal, "SIGKILL", 9))
looked_after: set[Path] = set()
"""Folders that this process has swept of what dead processes left behind."""
_spoken_of: set[Path] = set()
_profiled: dict[str, threading.Thread] = {}
"""Traces whose writers are leaving their profiles in the cache, and who waits for that."""


@dataclass(frozen=True, kw_only=True)
class SaveJob:
    """A trace to be written."""

    instructions: Instructions
    otherwise: SaveJob | None = None
    """What to write in its place when it holds no operator."""
    worker_timings: Callable[[], list[WorkerTiming]] = list
    """Collects what data-loader workers report; it may wait for them a little."""
    is_first: bool = True
    """Whether this rank tells where the traces lie."""
    local_rank: int = 0
    on_end: Callable[[], None] = lambda: None
    """Called once the trace is written, or is known not to be, on the thread that did it."""
    on_written: Callable[[Path], None] = lambda _: None
    """Called with the trace once it is written, before anybody is told: writes what lies beside it."""
    counted: Callable[[], Counted] = Counted
    """Gives what was counted of the machine; it may wait for the last sample."""
    plain_steps: Callable[[], UnrecordedStepTimes | None] = lambda: None
    """Gives the times of steps outside the window; it may wait for some to come."""
    audited: Callable[[], Audited | None] = lambda: None
    """Gives what was found in steps behind the window; it may wait for them."""


class Saver:
    """Writes traces one after the other on threads that the interpreter waits for before it ends."""

    def __init__(self, options: RecordingOptions) -> None:
        self.traces: list[Path] = []
        self._is_writing = False
        self.is_awaited = False
        """Whether somebody waits: then the traces go before other processes' work."""
        self._on_ready = options.on_trace_ready
        self._keep_last = options.keep_last
        self._max_total_bytes = options.max_total_bytes
        self._is_announced = False
        self._threads: list[threading.Thread] = []
        self._problems: list[tuple[str, BaseException | None]] = []

    @property
    def is_writing(self) -> bool:
        """Whether a trace is being written or its profile made, which slows the run down."""
        return self._is_writing or any(thread.is_alive() for thread in tuple(_profiled.values()))

    def save(self, job: SaveJob) -> None:
        """Write the trace; returns at once where a thread can be had. What goes wrong is told by `wait`."""
        self.traces.append(Path(job.instructions.target))
        before = self._threads[-1] if self._threads else None
        thread = threading.Thread(target=self._run, args=(job, before), name="deepscope-saver", daemon=False)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, and some versions of it start no more threads then
            self._run(job, before)
        else:
            self._threads.append(thread)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return once all is written, warning of what was not. In a forked child the threads are not there.

        Returns whether all is; with a time-out it may not be.
        """
        self.is_awaited = True
        try:
            return self._joined(None if timeout_s is None else time.monotonic() + timeout_s)
        finally:
            self.is_awaited = False

    def _joined(self, until: float | None) -> bool:
        for thread in self._threads:
            if thread is threading.current_thread():
                break  # on_trace_ready asks for the profile; those behind it wait for this one
            thread.join(None if until is None else max(until - time.monotonic(), 0))
            if thread.is_alive():
                return False
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        problems, self._problems = self._problems, []
        for message, error in problems:
            notices.warn(message, error)
        return True

    def _run(self, job: SaveJob, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        try:
            self._save(job)
        finally:
            self._is_writing = False
            job.on_end()

    def _save(self, job: SaveJob) -> None:
        try:
            path = self._written(job)
        except Exception as error:  # noqa: BLE001 - a disk that is full, a process that is killed: told by wait()
            self._problems.append(("the trace was not saved", error))
            with suppress(ValueError):
                self.traces.remove(Path(job.instructions.target))
            return
        if path is not None:
            self._tell(path, job)
        with suppress(Exception):  # other recordings' files: never at the cost of this one
            _recover(Path(job.instructions.target).parent)
            self._look_after(job)

    def _tell(self, path: Path, job: SaveJob) -> None:
        if job.is_first and not self._is_announced:
            self._is_announced = True
            notices.announce(path, job.instructions.header.source)
        if self._on_ready is not None:
            try:
                self._on_ready(path)
            except Exception as error:  # noqa: BLE001 - the caller's function, on a thread where nobody could catch it
                self._problems.append(("on_trace_ready failed", error))

    def _look_after(self, job: SaveJob) -> None:
        """Keep the folder's size in bounds, or say once that it has none."""
        folder = Path(job.instructions.target).parent
        if self._keep_last is not None or self._max_total_bytes is not None:
            removed = remove_oldest(
                folder,
                keep_last=self._keep_last,
                max_total_bytes=self._max_total_bytes,
                run_id=job.instructions.header.run_id,
            )
            self.traces[:] = [path for path in self.traces if path not in removed]
        elif job.is_first and folder not in _spoken_of and (size := traces_bytes(folder)) > LARGE_BYTES:
            _spoken_of.add(folder)
            bounded = "max_total_size= or keep_last= keeps that in bounds"
            self._problems.append((f"{folder} holds {size / 1e9:.1f} GB of traces; {bounded}", None))

    def _written(self, job: SaveJob) -> Path | None:
        """The file written; None where there was nothing to write."""
        target = Path(job.instructions.target)
        raw = Path(job.instructions.raw)
        header = job.instructions.header
        notes = header.notes
        known_or(None, "data-loader workers", lambda: add_workers(header, job.worker_timings()), notes)
        counted = known_or(Counted(), "counters", job.counted, notes)
        job.instructions.counters, header.counters = counted.tracks, counted.account
        header.git = known_or(None, "its commit", lambda: git_state(header.project_root or "."), notes)
        can_be_made_later = keep_job(job.instructions)
        known_or(None, "what was looked at", lambda: add_audit(header, job.audited()), notes)
        header.plain_steps = job.plain_steps()
        self._is_writing = True
        try:
            is_written = _rewritten(job.instructions, job.local_rank, is_awaited=self.is_awaited)
        except BaseException as error:
            if can_be_made_later and not isinstance(error, TraceError):
                raise RecorderError(f"{error}; the next recording into {target.parent} tries again") from error
            remove_raw(raw)
            raise
        remove_raw(raw)
        other = job.otherwise
        if is_written:
            try:
                job.on_written(target)
            except OSError as error:
                self._problems.append(("the memory snapshot was not saved", error))
            if other is not None:
                remove_raw(Path(other.instructions.raw))
            return target
        self.traces.remove(target)
        if other is None:
            return None
        self.traces.append(Path(other.instructions.target))
        return self._written(other)


def _rewritten(instructions: Instructions, local_rank: int = 0, *, is_awaited: bool = False) -> bool:
    """Write the trace; with a bare header where the one that it was to have cannot be written."""
    try:
        if Path(instructions.raw).stat().st_size <= IN_PROCESS_BYTES or not sys.executable:
            return rewrite(instructions)
        return _in_another_process(instructions, local_rank, is_awaited=is_awaited)
    except (OSError, MemoryError, DeepScopeError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is: no window is lost for its header
        instructions.header = bare(instructions.header, notices.error_words(error))
        instructions.counters, instructions.clock_readings = [], []
        return rewrite(instructions)


def _in_another_process(instructions: Instructions, local_rank: int, *, is_awaited: bool) -> bool:
    """Rewriting holds the interpreter's lock for most of its time; here the training run would feel that.

    If the process fails, the export is rewritten here. Not so if memory ran out twice, or it was killed twice (which
    comes to the same): here that would happen to the run.
    """
    encoded = json_bytes(msgspec.to_builtins(instructions))
    words = request(encoded, raw=Path(instructions.raw), local_rank=local_rank, is_awaited=is_awaited)
    for _ in range(2):
        process = HelperProcess.start("deepscope.capture.saving.writer", is_quiet=True)
        if process is None:
            return rewrite(instructions)
        is_left = False
        try:
            is_written = msgspec.json.decode(process.ask(words), type=bool)
            is_left = is_written and _leave_to_finish(process, instructions.target)
        except MemoryError:
            continue
        except ProcessEndedError as ended:
            if ended.exit_code != -_KILL:
                return rewrite(instructions)
        except (MessageError, msgspec.MsgspecError):  # somebody's start-up made it talk
            return rewrite(instructions)
        else:
            return is_written
        finally:
            if not is_left:
                process.end()
    raise RecorderError("the process that writes the trace was killed twice (out of memory?)")


def _leave_to_finish(process: HelperProcess, target: str) -> bool:
    """Have the process go on to the trace's profile, and say whether it does; the end of this one does not wait."""

    def finish() -> None:
        process.finish()
        _profiled.pop(target, None)

    waiting = _profiled[target] = threading.Thread(target=finish, name="deepscope-profile", daemon=True)
    try:
        waiting.start()
    except RuntimeError:  # the interpreter is ending
        del _profiled[target]
        return False
    return True


def wait_for_profile(trace: Path) -> None:
    """Return once the cache has the profile of a trace that this process has had written, or is known not to get it."""
    waiting = _profiled.get(str(trace))
    if waiting is not None:
        waiting.join()


def _recover(folder: Path) -> None:
    """Once in this process: look after what killed processes have left."""
    if folder in looked_after:
        return
    looked_after.add(folder)
    sweep_worker_folders()
    for path in recover(folder, _rewritten):
        notices.announce_recovered(path)


LONGEST_S = 5.0
"""Enough for a small trace, which is whole then when the block has ended."""
_PART = 10
"""A tenth of the shortest time-out of any process group."""


def patience_s(world_size: int) -> float | None:
    """Seconds; None for as long as it takes, where nobody else is there."""
    if world_size < 2:
        return None
    shortest = torch_compat.shortest_timeout_s()
    return LONGEST_S if shortest is None else min(LONGEST_S, shortest / _PART)


class Pending:
    """One of them."""

    def __init__(self) -> None:
        self._is_over = False

    def keep(self, save: Callable[[], None]) -> bool:
        """Have SIGTERM call `save` until this is over; returns whether it is not."""
        if not self._is_over:
            signals.save_at_sigterm(self, save)
        if self._is_over:  # since then, on its own thread
            signals.save_no_more(self)
        return not self._is_over

    def end(self) -> None:
        self._is_over = True
        signals.save_no_more(self)
