"""`deepscope.callback`: recording for loops that call something after each step, whoever calls it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from deepscope.capture import process_identity as process
from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.capture.notices import warn
from deepscope.capture.on_demand.start import tell_step
from deepscope.capture.recorder import Recorder
from deepscope.capture.recording import Recording, RecordingKeywords, with_schedule
from deepscope.capture.schedule import Plan, Schedule, StepAction
from deepscope.capture.session import RecordingSession
from deepscope.capture.whole_run.further_windows import (
    EVALUATION_STAGE,
    EVALUATION_WORTH,
    EVALUATION_WORTH_LOOKING,
    EvaluationWindow,
    SecondWindow,
    at_once,
)
from deepscope.capture.whole_run.run_watch import RunWatch
from deepscope.errors import NestedProfileError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import RecordingOptions


class CallbackRecording(Recording):
    """A recording whose steps a callback ends: it may begin behind the first one, and open further windows.

    Other windows are recorded where no rank has to agree on them, and no clock says when.
    """

    def __init__(self, folder: str | Path = DEFAULT_FOLDER, **options: Unpack[RecordingKeywords]) -> None:
        super().__init__(folder, **options)
        self._is_behind_first_step = False
        """Whether it began there: nobody ends it then."""
        self._second = SecondWindow(
            self._new_second_recorder,
            is_free=self._is_free_for_second,
            first=lambda: self._recorder.timer.recorded,
            works_elsewhere=torch.cuda.is_initialized,
        )
        self._ended_steps = self._steps_ns = 0
        """Of the run up to its last step, with one before the start that the recording knows of."""

    def _is_abandoned(self) -> bool:
        is_nobodys = self._is_behind_first_step and self._site is not None and self._site.is_of_this_thread
        return is_nobodys or super()._is_abandoned()

    def start_behind_first_step(self) -> None:
        """Begin at the end of step 0; a schedule that does not let it pass begins at step 1."""
        if Schedule.of(self._options).action(0) is StepAction.PASS:
            self.start()
            self._recorder.step()
        else:
            self._afresh(first_step=1).start()
        self._is_behind_first_step = True
        self._ended_steps = 1

    def advance(self) -> None:
        super().advance()
        if self._watch is not None:
            self._ended_steps += 1
            before_ns, self._steps_ns = self._steps_ns, self._watch.steps_ns
            self._give_to_recording(partial(self._second.end_step, self._steps_ns - before_ns))

    def pause(self) -> None:
        super().pause()
        self._give_to_recording(self._second.pause)

    def resume(self) -> None:
        super().resume()
        self._give_to_recording(self._second.resume)

    def _end_recorders(self, *, complete: bool) -> None:
        super()._end_recorders(complete=complete)
        self._second.stop()
        self._second.wait()

    def wait(self) -> None:
        super().wait()
        self._second.wait()

    @property
    def traces(self) -> list[Path]:
        """The files written, oldest first."""
        return super().traces + self._second.traces

    def follow_steps(self) -> None:
        """Record a second window where the first one is not like the steps behind it; once started.

        Not where ranks would have to agree on it, or the clock says when.
        """
        if self._watch is not None and self._may_record_beside:
            self._steps_ns = self._watch.steps_ns
            self._second.follow()

    def _new_second_recorder(self, steps: int) -> Recorder:
        options = replace(at_once(self._options), warmup=1, active=steps)
        return self._beside(options, 1 + steps, first_step=self._ended_steps)

    def _is_free_for_second(self) -> bool:
        is_evaluation_open = self._watch is not None and self._watch.is_evaluation_open
        return self._recorder.is_at_rest and not self._recorder.is_writing and not is_evaluation_open

    @property
    def _may_record_beside(self) -> bool:
        """Whether other windows of this run can be recorded: no rank has to agree on them, and no clock says when."""
        return self._recorder.session.is_chosen and self._options.time is None and process.find_world_size() == 1

    def _beside(
        self, options: RecordingOptions, total: int | None = None, *, stage: str = "", first_step: int = 0
    ) -> Recorder:
        """What records another window of this run, while this recording rests."""
        return Recorder(
            RecordingSession(options, name=self._name, stage=stage, run_id=self._recorder.session.run_id),
            Plan(Schedule.of(options, total)),
            folder=self._folder,
            first_step=first_step,
            owner=self._recorder,
            workers=self._workers,
            counts_run=False,
        )

    def evaluation_window(self, stage: str = EVALUATION_STAGE) -> EvaluationWindow | None:
        """One for this run's evaluations; None where ranks would have to agree on it, or the clock says when.

        It opens before this recording has started, or once that is at rest.
        """
        if not self._may_record_beside:
            return None
        options = replace(at_once(self._options), topics=None)

        def make(batches: int | None) -> Recorder:
            is_short = batches is not None and batches <= options.active
            of_all = replace(options, warmup=0, active=batches) if is_short and batches else options
            return self._beside(of_all, batches, stage=stage)

        return EvaluationWindow(
            make,
            self._is_free,
            batches=int(options.warmup) + options.active + 1,
            worth=EVALUATION_WORTH_LOOKING if options.audit else EVALUATION_WORTH,
        )

    def _is_free(self) -> bool:
        """Whether it has not started, or is at rest."""
        return self._site is None or (self._recorder.is_at_rest and self._second.is_at_rest)


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
        self.recording = CallbackRecording(folder, **with_schedule(options))
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
