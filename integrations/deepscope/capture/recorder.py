"""The recorder: opens and closes windows as its plan says, step by step, and has each one saved."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deepscope.capture.audit.step_audit import StepAudit
from deepscope.capture.export import exported
from deepscope.capture.lines.running_frame import keep_forever
from deepscope.capture.machine_use import EndMemoryWatch
from deepscope.capture.naming import check_folder, seen_from_here
from deepscope.capture.notices import warn
from deepscope.capture.process_hooks import open_recorders, optimizer_steps
from deepscope.capture.process_hooks.interrupts import held_back
from deepscope.capture.process_hooks.open_recorders import end_with, guarded
from deepscope.capture.process_hooks.own_work import set_apart
from deepscope.capture.process_hooks.threads import call_between_lines
from deepscope.capture.resources import Resources, counters_of_run
from deepscope.capture.saving.header import RecordingSession, checked_metadata
from deepscope.capture.saving.saver import Pending, SaveJob, Saver, patience_s, wait_for_profile
from deepscope.capture.schedule import WHOLE_BLOCK, Move, Plan, Schedule, StepAction
from deepscope.capture.step_timer import StepKind, StepTimer
from deepscope.capture.window import Window
from deepscope.capture.workers import WorkerClocks
from deepscope.errors import RecorderError
from deepscope.quantities import bytes_text

if TYPE_CHECKING:
    from deepscope.records import Profile


class _State(Enum):
    NEW = auto()
    WAITING = auto()
    """It is started and has no window."""
    WARMING = auto()
    """Torch is prepared for the next window."""
    RECORDING = auto()
    IN_RESERVE = auto()
    """It records a step in case the run ends before the first window of the plan."""
    STOPPED = auto()


class _Left(NamedTuple):
    """A window that is over, left to the thread that opened it: torch ends a recording nowhere else."""

    window: Window
    complete: bool
    is_wanted: bool
    """Whether it is saved."""


_LEFT = (
    "a window ends on another thread than it was opened on, where torch cannot end it; "
    "the thread that opened it ends and saves it with its next step, or as it ends itself"
)
_NO_ROOM = "the next window begins at once"
_LAST_LINE_S = 1.0
"""So long the end of the process waits for the next line of a thread that has a window open."""
_LOST = (
    "a window is lost: the thread that opened it still runs as the process ends (a daemon thread?), and torch ends a "
    "recording only there; stop the recording on that thread"
)


class Recorder:
    """Records one stage of a run: `start`, `step` after each step, `stop`.

    A window is ended by the thread that opened it: by its step, by its `stop`, or as it ends. Nothing that goes wrong
    inside (a full disk, a profiler of somebody else's) reaches the run: it costs one `RecordingWarning`, and the
    recorder does nothing from there on. Only wrong use raises.

    `session`: whose recording it is, and how it is made. `plan`: the steps that are recorded; None records from `start`
    to `stop`. `folder`: where the traces go, as seen from the
    working folder of now; it is made when the first one is written. `first_step`: the number that
    the first step has in the trace. `workers`: the clocks in data-loader workers, armed by the caller before a loader
    starts them; without it the recorder arms its own when it starts. `counts_run`: whether the whole run's counters, if
    the options ask for them, are this recorder's, from `start` to `stop`; a caller that records a run with several
    recorders counts by itself. `around_exit`: entered before the process end, or SIGTERM, stops the recorder, and
    left once its traces are written.

    `owner`: recorders of one owner may be open at once and take turns. A recorder that starts while one of another
    owner is open raises `NestedProfileError`, unless that one's `is_abandoned` says that nobody will stop it any more:
    then it is ended.

    A schedule that can open no further window ends the recorder by itself: `step` and `stop` do nothing from there on.
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
        self._session = session
        self._beginning = self._plan = Plan(WHOLE_BLOCK) if plan is None else plan
        self._folder = seen_from_here(folder)  # also where the program goes to another one later
        self._first_step = self._step = first_step
        self._owner = self if owner is None else owner
        self._is_abandoned = is_abandoned
        self._saver = Saver(session.options)
        self._given_workers = workers
        self._counts_run = counts_run
        self._around_exit = around_exit
        self._resources: Resources | None = None
        """Of a rank that records."""
        self._pending: list[Pending] = []
        self._audit: StepAudit | None = None
        """Of the steps behind the first window."""
        self._memory_watch: EndMemoryWatch | None = None
        """Of a window in which no step has been made."""
        self.timer = StepTimer()
        self._state = _State.NEW
        self._window: Window | None = None
        """The one that is prepared or open."""
        self._reserve: Window | None = None
        """The one that ended with the first step, until a window of the plan is saved."""
        self._left: _Left | None = None
        self._handing = threading.RLock()
        """Held while a thread takes the open window, to end it or to leave it to another one."""
        self._is_exiting = False
        if session.is_chosen:
            self._equip()

    def _equip(self) -> Resources:
        """From when the recorder is made, if it is known by then that this rank records."""
        if self._resources is None:
            counters = counters_of_run(self._session, self._folder) if self._counts_run else None
            self._resources = Resources(self._session, self._given_workers, counters)
        return self._resources

    @property
    def run_counters(self) -> Path | None:
        """The file with the counters of the whole run, once it is written."""
        return None if self._resources is None else self._resources.run_counters

    @property
    def _is_started(self) -> bool:
        return self._state is not _State.NEW and self._state is not _State.STOPPED

    @property
    def _is_active(self) -> bool:
        return self._is_started and self._session.is_chosen and not self._session.is_forked

    @property
    def recording(self) -> bool:
        """Whether a window is open now."""
        return self._window is not None and self._window.is_recording and not self._session.is_forked

    @property
    def is_stopped(self) -> bool:
        """Whether it has ended, by its plan, by `stop` or by an error."""
        return self._state is _State.STOPPED

    @property
    def is_at_rest(self) -> bool:
        """Whether it has ended, and looks at no steps behind its window."""
        return self.is_stopped and (self._audit is None or self._audit.is_over)

    @property
    def is_writing(self) -> bool:
        """Whether a trace is being written, beside the run."""
        return self._saver.is_writing

    @property
    def run_id(self) -> str:
        """Of the run that it records, once it has started."""
        return self._session.run_id

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody will stop this recorder, so that one of another owner may end it."""
        return self._is_abandoned()

    @property
    def is_chosen(self) -> bool:
        """Whether this rank is among those that record."""
        return self._session.is_chosen

    @property
    def is_first(self) -> bool:
        """Whether this process is the first of the ranks that record."""
        return self._session.is_first

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

        wait_for_profile(self.traces[-1])
        return load_profile(self.traces[-1])

    def start(self) -> None:
        """Begin with step 0; raises `NestedProfileError` while a recorder of another owner is open."""
        if self._is_started:
            return
        open_recorders.enter(self, self._owner)
        self._state = _State.WAITING
        self._session.begin()
        self._plan, self._step = self._beginning, self._first_step
        if not self._session.is_chosen:
            self._put_down()
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
        if self._window is None:
            is_busy = self._saver.is_writing or not (self._audit is None or self._audit.is_over)
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
        if self._is_active:
            self._replan(total_steps)

    @guarded
    def _replan(self, total_steps: int | None) -> None:
        if self._state is not _State.IN_RESERVE:
            return
        schedule = self._session.agreed_schedule(Schedule.of(self._session.options, total_steps), total_steps)
        self._beginning = Plan(schedule)
        self._plan = self._beginning.next()
        if self._plan.action is StepAction.RESERVE:
            return
        if self._plan.action.is_recorded:
            self._state = _State.RECORDING  # The window is the schedule's own.
            return
        self._make(Move.SET_ASIDE)
        self._reserve = None
        open_recorders.forget(self)
        for move in self._plan.moves:
            self._make(move)

    @set_apart
    def step(self) -> None:
        """The step has ended and the next one begins."""
        if self._left is not None:
            self._end_left()
        self._stop_memory_watch()
        if self._audit is not None:
            self._audit.step()
        if self._is_active:
            before = self._window
            self.timer.next(self._step_kind)
            self._advance()
            if before is not None or self._window is not None:
                self.timer.begin(self._step_kind)
        elif self.timer.is_awaited:  # its plan is over
            self.timer.next(self._step_kind)
        if self._audit is not None:
            self._begin_audit(self._audit)

    @set_apart
    @guarded
    def pause(self) -> None:
        """Between two steps: what follows until `resume` is no step.

        A window with steps in it is saved, and its cycle is over; one without any begins with `resume`. A recording by
        the clock, or of a whole block, goes on.
        """
        if self._audit is not None and self._audit.has_begun:
            self._audit.pause()
        plan, window = self._plan, self._window
        if not self._is_active or not plan.schedule.has_cycles:
            return
        has_steps = window is not None and window.is_recording and window.steps > 0
        if window is not None and has_steps:
            window.has_begun_step = False
            self._close(window)
        elif window is not None:
            self._put_off(window)
        self._plan = plan.cut_before(is_cycle_over=has_steps)
        self._stop_where_plan_is_over()

    @set_apart
    @guarded
    def resume(self) -> None:
        """After `pause`: the next step begins."""
        if self._is_active:
            if self._window is None:
                self._follow_plan()
            self.timer.begin(self._step_kind)

    def _put_off(self, window: Window) -> None:
        if self._leave_to_its_thread(complete=False, is_wanted=False):
            return
        with held_back():
            self._window, self._state = None, _State.WAITING
            window.discard()
            open_recorders.release(self)
        if self._reserve is None:
            self._end_with_what_is_saved()

    def _begin_audit(self, audit: StepAudit) -> None:
        """With the step behind the window, once nothing of another one's is under way."""
        if self._window is None:
            audit.begin()
        elif not audit.has_begun:
            audit.stop(_NO_ROOM)

    @guarded
    def _advance(self) -> None:
        if self._window is not None:
            self._window.end_step()
        self._step += 1
        self._follow_plan()

    def _follow_plan(self) -> None:
        """The plan's next step begins; while another recorder of this owner has its window open, the plan waits."""
        is_taken = self._window is None and (self._left is not None or open_recorders.is_taken(self))
        plan = self._plan.next(may_reserve=not is_taken)
        if plan.opens_another and optimizer_steps.is_within_step():
            plan = plan.put_off()  # torch's span of the optimizer's step must not end in another window
        if is_taken and plan.action is not StepAction.PASS:
            return
        if Move.STEP in plan.moves and self._window is not None and (shortage := self._window.shortage()) is not None:
            self._end_short_of_memory(self._window, shortage)
            plan = plan.broken_off()
        for move in plan.moves:
            self._make(move)
        self._plan = plan  # Not before: Ctrl-C may come between two moves, and the next step makes up for it.
        self._stop_where_plan_is_over()

    def _stop_where_plan_is_over(self) -> None:
        if self._window is None and self._plan.is_over:
            self._state = _State.STOPPED
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
        self._close(window, complete=False, is_audited=bool(recorded))

    @guarded
    def _end_without_steps(self, shortage: tuple[int, int]) -> None:
        window = self._window
        if window is not None and window.is_recording:
            self._end_short_of_memory(window, shortage)
            self._plan = self._plan.broken_off()
            self._stop_where_plan_is_over()

    def _stop_memory_watch(self) -> None:
        watch, self._memory_watch = self._memory_watch, None
        if watch is not None:
            watch.stop()

    def _make(self, move: Move) -> None:
        """Go from state to state; after Ctrl-C some of the moves may have been made already."""
        window = self._window
        if window is None:
            if move is Move.PREPARE:
                self._prepare()
            elif move is Move.OPEN_IN_RESERVE:
                self._open(_State.IN_RESERVE)
            elif move is Move.OPEN or move is Move.STEP:
                self._open(_State.RECORDING)
        elif move is Move.CLOSE:
            self._close(window)
        elif move is Move.SET_ASIDE:
            self._set_aside(window)
        elif self._state is _State.RECORDING:
            window.next_step(self._step)
        elif move is Move.OPEN:
            self._open(_State.RECORDING)

    def _prepare(self) -> None:
        with held_back():
            self._window = self._new_window()
            self._state = _State.WARMING
            self._window.prepare()

    def _open(self, state: _State) -> None:
        with held_back():
            window = self._window = self._window or self._new_window()
            self._state = state
            open_recorders.take(self)
            self._session.agree()
            is_whole = self._beginning.schedule is WHOLE_BLOCK
            if is_whole:  # its thread begins before threads are recorded
                self._memory_watch = EndMemoryWatch(window.shortage, self._end_without_steps)
            window.begin(None if is_whole else self._step)
        open_recorders.keep_at_end(self, self._at_exit)

    def _set_aside(self, window: Window) -> None:
        if self._leave_to_its_thread(complete=False):
            return
        with held_back():
            self._window, self._reserve, self._state = None, window, _State.WAITING
            self._end(window)

    def _close(self, window: Window, *, complete: bool = True, is_audited: bool | None = None) -> None:
        """End and save a window; steps behind it may be audited where it is `complete`, unless `is_audited` says."""
        if self._leave_to_its_thread(complete=complete):
            return
        with held_back():
            reserve, self._reserve = self._reserve, None
            self._window, self._state = None, _State.WAITING
            self._end(window)
            if reserve is not None:
                reserve.discard()
            if is_audited is None:
                is_audited = complete and (window.steps > 0 or self._plan.schedule.has_cycles)
            audit = StepAudit(self._session.user_code) if is_audited and self._may_look_at_steps else None
            self._save(self._exported(window, complete=complete, audit=audit))
        self._end_with_what_is_saved()
        self._audit = audit or self._audit

    @property
    def _may_look_at_steps(self) -> bool:
        return self._audit is None and self._session.options.audit

    def _leave_to_its_thread(self, *, complete: bool, is_wanted: bool = True) -> bool:
        """Whether the open window is another thread's; that one ends it then, and here it is open no longer."""
        with self._handing:
            window = self._window
            if window is None or window.may_end_here:
                return False
            self._left = _Left(window, complete, is_wanted)
            self._window = None
        if self._is_started:
            self._state = _State.WAITING
        window.take_hooks_out()
        if not self._is_exiting:
            warn(_LEFT)
        return True

    @guarded
    def _end_left(self) -> None:
        with self._handing:
            left = self._left
            if left is None or not left.window.may_end_here:
                return
            self._left = None
        reserve, self._reserve = self._reserve, None
        with held_back():
            if left.is_wanted:
                self._end_last(left.window, reserve, complete=left.complete)
            else:
                self._end(left.window)
        self._end_with_what_is_saved()
        if self._is_exiting:
            self.wait()  # nobody waits for threads that start now

    @guarded
    def _end_with_thread(self) -> None:
        """The thread that opened the window ends: nobody can end the window behind it."""
        if self._session.is_forked:
            return
        with self._handing:
            window = self._window
            if self._left is None and window is not None and window.is_recording and window.may_end_here:
                self._left = _Left(window, complete=False, is_wanted=True)
                self._window = None
        self.timer.end()  # no step of this thread follows that a trace could wait for
        if self._is_started:
            self._state = _State.WAITING
        self._end_left()

    @guarded
    def _give_way(self) -> None:
        """A torch profiler of the user's is about to start: keep what there is and make room."""
        window = self._window
        if window is not None and window.is_recording:
            self._close(window, complete=False)
        raise RecorderError(
            "a torch profiler was started in a window, and torch has room for one; the window ends here"
        )

    def fail(self, error: BaseException) -> None:
        """An exception is about to end the run: look what it was about before it lets go of what it holds."""
        if self._window is not None and self.recording:
            self._window.fail(error)

    def stop(self, *, complete: bool = True) -> None:
        """End the recording, saving a window that is open; `complete=False` when an error or Ctrl-C ended the run."""
        if self._session.is_forked:
            return
        self._stop_memory_watch()
        self._end_audit()
        self.timer.end()
        if self._left is not None:
            self._end_left()
        if self._resources is not None:
            self._resources.stop_run_counters()  # A schedule that is over has stopped all else already.
        if not self._is_started:
            return
        self._state = _State.STOPPED
        try:
            if self._session.is_chosen:
                with held_back():
                    self._finish(complete)
        finally:
            self._session.end()
            self._end_with_what_is_saved()
            self._leave()

    @guarded
    def discard(self) -> None:
        """End the recording and save nothing of the window that is open."""
        if self._is_active:
            with held_back():
                self._give_up()

    def _end_audit(self) -> None:
        if self._audit is not None:
            self._audit.stop()

    def _save(self, job: SaveJob) -> None:
        pending = Pending()
        self._pending.append(pending)
        self._saver.save(replace(job, on_end=pending.end))

    def _end_with_what_is_saved(self) -> None:
        """No window is open any more. SIGTERM still has the process wait for those that are being written."""
        self._pending = [one for one in self._pending if one.keep(self._at_exit)]
        open_recorders.forget(self)

    def _leave(self) -> None:
        open_recorders.leave(self)
        self._put_down()

    def _put_down(self) -> None:
        if self._resources is not None:
            self._resources.release()

    @guarded
    def _finish(self, complete: bool) -> None:
        if self._leave_to_its_thread(complete=complete):
            return
        window, self._window = self._window, None
        reserve, self._reserve = self._reserve, None
        if window is not None and window.is_recording:
            self._end_last(window, reserve, complete=complete)
            return
        if window is not None:
            window.discard()
        if reserve is not None:
            self._save(self._exported(reserve, complete=complete))

    def _end_last(self, window: Window, reserve: Window | None, *, complete: bool) -> None:
        """It may hold no more than the beginning of a step that was never made."""
        self._end(window)
        is_short = not window.steps
        other = self._exported(reserve, complete=complete) if is_short and reserve is not None else None
        if reserve is not None and other is None:
            reserve.discard()
        skip = is_short and (other is not None or bool(self.traces))
        self._save(self._exported(window, complete=complete, otherwise=other, skip_if_empty=skip))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return once every file is complete; warns here of what went wrong while they were written.

        Returns whether they are; with a time-out they may not be.
        """
        self._saver.is_awaited = True
        self._end_audit()
        self.timer.release()
        if not self._saver.wait(timeout_s):
            return False
        if self._window is None:
            open_recorders.forget(self)  # no trace is being written any more, and maybe nobody gave SIGTERM back so far
        if self._state is _State.STOPPED and self._left is None and not self._session.is_forked:
            atexit.unregister(self._at_exit)
            self._session.end()
            if self._resources is not None:
                self._resources.disarm()
        return True

    @property
    def patience_s(self) -> float | None:
        """How long this rank may wait for its traces; None for as long as it takes."""
        return patience_s(self._session.world_size)

    def annotate(self, name: str) -> AbstractContextManager[None]:
        """A span named `name` in the trace while a window is open, otherwise nothing."""
        spans = self._window.annotations if self._window is not None else None
        return spans.span(name) if spans is not None else nullcontext()

    def push(self, name: str) -> None:
        """Open a span of the CPU's timeline alone, to be ended by `pop` or with the window."""
        if (window := self._window) is not None and (spans := window.annotations) is not None:
            try:
                spans.push_light(name)
            except Exception as error:  # noqa: BLE001 - as `guarded`, and without a call of its own
                end_with(error, self)

    def pop(self, name: str) -> None:
        """End the span opened last under `name`, if it is open."""
        if (window := self._window) is not None and (spans := window.annotations) is not None:
            try:
                spans.pop(name)
            except Exception as error:  # noqa: BLE001 - as above
                end_with(error, self)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What `add_metadata` was given."""
        return self._session.metadata

    def add_metadata(self, key: str, value: Any) -> None:
        """Put `value` into the traces from here on; raises `OptionError` unless JSON can say it."""
        self._session.metadata[key] = checked_metadata(key, value)

    def _new_window(self) -> Window:
        has = self._equip()
        give_way, thread_ends = self._give_way, self._end_with_thread
        return Window(
            self._session.options, has.lines, has.workers, give_way, counters=has.counters, thread_ends=thread_ends
        )

    def _end(self, window: Window) -> None:
        try:
            window.end()
        finally:
            open_recorders.release(self)

    def _exported(
        self,
        window: Window,
        *,
        complete: bool,
        otherwise: SaveJob | None = None,
        skip_if_empty: bool = False,
        audit: StepAudit | None = None,
    ) -> SaveJob:
        return exported(
            window,
            self._session,
            self._folder,
            schedule=self._plan.schedule.numbers,
            timer=self.timer,
            complete=complete,
            otherwise=otherwise,
            skip_if_empty=skip_if_empty,
            audit=audit,
        )

    def _give_up(self) -> None:
        """After an error: leave nothing installed, and do nothing from here on."""
        self._stop_memory_watch()
        self._end_audit()
        self._leave_to_its_thread(complete=False, is_wanted=False)
        window, self._window, self._reserve = self._window, None, None
        self._state = _State.STOPPED
        open_recorders.forget(self)
        self._leave()
        if window is not None:
            window.discard()

    def _at_exit(self) -> None:
        if self._session.is_forked:
            return
        with self._around_exit():
            error = getattr(sys, "last_value", None)  # what ends a program that nobody caught it in
            if isinstance(error, BaseException):
                self.fail(error)
            self._is_exiting = True
            self._end_on_its_thread()
            self.stop(complete=False)
            self._give_up_left()
            self.wait()

    def _end_on_its_thread(self) -> None:
        """A daemon thread still runs as the process ends: torch crashes where that cuts off a recording."""
        window = self._window if self._left is None else self._left.window
        if window is not None and not window.may_end_here:
            call_between_lines(window.thread, self._end_with_thread, within_s=_LAST_LINE_S)

    @guarded
    def _give_up_left(self) -> None:
        """The process ends, and with it the thread that could end the window; should that end first, it still does."""
        left = self._left
        if left is not None:
            keep_forever(left)
            warn(_LOST)
            reserve, self._reserve = self._reserve, None
            if reserve is not None and left.is_wanted:
                self._save(self._exported(reserve, complete=False, skip_if_empty=True))
