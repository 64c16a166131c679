"""`deepscope.callback`: recording for loops that call something after each step."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any

from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.capture.notices import warn
from deepscope.capture.on_demand.start import tell_step
from deepscope.capture.recording import Recording, RecordingKeywords, with_schedule
from deepscope.capture.whole_run.run_watch import RunWatch
from deepscope.errors import NestedProfileError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.whole_run.further_windows import EvaluationWindow


class StepCallback:
    """A callable for loops that call something after each step, whatever they pass to it.

    Each call ends a step. The recording starts at the first call, which counts as the end of step 0; a schedule that
    would record step 0 begins at step 1. A window is saved when the schedule closes it. One that is still open is saved
    by `close`, at the end of a `with` block or at the end of the process. Takes what `deepscope.profile` takes; the
    schedule is wait=1, warmup=1, active=3 unless given.
    """

    def __init__(self, folder: str | Path = DEFAULT_FOLDER, **options: Unpack[RecordingKeywords]) -> None:
        watch = options.get("watch")
        self._watch = options["watch"] = RunWatch().listen() if watch is None else watch
        self.recording = Recording(folder, **with_schedule(options))
        self.evaluation: EvaluationWindow | None = None
        """What records an evaluation, where these take long."""
        self._state = "new"

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        """A step has ended."""
        tell_step()
        if self._state == "new":
            self._watch.end_step()
            began_ns = perf_counter_ns()
            self._start()
            self._watch.give_to_recording(perf_counter_ns() - began_ns)
        elif self._state == "open":
            self.recording.advance()

    def _start(self) -> None:
        try:
            self.recording.start_behind_first_step()
            self._state = "open"
            self._watch.evaluations = self.evaluation = self.recording.evaluation_window()
        except NestedProfileError as error:  # in the middle of the user's loop
            self._state = "closed"
            self._watch.close()
            warn(f"deepscope.callback records nothing: {error}")

    def close(self, *, complete: bool = True) -> None:
        """End the recording; calls after it do nothing. `complete=False` when an error or Ctrl-C ended the run."""
        if self._state == "open":
            self.recording.stop(complete=complete)
        self._watch.close()
        self._state = "closed"

    def __enter__(self) -> StepCallback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.recording.fail(error)
        self.close(complete=error is None)


callback = StepCallback
