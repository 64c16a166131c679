"""The recorder: opens and closes windows as its plan says, step by step, and has each one saved."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture.annotations import Annotations
from deepscope.capture.compiled.captures import CaptureHold
from deepscope.capture.compiled.level import ProvenanceHold
from deepscope.capture.export import exported
from deepscope.capture.line_scopes import arm, line_recorder, worker_clocks
from deepscope.capture.pace import Pace
from deepscope.capture.plan import Move, Plan
from deepscope.capture.saving.header import Session, checked_metadata
from deepscope.capture.saving.saver import Job, Saver
from deepscope.capture.schedule import WHOLE_BLOCK, Action, Schedule
from deepscope.capture.surroundings import open_recorders, termination
from deepscope.capture.surroundings.failsafe import guarded
from deepscope.capture.surroundings.interrupts import held_back
from deepscope.capture.window import Window
from deepscope.capture.workers.training_side import WorkerClocks
from deepscope.errors import RecorderError

if TYPE_CHECKING:
    from deepscope.records import Profile

__all__ = ["Recorder"]


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


class Recorder:
    """Records one stage of a run: `start`, `step` after each step, `stop`.

    One thread drives it. Nothing that goes wrong inside (a full disk, a profiler of somebody else's) reaches the run:
    it costs one `RecordingWarning`, and the recorder does nothing from there on. Only wrong use raises.

    `session`: whose recording it is, and how it is made. `plan`: the steps that are recorded; None records from `start`
    to `stop`. `folder`: where the traces go; it is made when the first one is written. `first_step`: the number that
    the first step has in the trace. `workers`: the clocks in data-loader workers, armed by the caller before a loader
    starts them; without it the recorder arms its own when it starts.

    `owner`: recorders of one owner may be open at once and take turns. A recorder that starts while one of another
    owner is open raises `NestedProfileError`, unless that one's `is_abandoned` says that nobody will stop it any more:
    then it is ended.

    A schedule that can open no further window ends the recorder by itself: `step` and `stop` do nothing from there on.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan | None = None,
        *,
        folder: Path,
        first_step: int = 0,
        owner: object | None = None,
        is_abandoned: Callable[[], bool] = lambda: False,
        workers: WorkerClocks | None = None,
    ) -> None:
        options = session.options
        self._session = session
        self._beginning = self._plan = Plan(WHOLE_BLOCK) if plan is None else plan
        self._folder = folder
        self._first_step = self._step = first_step
        self._owner = self if owner is None else owner
        self._is_abandoned = is_abandoned
        self._saver = Saver(
            on_ready=options.on_trace_ready,
            announces=session.is_first,
            keep_last=options.keep_last,
            max_total_bytes=options.max_total_bytes,
        )
        self._lines = line_recorder(options, session.user_code)
        self._own_workers = worker_clocks(options, session.user_code) if workers is None else None
        self._workers = workers if workers is not None else self._own_workers
        self._provenance = ProvenanceHold() if options.compiled_lines else None
        self._captures = CaptureHold(session.user_code) if options.compiled_lines else None
        self._pace = Pace()
        self._state = _State.NEW
        self._window: Window | None = None
        """The one that is prepared or open."""
        self._reserve: Window | None = None
        """The one that ended with the first step, until a window of the plan is saved."""

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
        if self._is_started:
            return
        open_recorders.enter(self, self._owner)
        self._state = _State.WAITING
        self._session.begin()
        if self._provenance is not None:
            self._provenance.take()
        if self._captures is not None:
            self._captures.take()
        self._plan, self._step = self._beginning, self._first_step
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
        self._follow_plan()

    def expect(self, total_steps: int | None) -> None:
        """Tell during step 0 how many steps there will be; later, or where it was known, this does nothing."""
        if self._is_active and total_steps:
            self._replan(total_steps)

    @guarded
    def _replan(self, total_steps: int) -> None:
        if self._state is not _State.IN_RESERVE:
            return
        self._beginning = Plan(Schedule.of(self._session.options, total_steps))
        self._plan = self._beginning.next()
        if self._plan.action.is_recorded:
            self._state = _State.RECORDING  # The window is the schedule's own.
            return
        self._make(Move.SET_ASIDE)
        self._reserve = None
        termination.forget(self)
        for move in self._plan.moves:
            self._make(move)

    def step(self) -> None:
        """The step has ended and the next one begins."""
        if self._is_active:
            self._pace.end_step()
            self._advance()
            self._pace.begin_step(is_recorded=self.recording)

    @guarded
    def _advance(self) -> None:
        self._step += 1
        self._follow_plan()

    def _follow_plan(self) -> None:
        """The plan's next step begins; while another recorder of this owner has its window open, the plan waits."""
        is_taken = self._window is None and open_recorders.is_taken(self)
        plan = self._plan.next(may_reserve=not is_taken)
        if is_taken and plan.action is not Action.PASS:
            return
        for move in plan.moves:
            self._make(move)
        self._plan = plan  # Not before: Ctrl-C may come between two moves, and the next step makes up for it.
        if self._window is None and plan.is_over:
            self._state = _State.STOPPED
            self._leave()

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
            window.begin(None if self._beginning.schedule is WHOLE_BLOCK else self._step)
        termination.keep_at_end(self, self._at_exit)

    def _set_aside(self, window: Window) -> None:
        with held_back():
            self._window, self._reserve, self._state = None, window, _State.WAITING
            self._end(window)

    def _close(self, window: Window, *, complete: bool = True) -> None:
        with held_back():
            self._window, self._reserve, self._state = None, None, _State.WAITING
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

    def fail(self, error: BaseException) -> None:
        """An exception is about to end the run: look what it was about before it lets go of what it holds."""
        if self._window is not None and self.recording:
            self._window.fail(error)

    def stop(self, *, complete: bool = True) -> None:
        """End the recording, saving a window that is open; `complete=False` when an error or Ctrl-C ended the run."""
        if not self._is_started or self._session.is_forked:
            return
        self._state = _State.STOPPED
        try:
            if self._session.is_chosen:
                with held_back():
                    self._finish(complete)
        finally:
            self._session.end()
            termination.forget(self)
            self._leave()

    def _leave(self) -> None:
        open_recorders.leave(self)
        if self._provenance is not None:
            self._provenance.release()
        if self._captures is not None:
            self._captures.release()
        if self._own_workers is not None:
            self._own_workers.retire()

    @guarded
    def _finish(self, complete: bool) -> None:
        window, self._window = self._window, None
        reserve, self._reserve = self._reserve, None
        if window is not None and window.is_recording:
            self._end(window)
            is_short = not window.steps  # It may hold no more than the beginning of a step that was never made.
            other = self._exported(reserve, complete=complete) if is_short and reserve is not None else None
            skip = is_short and (other is not None or bool(self.traces))
            self._saver.save(self._exported(window, complete=complete, otherwise=other, skip_if_empty=skip))
            return
        if window is not None:
            window.discard()
        if reserve is not None:
            self._saver.save(self._exported(reserve, complete=complete))

    def wait(self) -> None:
        """Return once every file is complete; warns here of what went wrong while they were written."""
        self._saver.wait()
        if self._state is _State.STOPPED and not self._session.is_forked:
            atexit.unregister(self._at_exit)
            self._session.end()
            if self._own_workers is not None:
                self._own_workers.disarm()

    def annotate(self, name: str) -> AbstractContextManager[None]:
        """A span named `name` in the trace while a window is open, otherwise nothing."""
        spans = self._spans
        return spans.span(name) if spans is not None else nullcontext()

    def push(self, name: str) -> None:
        """Open a span of the CPU's timeline alone, to be ended by `pop` or with the window."""
        if self._window is not None and (spans := self._spans) is not None:
            self._try(spans.push_light, name)

    def pop(self, name: str) -> None:
        """End the span opened last under `name`, if it is open."""
        if self._window is not None and (spans := self._spans) is not None:
            self._try(spans.pop, name)

    @property
    def _spans(self) -> Annotations | None:
        window = self._window
        return window.annotations if window is not None and self.recording else None

    @guarded
    def _try(self, act: Callable[[str], None], name: str) -> None:
        act(name)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What `add_metadata` was given."""
        return self._session.metadata

    def add_metadata(self, key: str, value: Any) -> None:
        """Put `value` into the traces from here on; raises `OptionError` unless JSON can say it."""
        self._session.metadata[key] = checked_metadata(key, value)

    def _new_window(self) -> Window:
        return Window(self._session.options, self._lines, self._workers, self._give_way)

    def _end(self, window: Window) -> None:
        try:
            window.end()
        finally:
            open_recorders.release(self)

    def _exported(
        self, window: Window, *, complete: bool, otherwise: Job | None = None, skip_if_empty: bool = False
    ) -> Job:
        return exported(
            window,
            self._session,
            self._folder,
            schedule=self._plan.schedule.numbers,
            pace=self._pace.account(),
            complete=complete,
            otherwise=otherwise,
            skip_if_empty=skip_if_empty,
        )

    def _give_up(self) -> None:
        """After an error: leave nothing installed, and do nothing from here on."""
        window, self._window, self._reserve = self._window, None, None
        self._state = _State.STOPPED
        termination.forget(self)
        self._leave()
        if window is not None:
            window.discard()

    def _at_exit(self) -> None:
        if not self._session.is_forked:
            error = getattr(sys, "last_value", None)  # what ends a program that nobody caught it in
            if isinstance(error, BaseException):
                self.fail(error)
            self.stop(complete=False)
            self.wait()
