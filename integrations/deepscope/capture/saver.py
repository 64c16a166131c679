"""Saving off the training thread: each export is rewritten beside its final name and renamed when it is whole."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from deepscope.capture import notices
from deepscope.capture.git_state import git_state
from deepscope.capture.naming import remove_raw
from deepscope.capture.scopes import add_workers
from deepscope.capture.workers import WorkerTiming
from deepscope.errors import RecorderError
from deepscope.trace.rewrite import Instructions, Outcome, rewrite
from deepscope.trace.splice import json_bytes

__all__ = ["Job", "Saver"]

_IN_PROCESS_BYTES = 4 << 20
"""Exports up to this size are rewritten here (some tens of milliseconds); starting a process would take longer."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A trace to be written."""

    instructions: Instructions
    otherwise: Job | None = None
    """What to write in its place when it holds no operator."""
    worker_timings: Callable[[], list[WorkerTiming]] = list
    """Collects what data-loader workers report; it may wait for them a little."""


class Saver:
    """Writes traces one after the other on threads that the interpreter waits for before it ends."""

    def __init__(self, *, on_ready: Callable[[Path], Any] | None, announces: bool) -> None:
        self.traces: list[Path] = []
        self._on_ready = on_ready
        self._announces = announces
        self._threads: list[threading.Thread] = []
        self._problems: list[tuple[str, BaseException]] = []

    def save(self, job: Job) -> None:
        """Write the trace; returns at once where a thread can be had. What goes wrong is told by `wait`."""
        self.traces.append(Path(job.instructions.target))
        before = self._threads[-1] if self._threads else None
        thread = threading.Thread(target=self._run, args=(job, before), name="deepscope-saver")
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, and some versions of it start no more threads then
            self._run(job, before)
        else:
            self._threads.append(thread)

    def wait(self) -> None:
        """Return once all is written, warning of what was not. In a forked child the threads are not there."""
        for thread in self._threads:
            if thread is threading.current_thread():
                break  # on_trace_ready asks for the profile; those behind it wait for this one
            thread.join()
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        problems, self._problems = self._problems, []
        for message, error in problems:
            notices.warn(message, error)

    def _run(self, job: Job, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        try:
            path = self._written(job)
        except Exception as error:  # noqa: BLE001 - a disk that is full, a process that is killed: told by wait()
            self._problems.append(("the trace was not saved", error))
            with suppress(ValueError):
                self.traces.remove(Path(job.instructions.target))
            return
        if path is None:
            return
        if self._announces:
            self._announces = False
            notices.announce(path, job.instructions.header["source"])
        if self._on_ready is not None:
            try:
                self._on_ready(path)
            except Exception as error:  # noqa: BLE001 - the caller's function, on a thread where nobody could catch it
                self._problems.append(("on_trace_ready failed", error))

    def _written(self, job: Job) -> Path | None:
        """The file written; None where there was nothing to write."""
        target = Path(job.instructions.target)
        raw = Path(job.instructions.raw)
        add_workers(job.instructions.header, job.worker_timings())
        job.instructions.header["git"] = git_state(job.instructions.header["project_root"] or ".")
        try:
            outcome = _rewritten(job.instructions)
        finally:
            remove_raw(raw)
        other = job.otherwise
        if outcome.written:
            if other is not None:
                remove_raw(Path(other.instructions.raw))
            return target
        self.traces.remove(target)
        if other is None:
            return None
        self.traces.append(Path(other.instructions.target))
        return self._written(other)


def _rewritten(instructions: Instructions) -> Outcome:
    if Path(instructions.raw).stat().st_size <= _IN_PROCESS_BYTES or not sys.executable:
        return rewrite(instructions)
    return _in_another_process(instructions)


def _in_another_process(instructions: Instructions) -> Outcome:
    """Rewriting holds the interpreter's lock for most of its time; here the training run would feel that."""
    root = str(Path(__file__).resolve().parents[2])
    program = f"import sys; sys.path.insert(0, {root!r}); from deepscope.trace.rewrite import main; main()"
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-c", program],
            input=json_bytes(msgspec.to_builtins(instructions)),
            capture_output=True,
            check=False,
        )
    except OSError:  # no more processes allowed
        return rewrite(instructions)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RecorderError(words[-1] if words else f"the writing process ended with code {done.returncode}")
    return msgspec.json.decode(done.stdout, type=Outcome)
