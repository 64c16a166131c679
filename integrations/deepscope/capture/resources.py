"""What a rank that records has from when its recorder is made: hooks of lines, clocks in workers, counters."""

from __future__ import annotations

from pathlib import Path

from deepscope.capture.compiled.captures import CaptureHold
from deepscope.capture.compiled.level import ProvenanceHold
from deepscope.capture.counters.machine import sampler_of
from deepscope.capture.lines import Limits, LineRecorder, UserCode
from deepscope.capture.options import RecordingOptions
from deepscope.capture.run_counters import RunCounters
from deepscope.capture.saving.header import RecordingSession
from deepscope.capture.workers.training_side import WorkerClocks


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
        self.counters = sampler_of(options)
        self._provenance = ProvenanceHold() if options.compiled_lines else None
        self._captures = CaptureHold(code) if options.compiled_lines else None
        self._run_counters = run_counters

    @property
    def run_counters(self) -> Path | None:
        """The file with the counters of the whole run, once it is written."""
        return None if self._run_counters is None else self._run_counters.file

    def take(self) -> None:
        """The recorder starts: code that is compiled, or captured, from here on knows its lines."""
        if self._provenance is not None:
            self._provenance.take()
        if self._captures is not None:
            self._captures.take()
        if self._run_counters is not None:
            self._run_counters.start()

    def arm(self) -> None:
        """Let workers in: they are forked when an epoch begins, long before a window may open."""
        if self._own_workers is not None:
            self._own_workers.arm()

    def release(self) -> None:
        """No window will open any more; counters of the whole run go on."""
        if self._provenance is not None:
            self._provenance.release()
        if self._captures is not None:
            self._captures.release()
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
