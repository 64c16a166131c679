"""The recording of a training run whose framework tells of its steps, and of what comes between them."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from deepscope.capture.callback import CallbackRecording
from deepscope.capture.naming import check_template
from deepscope.capture.notices import warn
from deepscope.capture.options import checked_options
from deepscope.capture.recording import with_schedule
from deepscope.capture.whole_run.run_watch import RunWatch
from deepscope.errors import NestedProfileError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from deepscope.capture.options import OptionKeywords
    from deepscope.capture.whole_run.further_windows import EvaluationWindow
    from deepscope.records import Profile
    from deepscope.trace.format.run_account import RunPartName


class TrainingRun:
    """Records one training run after the other, each from `start` to `stop`.

    `filename` and the options are those of `deepscope.profile`; the schedule is wait=1, warmup=1, active=3 unless
    given. As a context manager it also ends a run that an exception leaves. Raises `OptionError` for an option that
    does not exist or has a value that cannot be used.
    """

    def __init__(self, *, filename: str | None = None, **options: Unpack[OptionKeywords]) -> None:
        checked_options(options)
        check_template(filename)
        self._name = filename
        self._options = with_schedule(options)
        self._watch = RunWatch()
        self._early_watch: RunWatch | None = None
        """Of a run that has not started so far."""
        self._recording: CallbackRecording | None = None
        """The newest run's."""
        self._evaluation: EvaluationWindow | None = None
        self._is_open = False
        self._has_steps = False
        """Whether the run has ended one."""
        self._is_paused = False

    @property
    def traces(self) -> list[Path]:
        """The files of the newest run, oldest first; complete once it has ended."""
        written = (one.traces for one in (self._recording, self._evaluation) if one is not None)
        return [trace for traces in written for trace in traces]

    @property
    def profile(self) -> Profile | None:
        """The analysed result of the newest run's last window; None where there is none."""
        return None if self._recording is None else self._recording.profile

    def start(self, folder: Path, *, total_steps: int | None = None, is_first_step_over: bool = False) -> None:
        """A run begins with its first step; the run before ends, as an exception may have left it.

        `is_first_step_over`: whether that is over already; it counts if `listen` was called before.
        """
        self.stop(complete=False)
        watch, self._early_watch = self._early_watch, None
        if watch is None or not is_first_step_over:
            if watch is not None:
                watch.close()
            watch = RunWatch(begins_step=not is_first_step_over).listen()
        self._watch = watch
        recording = CallbackRecording(
            folder, total_steps=total_steps, filename=self._name, watch=self._watch, **self._options
        )
        if is_first_step_over:
            self._watch.end_step()
        try:
            recording.start_behind_first_step() if is_first_step_over else recording.start()
        except NestedProfileError as error:  # in the middle of the user's training
            self._watch.close()
            warn(f"this training is not recorded: {error}")
            return
        self._recording, self._is_open, self._is_paused = recording, True, False
        self._has_steps = is_first_step_over
        self._watch.evaluations = self._evaluation = recording.evaluation_window()

    def listen(self) -> None:
        """See loaders and checkpoints from here on, for a run that `start` tells of behind its first step."""
        self._early_watch = RunWatch().listen()

    def end_step(self) -> None:
        if self._recording is not None and self._is_open:
            self.resume()
            self._recording.step()
            self._has_steps = True

    def pause(self, *, for_evaluation: bool) -> None:
        """Between two steps: what follows until `resume` belongs to none."""
        if self._recording is not None and self._is_open:
            if not self._is_paused:
                self._is_paused = True
                self._recording.pause()
            self._watch.expect_evaluation(is_next=for_evaluation)

    def resume(self) -> None:
        """The next step begins, unless it has begun already."""
        if self._recording is not None and self._is_open and self._is_paused:
            self._is_paused = False
            self._watch.expect_evaluation(is_next=False)
            self._recording.resume()

    def end_part(self, part: RunPartName) -> None:
        """An evaluation, a checkpoint or logging has ended: it took all since the last step or such part."""
        if self._is_open:
            self._watch.end_part(part)

    def stop(self, *, complete: bool = True) -> None:
        """The run is over, and its traces are written; `complete=False` where something has ended it early."""
        if self._recording is not None and self._is_open:
            if complete and self._has_steps:
                self.pause(for_evaluation=False)  # the step that has begun with the end of the last one is none
            self._is_open = False
            self._recording.stop(complete=complete)
            if self._evaluation is not None:
                self._evaluation.wait()

    def fail(self, error: BaseException) -> None:
        if self._recording is not None and self._is_open:
            self._recording.fail(error)
            self.stop(complete=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.fail(error)
        self.stop()
        if self._early_watch is not None:
            self._early_watch.close()
