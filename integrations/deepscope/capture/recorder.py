"""The recorder: opens and closes windows step by step, as its plan says."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture.naming import check_folder, seen_from_here
from deepscope.capture.notices import warn
from deepscope.capture.process_hooks import open_recorders, optimizer_steps, signals
from deepscope.capture.process_hooks.open_recorders import end_with, guarded, own_work
from deepscope.capture.process_hooks.signals import held_back
from deepscope.capture.recorder_windows import RecorderWindows
from deepscope.capture.resources import Resources, counters_of_run
from deepscope.capture.saving.saver import patience_s, wait_for_profile
from deepscope.capture.schedule import WHOLE_BLOCK, Move, Plan, Schedule, StepAction
from deepscope.capture.session import RecordingSession
from deepscope.capture.step_timer import StepKind
from deepscope.capture.window import Window
from deepscope.capture.workers import WorkerClocks
from deepscope.quantities import bytes_text

if TYPE_CHECKING:
    from deepscope.records import Profile


_NO_ROOM = "the next window begins at once"


class Recorder:
    """Records one stage of a run: `start`, `step` after each step, `stop`.

    A window is ended by the thread that opened it: by its step, by its `stop`, or as it ends. Nothing that goes wrong
    inside (a full disk, a profiler of somebody else's) reaches the run: it costs one `RecordingWarning`, and the
    recorder does nothing from there on. Only wrong use raises. A schedule that can open no further window ends the
    recorder by itself: `step` and `stop` do nothing from there on.

    Args:
        session: whose recording it is, and how it is made.
        plan: the steps that are recorded; None records from `start` to `stop`.
        folder: where the traces go, as seen from the working folder of now; it is made when the first one is written.
        first_step: the number that the first step has in the trace.
        owner: recorders of one owner may be open at once and take turns. A recorder that starts while one of another
            owner is open raises `NestedProfileError`, unless that one's `is_abandoned` says that nobody will stop it
            any more: then it is ended.
        workers: the clocks in data-loader workers, armed before a loader starts them; else the recorder arms its own.
        counts_run: whether the whole run's counters, if the options ask for them, are this recorder's.
        around_exit: entered before the process end, or SIGTERM, stops the recorder; left once its traces are written.
    """

    def __init__(
        self,
        session: RecordingSession,
        plan: Plan | None = None,
        *,
        folder: Path,
        first_step: int = 0,
        owner: object | None = None,
        is_abandoned: Callable[[], bool] = lambda: False,
        workers: WorkerClocks | None = None,
        counts_run: bool = True,
        around_exit: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.session = session
        self._beginning = self._plan = Plan(WHOLE_BLOCK) if plan is None else plan
        self._folder = seen_from_here(folder)  # also where the program goes to another one later
        self._first_step = self._step = first_step
        self._owner = self if owner is None else owner
        self.is_abandoned = is_abandoned
        self._given_workers = workers
        self._counts_run = counts_run
        self._around_exit = around_exit
        self._resources: Resources | None = None
        """Of a rank that records."""
        self._windows = RecorderWindows(self, session, self._folder, lambda: self._plan.schedule)
        self.timer = self._windows.timer
        self._is_started = False
        self.is_stopped = False
        """Whether it has ended, by its plan, by `stop` or by an error."""
        if session.is_chosen:
            self._equip()

    def _equip(self) -> Resources:
        """From when the recorder is made, if it is known by then that this rank records."""
        if self._resources is None:
            counters = counters_of_run(self.session, self._folder) if self._counts_run else None
            self._resources = Resources(self.session, self._given_workers, counters)
        return self._resources

    @property
    def _is_active(self) -> bool:
        return self._is_started and self.session.is_chosen and not self.session.is_forked

    @property
    def recording(self) -> bool:
        return self._windows.is_recording

    @property
    def is_at_rest(self) -> bool:
        """Whether it has ended, and looks at no steps behind its window."""
        return self.is_stopped and not self._windows.is_auditing

    @property
    def is_writing(self) -> bool:
        """Whether a trace is being written, beside the run."""
        return self._windows.saver.is_writing

    @property
    def traces(self) -> list[Path]:
        """The files of this recorder, oldest first; complete after `wait`."""
        return self._windows.saver.traces

    @property
    def profile(self) -> Profile | None:
        """The analysed result of the newest trace; None where there is none."""
        self.wait()
        if not self.traces:
            return None
        from deepscope.store import load_profile

        wait_for_profile(self.traces[-1])
        return load_profile(self.traces[-1])

    def start(self) -> None:
        """Begin with step 0; raises `NestedProfileError` while a recorder of another owner is open."""
        if self._is_started:
            return
        open_recorders.enter(self, self._owner)
        self._is_started, self.is_stopped = True, False
        self.session.begin()
        self._plan, self._step = self._beginning, self._first_step
        if not self.session.is_chosen:
            self._release_resources()
            return
        resources = self._equip()
        resources.take()
        atexit.register(self._at_exit)
        try:
            self._begin(resources)
        except BaseException:  # Ctrl-C; nobody will stop what they could not start
            self.stop(complete=False)
            raise
        self.timer.begin(self._step_kind)

    @property
    def _step_kind(self) -> StepKind:
        if self._windows.current is None:
            is_busy = self.is_writing or self._windows.is_auditing
            return StepKind.OTHER if is_busy else StepKind.PLAIN
        return StepKind.RECORDED if self.recording else StepKind.OTHER

    @guarded
    def _begin(self, resources: Resources) -> None:
        check_folder(self._folder)
        resources.arm()
        self._follow_plan()

    def expect(self, total_steps: int | None) -> None:
        """Tell during step 0 how many steps there will be, if that is known; later this does nothing.

        Ranks agree on one schedule then, even if their lengths differ.
        """
        if self._is_active and self._windows.current is not None and self._windows.is_reserve:
            self._replan(total_steps)

    @guarded
    def _replan(self, total_steps: int | None) -> None:
        schedule = self.session.agreed_schedule(Schedule.of(self.session.options, total_steps), total_steps)
        self._beginning = Plan(schedule)
        self._plan = self._beginning.next()
        if self._plan.action is StepAction.RESERVE:
            return
        if self._plan.action.is_recorded:
            self._windows.is_reserve = False  # The window is the schedule's own.
            return
        self._windows.set_aside()
        self._windows.drop_reserve()
        signals.save_no_more(self)
        for move in self._plan.moves:
            self._windows.make(move, self._step)

    @own_work
    def step(self) -> None:
        if self._windows.has_left:
            self._windows.end_left()
        self._windows.stop_memory_watch()
        if self._windows.audit is not None:
            self._windows.audit.step()
        if self._is_active:
            before = self._windows.current
            self.timer.next(self._step_kind)
            self._advance()
            if before is not None or self._windows.current is not None:
                self.timer.begin(self._step_kind)
        elif self.timer.is_awaited:  # its plan is over
            self.timer.next(self._step_kind)
        if (audit := self._windows.audit) is not None:
            if self._windows.current is None:
                audit.begin()  # with the step behind the window
            elif not audit.has_begun:
                audit.stop(_NO_ROOM)

    @own_work
    @guarded
    def pause(self) -> None:
        """Between two steps: what follows until `resume` is no step.

        A window with steps in it is saved, and its cycle is over; one without any begins with `resume`. A recording by
        the clock, or of a whole block, goes on.
        """
        if (audit := self._windows.audit) is not None and audit.has_begun:
            audit.pause()
        plan, window = self._plan, self._windows.current
        if not self._is_active or not plan.schedule.has_cycles:
            return
        has_steps = window is not None and window.is_recording and window.steps > 0
        if window is not None and has_steps:
            window.has_begun_step = False
            self._windows.close(is_audited=True)
        else:
            self._windows.put_off()
        self._plan = plan.cut_before(is_cycle_over=has_steps)
        self._stop_where_plan_is_over()

    @own_work
    @guarded
    def resume(self) -> None:
        """After `pause`: the next step begins."""
        if self._is_active:
            if self._windows.current is None:
                self._follow_plan()
            self.timer.begin(self._step_kind)

    @guarded
    def _advance(self) -> None:
        if self._windows.current is not None:
            self._windows.current.end_step()
        self._step += 1
        self._follow_plan()

    def _follow_plan(self) -> None:
        """The plan's next step begins; while another recorder of this owner has its window open, the plan waits."""
        window = self._windows.current
        is_taken = window is None and (self._windows.has_left or open_recorders.is_taken(self))
        plan = self._plan.next(may_reserve=not is_taken)
        if plan.opens_another and optimizer_steps.is_within_step():
            plan = plan.put_off()  # torch's span of the optimizer's step must not end in another window
        if is_taken and plan.action is not StepAction.PASS:
            return
        if Move.STEP in plan.moves and window is not None and (shortage := window.shortage()) is not None:
            self._end_short_of_memory(window, shortage)
            plan = plan.broken_off()
        for move in plan.moves:
            self._windows.make(move, self._step)
        self._plan = plan  # Not before: Ctrl-C may come between two moves, and the next step makes up for it.
        self._stop_where_plan_is_over()

    def _stop_where_plan_is_over(self) -> None:
        if self._windows.current is None and self._plan.is_over:
            self._leave()

    def _end_short_of_memory(self, window: Window, shortage: tuple[int, int]) -> None:
        """End a window that would cost the process its life if it went on."""
        needed, free = map(bytes_text, shortage)
        recorded = f", after {window.steps + 1:,} steps" if self._step > self._first_step else ""
        fewer = "record fewer steps, or" if recorded else "record"
        warn(
            f"the window ends early{recorded}: torch may take {needed} of memory to end it, and {free} are free; "
            f"{fewer} for a shorter time"
        )
        self._windows.close(complete=False, is_audited=bool(recorded))

    @guarded
    def _end_without_steps(self, shortage: tuple[int, int]) -> None:
        window = self._windows.current
        if window is not None and window.is_recording:
            self._end_short_of_memory(window, shortage)
            self._plan = self._plan.broken_off()
            self._stop_where_plan_is_over()

    def fail(self, error: BaseException) -> None:
        """An exception is about to end the run: look what it was about before it lets go of what it holds."""
        if self._windows.current is not None and self.recording:
            self._windows.current.fail(error)

    def stop(self, *, complete: bool = True) -> None:
        """End the recording, saving a window that is open; `complete=False` when an error or Ctrl-C ended the run."""
        if self.session.is_forked:
            return
        self._windows.stop_memory_watch()
        self._windows.end_audit()
        self.timer.end()
        if self._windows.has_left:
            self._windows.end_left()
        if self._resources is not None:
            self._resources.stop_run_counters()  # A schedule that is over has stopped all else already.
        if not self._is_started:
            return
        self._is_started, self.is_stopped = False, True
        try:
            if self.session.is_chosen:
                with held_back():
                    self._windows.finish(complete=complete)
        finally:
            self.session.end()
            self._windows.end_with_what_is_saved()
            self._leave()

    @guarded
    def discard(self) -> None:
        """End the recording and save nothing of the window that is open."""
        if self._is_active:
            with held_back():
                self._give_up()

    def _leave(self) -> None:
        """No window will open any more."""
        self._is_started, self.is_stopped = False, True
        open_recorders.leave(self)
        self._release_resources()

    def _release_resources(self) -> None:
        if self._resources is not None:
            self._resources.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return once every file is complete; warns here of what went wrong while they were written.

        Returns whether they are; with a time-out they may not be.
        """
        self._windows.saver.is_awaited = True
        self._windows.end_audit()
        self.timer.release()
        if not self._windows.saver.wait(timeout_s):
            return False
        if self._windows.current is None:
            signals.save_no_more(self)  # no trace is being written any more, and maybe nobody gave SIGTERM back so far
        if self.is_stopped and not self._windows.has_left and not self.session.is_forked:
            atexit.unregister(self._at_exit)
            self.session.end()
            if self._resources is not None:
                self._resources.disarm()
        return True

    @property
    def patience_s(self) -> float | None:
        """How long this rank may wait for its traces; None for as long as it takes."""
        return patience_s(self.session.world_size)

    def annotate(self, name: str) -> AbstractContextManager[None]:
        """A span named `name` in the trace while a window is open, otherwise nothing."""
        window = self._windows.current
        spans = window.annotations if window is not None else None
        return spans.span(name) if spans is not None else nullcontext()

    def push(self, name: str) -> None:
        """Open a span of the CPU's timeline alone, to be ended by `pop` or with the window."""
        if (window := self._windows.current) is not None and (spans := window.annotations) is not None:
            try:
                spans.push_light(name)
            except Exception as error:  # noqa: BLE001 - as `guarded`, and without a call of its own
                end_with(error, self)

    def pop(self, name: str) -> None:
        """End the span opened last under `name`, if it is open."""
        if (window := self._windows.current) is not None and (spans := window.annotations) is not None:
            try:
                spans.pop(name)
            except Exception as error:  # noqa: BLE001 - as above
                end_with(error, self)

    def add_metadata(self, key: str, value: Any) -> None:
        """Put `value` into the traces from here on; raises `OptionError` unless JSON can say it."""
        self.session.add_metadata(key, value)

    def _give_up(self) -> None:
        """After an error: leave nothing installed, and do nothing from here on."""
        self._windows.stop_memory_watch()
        self._windows.end_audit()
        signals.save_no_more(self)
        self._leave()
        self._windows.discard()

    def _at_exit(self) -> None:
        if self.session.is_forked:
            return
        with self._around_exit():
            error = getattr(sys, "last_value", None)  # what ends a program that nobody caught it in
            if isinstance(error, BaseException):
                self.fail(error)
            self._windows.is_exiting = True
            self._windows.end_on_its_thread()
            self.stop(complete=False)
            self._windows.give_up_left()
            self.wait()
