"""The recorder: walks a plan step by step, opens and closes windows, and has each one saved."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerAction

from deepscope.capture.annotations import Annotations
from deepscope.capture.line_scopes import arm, line_recorder, worker_clocks
from deepscope.capture.options import RecordingOptions
from deepscope.capture.pace import Pace
from deepscope.capture.plan import Plan, is_recording
from deepscope.capture.saving import naming
from deepscope.capture.saving.header import Session, checked_metadata
from deepscope.capture.saving.rewrite import Instructions
from deepscope.capture.saving.saver import Job, Saver
from deepscope.capture.saving.trace_folder import check_space, make_trace_folder
from deepscope.capture.surroundings import open_recorders as turns
from deepscope.capture.surroundings import termination
from deepscope.capture.surroundings.failsafe import guarded
from deepscope.capture.surroundings.interrupts import held_back
from deepscope.capture.window import Window
from deepscope.capture.workers.training_side import WorkerClocks
from deepscope.errors import RecorderError
from deepscope.trace.format.span_names import PHASE_ANNOTATIONS, WINDOW_NAME, step_name

if TYPE_CHECKING:
    from deepscope.records import Profile

__all__ = ["Recorder"]


class Recorder:
    """Records one stage of a run: `start`, `step` after each step, `stop`.

    One thread drives it. Nothing that goes wrong inside (a full disk, a profiler of somebody else's) reaches the run:
    it costs one `RecordingWarning`, and the recorder does nothing from there on. Only wrong use raises.

    `folder`: where the traces go; a function is called when the first one is written. `name`: first part of the
    files' names, else host and process. `plan`: the steps that are recorded; None records from `start` to `stop`.
    Where it does not know how many steps there will be, the first step is recorded, too, and kept in case the run
    ends before the plan's own window opens.
    `first_step`: the number that the first step has in the trace. `owner`: recorders of one owner may be open at once
    and take turns; a recorder that starts while one of another owner is open raises `NestedProfileError`, unless that
    one's `is_abandoned` says that nobody will stop it any more: then it is ended. `phases`:
    annotation → phase of training, as it is when a window ends. `run_id`: the word that all traces of this run share.
    `workers`: the clocks in data-loader workers, armed by the caller before a loader starts them; without it the
    recorder arms its own when it starts.

    A schedule that can open no further window ends the recorder by itself: `step` and `stop` do nothing from there on.
    """

    def __init__(
        self,
        options: RecordingOptions,
        plan: Plan | None,
        *,
        folder: Path | Callable[[], Path],
        name: str | None = None,
        stage: str = "",
        rank: int | None = None,
        world_size: int | None = None,
        first_step: int = 0,
        versions: Mapping[str, str] | None = None,
        phases: Mapping[str, str] = PHASE_ANNOTATIONS,
        owner: object | None = None,
        run_id: str | None = None,
        workers: WorkerClocks | None = None,
        is_abandoned: Callable[[], bool] = lambda: False,
        announce: bool = True,
    ) -> None:
        self.options = options
        self._folder = folder
        self._plan = plan
        self._session = Session(
            options,
            name=name,
            stage=stage,
            rank=rank,
            world_size=world_size,
            versions=versions,
            phases=phases,
            run_id=run_id,
        )
        self._is_abandoned = is_abandoned
        self._owner = owner if owner is not None else self
        self._saver = Saver(
            on_ready=options.on_trace_ready,
            announces=announce and self._session.is_first,
            keep_last=options.keep_last,
            max_total_bytes=options.max_total_bytes,
        )
        self._lines = line_recorder(options, self._session.user_code)
        self._own_workers = worker_clocks(options, self._session.user_code) if workers is None else None
        self._workers = workers if workers is not None else self._own_workers
        self._window: Window | None = None
        self._reserve: Window | None = None
        self._step, self._planned_step = 0, -1
        self._first_step = first_step
        self._previous = ProfilerAction.NONE
        self._pace = Pace()
        self._state = "new"

    @property
    def _is_active(self) -> bool:
        return self._state == "open" and self._session.is_chosen and not self._session.is_forked

    @property
    def recording(self) -> bool:
        """Whether a window is open now."""
        return self._window is not None and self._window.is_recording and not self._session.is_forked

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody will stop this recorder, so that one of another owner may end it."""
        return self._is_abandoned()

    @property
    def traces(self) -> list[Path]:
        """The files of this recorder, oldest first; complete after `wait`."""
        return self._saver.traces

    @property
    def profile(self) -> Profile | None:
        """The analysed result of the newest trace; None where there is none."""
        self.wait()
        if not self.traces:
            return None
        from deepscope.store import load_profile

        return load_profile(self.traces[-1])

    def start(self) -> None:
        """Begin with step 0; raises `NestedProfileError` while a recorder of another owner is open."""
        if self._state == "open":
            return
        turns.enter(self, self._owner)
        self._state = "open"
        self._session.begin()
        self._step, self._planned_step = 0, -1
        self._previous = ProfilerAction.NONE
        atexit.register(self._at_exit)
        if self._session.is_chosen:
            try:
                self._begin()
            except BaseException:  # Ctrl-C; nobody will stop what they could not start
                self.stop(complete=False)
                raise
        self._pace.begin_step(is_recorded=self.recording)

    @guarded
    def _begin(self) -> None:
        if self._own_workers is not None:
            arm(self._own_workers)  # Workers are forked when an epoch begins, long before a window may open.
        if self._plan is None:
            self._open(None)
        elif self._plan.is_sure or is_recording(self._plan.action(0)) or turns.is_taken(self):
            self._follow_plan(self._plan)
        else:
            self._planned_step = 0
            self._open(0)
            self._reserve = self._window

    def expect(self, total_steps: int | None) -> None:
        """Tell during step 0 how many steps there will be; later, or where it was known, this does nothing."""
        if self._is_active and total_steps:
            self._replan(total_steps)

    @guarded
    def _replan(self, total_steps: int) -> None:
        if self._plan is None or self._plan.is_sure or self._step > 0 or self._reserve is None:
            return
        self._plan = Plan(self.options, total_steps)
        self._planned_step = 0
        self._previous = self._plan.action(0)
        if is_recording(self._previous):
            self._reserve = None  # It is the schedule's own window now.
            return
        with held_back():
            reserve, self._window, self._reserve = self._reserve, None, None
            self._end(reserve)
        termination.forget(self)
        self._follow(self._previous)

    def step(self) -> None:
        """The step has ended and the next one begins."""
        if self._is_active:
            self._pace.end_step()
            self._advance()
            self._pace.begin_step(is_recorded=self.recording)

    @guarded
    def _advance(self) -> None:
        self._step += 1
        if self._plan is None:
            if self._window is not None:
                self._window.next_step(self._first_step + self._step)
            return
        if self._reserve is not None and self._window is self._reserve:
            with held_back():
                self._window = None
                self._end(self._reserve)
        self._follow_plan(self._plan)

    def _follow_plan(self, plan: Plan) -> None:
        action = plan.action(self._planned_step + 1)
        if action is not ProfilerAction.NONE and self._window is None and turns.is_taken(self):
            return  # Another recorder of this owner has its window open; the plan waits.
        self._planned_step += 1
        self._follow(action)
        if self._window is None and plan.is_over(self._planned_step):
            self._state = "stopped"
            turns.leave(self)

    def _follow(self, action: ProfilerAction) -> None:
        """Do what leads from the action before to `action`."""
        window = self._window
        if window is not None and window.is_recording:
            if self._previous is ProfilerAction.RECORD_AND_SAVE or not is_recording(action):
                self._close(window)
            else:
                window.next_step(self._first_step + self._step)
        if action is ProfilerAction.WARMUP and self._window is None:
            with held_back():
                self._window = self._new_window()
                self._window.prepare()
        elif is_recording(action) and not self.recording:
            self._open(self._step)
        self._previous = action

    def _close(self, window: Window, *, complete: bool = True) -> None:
        with held_back():
            self._window = self._reserve = None
            self._end(window)
            self._saver.save(self._exported(window, complete=complete))
        termination.forget(self)

    @guarded
    def _give_way(self) -> None:
        """A torch profiler of the user's is about to start: keep what there is and make room."""
        window = self._window
        if window is not None and window.is_recording:
            self._close(window, complete=False)
        raise RecorderError(
            "a torch profiler was started in a window, and torch has room for one; the window ends here"
        )

    def stop(self, *, complete: bool = True) -> None:
        """End the recording, saving a window that is open; `complete=False` when an error or Ctrl-C ended the run."""
        if self._state != "open" or self._session.is_forked:
            return
        self._state = "stopped"
        try:
            if self._session.is_chosen:
                with held_back():
                    self._finish(complete)
        finally:
            self._session.end()
            termination.forget(self)
            turns.leave(self)

    @guarded
    def _finish(self, complete: bool) -> None:
        reserve, self._reserve = self._reserve, None
        window, self._window = self._window, None
        if window is not None and window.is_recording:
            self._end(window)
            if window is reserve or self._plan is None or window.steps:
                reserve = None
            other = self._exported(reserve, complete=complete) if reserve is not None else None
            is_spare = other is not None or bool(self.traces)
            self._saver.save(
                self._exported(window, complete=complete, otherwise=other, skip_if_empty=is_spare and not window.steps)
            )
            return
        if window is not None:
            window.discard()
        if reserve is not None:
            self._saver.save(self._exported(reserve, complete=complete))

    def wait(self) -> None:
        """Return once every file is complete; warns here of what went wrong while they were written."""
        self._saver.wait()
        if self._state == "stopped" and not self._session.is_forked:
            atexit.unregister(self._at_exit)
            self._session.end()
            if self._own_workers is not None:
                self._own_workers.disarm()

    def annotate(self, name: str) -> AbstractContextManager[None]:
        """A span named `name` in the trace while a window is open, otherwise nothing."""
        spans = self._window.annotations if self._window is not None and self.recording else None
        return spans.span(name) if spans is not None else nullcontext()

    def push(self, name: str) -> None:
        """Open a span of the CPU's timeline alone, to be ended by `pop` or with the window."""
        window = self._window
        if window is not None and self.recording and window.annotations is not None:
            self._push(window.annotations, name)

    def pop(self, name: str) -> None:
        """End the span opened last under `name`, if it is open."""
        window = self._window
        if window is not None and self.recording and window.annotations is not None:
            self._pop(window.annotations, name)

    @guarded
    def _push(self, spans: Annotations, name: str) -> None:
        spans.push_light(name)

    @guarded
    def _pop(self, spans: Annotations, name: str) -> None:
        spans.pop(name)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What `add_metadata` was given."""
        return self._session.metadata

    def add_metadata(self, key: str, value: Any) -> None:
        """Put `value` into the traces from here on; raises `OptionError` unless JSON can say it."""
        self._session.metadata[key] = checked_metadata(key, value)

    def _new_window(self) -> Window:
        return Window(self.options, self._lines, self._workers, self._give_way)

    def _open(self, step: int | None) -> None:
        with held_back():
            window = self._window or self._new_window()
            self._window = window
            turns.take(self)
            window.begin(None if step is None else self._first_step + step)
        termination.keep_at_end(self, self._at_exit)

    def _end(self, window: Window) -> None:
        try:
            window.end()
        finally:
            turns.release(self)

    def _exported(
        self, window: Window, *, complete: bool, otherwise: Job | None = None, skip_if_empty: bool = False
    ) -> Job:
        """torch's own file, and what is to be made of it."""
        folder = Path(self._folder() if callable(self._folder) else self._folder).absolute()
        make_trace_folder(folder)
        target = naming.trace_path(folder, self._session.worker, compress=self.options.compress)
        raw = naming.raw_path(target)
        check_space(folder)
        try:
            window.export(raw)
            raw.stat()  # torch only logs a write that failed
        except BaseException as error:
            try:
                if isinstance(error, (OSError, RuntimeError)):
                    check_space(folder)
            finally:
                naming.remove_raw(raw)
            raise
        schedule = self._plan.numbers if self._plan is not None else None
        instructions = Instructions(
            raw=str(raw),
            target=str(target),
            header=self._session.header(window, schedule=schedule, complete=complete, pace=self._pace.account()),
            rename={WINDOW_NAME: step_name(0) if window.steps else None, **window.annotation_names},
            drop_if_empty=window.step_name,
            skip_if_empty=skip_if_empty,
        )
        return Job(instructions=instructions, otherwise=otherwise, worker_timings=window.worker_timings)

    def _give_up(self) -> None:
        """After an error: leave nothing installed, and do nothing from here on."""
        window, self._window, self._reserve = self._window, None, None
        self._state = "stopped"
        termination.forget(self)
        turns.leave(self)
        if window is not None:
            window.discard()

    def _at_exit(self) -> None:
        if not self._session.is_forked:
            self.stop(complete=False)
            self.wait()
