"""What a rank that records has from when its recorder is made: hooks of lines, clocks in workers, counters."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from deepscope.capture.compiled.captures import CaptureHold
from deepscope.capture.compiled.graphs import ProvenanceHold
from deepscope.capture.counters.machine import Machine
from deepscope.capture.counters.sampler import Counted, Sampler, SamplingThread
from deepscope.capture.lines import Limits, LineRecorder, UserCode
from deepscope.capture.naming import current_folder, run_counters_path
from deepscope.capture.options import RecordingOptions
from deepscope.capture.saving.event_text import counter_events, json_bytes
from deepscope.capture.saving.header import run_header
from deepscope.capture.session import RecordingSession
from deepscope.capture.workers import WorkerClocks
from deepscope.trace.format.header import Clock, Header
from deepscope.trace.format.run_account import renamed_when_whole

KEEP_EVERY_S = 300.0
"""So often the file is written: of a run that is killed there is what was counted up to then."""
_PATIENCE_S = 30.0
"""So long the end of a run waits for the file at most: of hundreds of cores it takes a second, on a slow disk more."""
_IN_WINDOWS = 10
"""Samples in windows for each one of the run."""


class RunCounters:
    """Samples from `start` to `stop` into one file, which is bounded however long the run is.

    `header` describes the run; `path` is where the file goes. Both are asked on the sampling thread.
    """

    def __init__(self, interval_s: float, header: Callable[[], Header], path: Callable[[], Path]) -> None:
        self._interval_s = interval_s * _IN_WINDOWS
        self._header = header
        self._path = path
        self._target: Path | None = None
        self._thread: SamplingThread | None = None
        self._owner = os.getpid()

    def start(self) -> None:
        if self._thread is None:
            self._owner = os.getpid()
            self._target = None
            self._thread = SamplingThread(Machine(), self._interval_s, keep=self._keep, keep_every_s=KEEP_EVERY_S)
            self._thread.start()
            self._thread.go.set()

    def stop(self) -> None:
        """Count no longer, and return once the file is there; a second time, and in a forked child, nothing."""
        thread, self._thread = self._thread, None
        if thread is not None and os.getpid() == self._owner:
            thread.stop()
            thread.wait(_PATIENCE_S)

    def _keep(self, counted: Counted) -> None:
        with suppress(OSError):  # a disk that is full: the traces say so
            self._write(counted)

    def _write(self, counted: Counted) -> None:
        if not counted.tracks:
            return
        header = self._header()
        header.counters = counted.account
        target = self._target = self._target or self._path()
        target.parent.mkdir(parents=True, exist_ok=True)
        base_ns = min(track.at_ns[0] for track in counted.tracks)
        with renamed_when_whole(target) as part, gzip.open(part, "wb", compresslevel=6) as stream:
            stream.write(b'{"schemaVersion":1,"deepscope":' + json_bytes(msgspec.to_builtins(header)))
            stream.write(b',"baseTimeNanoseconds":%d,"traceEvents":[\n' % base_ns)
            stream.write(b",\n".join(counter_events(counted.tracks, header.pid, Clock(), base_ns)))
            stream.write(b"\n]}\n")


def counters_of_run(session: RecordingSession, folder: Path) -> RunCounters | None:
    """What counts them, not started; None where the options do not ask for it. `folder`: where the file goes."""
    options, where = session.options, current_folder() / folder
    if options.counters != "run":
        return None
    return RunCounters(
        options.counter_interval, partial(run_header, session), lambda: run_counters_path(where, session.worker)
    )


class Resources:
    """Of one recorder; nothing of it is at work before `take`.

    `workers`: the clocks in data-loader workers, where the caller arms them. `run_counters`: of the whole run, where
    they are this recorder's.
    """

    def __init__(
        self, session: RecordingSession, workers: WorkerClocks | None, run_counters: RunCounters | None
    ) -> None:
        options, code = session.options, session.user_code
        self.lines = _line_recorder(options, code)
        self._own_workers = WorkerClocks(code) if workers is None and options.lines else None
        self.workers = self._own_workers if workers is None else workers
        self.counters = Sampler(Machine, interval_s=options.counter_interval) if options.counters != "off" else None
        self._holds = (ProvenanceHold(), CaptureHold(code)) if options.compiled_lines else ()
        self._run_counters = run_counters

    def take(self) -> None:
        """The recorder starts: code that is compiled, or captured, from here on knows its lines."""
        for hold in self._holds:
            hold.take()
        if self._run_counters is not None:
            self._run_counters.start()

    def arm(self) -> None:
        """Let workers in: they are forked when an epoch begins, long before a window may open."""
        if self._own_workers is not None:
            self._own_workers.arm()

    def release(self) -> None:
        """No window will open any more; counters of the whole run go on."""
        for hold in self._holds:
            hold.release()
        if self._own_workers is not None:
            self._own_workers.retire()

    def stop_run_counters(self) -> None:
        """The run is over."""
        if self._run_counters is not None:
            self._run_counters.stop()

    def disarm(self) -> None:
        """All traces are written."""
        if self._own_workers is not None:
            self._own_workers.disarm()


def _line_recorder(options: RecordingOptions, code: UserCode) -> LineRecorder | None:
    """The recorder of lines and modules, which hang on the same hooks; None where neither is wanted."""
    if not options.lines and not options.modules:
        return None
    limits = Limits(max_slowdown=options.max_slowdown, max_entries=options.max_entries)
    return LineRecorder(
        code, lines=options.lines, modules=options.modules, limits=limits, libraries=options.libraries == "hot"
    )
