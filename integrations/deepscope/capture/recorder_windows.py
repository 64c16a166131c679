"""The windows of one recorder, each ended by the thread that opened it, exported by torch and handed to the saver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from deepscope.capture import naming
from deepscope.capture.audit.step_audit import StepAudit
from deepscope.capture.lines.scopes import keep_forever
from deepscope.capture.machine_use import EndMemoryWatch
from deepscope.capture.naming import check_space, make_trace_folder
from deepscope.capture.notices import warn
from deepscope.capture.process_hooks import open_recorders, signals
from deepscope.capture.process_hooks.open_recorders import guarded
from deepscope.capture.process_hooks.signals import held_back
from deepscope.capture.process_hooks.threads import call_between_lines
from deepscope.capture.resources import Resources
from deepscope.capture.saving.header import window_header
from deepscope.capture.saving.rewrite import Instructions
from deepscope.capture.saving.saver import Pending, SaveJob, Saver
from deepscope.capture.schedule import WHOLE_BLOCK, Move, Schedule
from deepscope.capture.session import RecordingSession
from deepscope.capture.step_timer import StepTimer
from deepscope.capture.window import Window
from deepscope.errors import RecorderError
from deepscope.trace.format.run_account import snapshot_path
from deepscope.trace.format.span_names import WINDOW_NAME, step_name


class _Recorder(Protocol):
    """What is needed of `deepscope.capture.recorder.Recorder`."""

    def wait(self) -> bool: ...
    def _give_up(self) -> None: ...
    def _equip(self) -> Resources: ...
    def _at_exit(self) -> None: ...
    def _end_without_steps(self, shortage: tuple[int, int]) -> None: ...


class _LeftWindow(NamedTuple):
    """A window that is over, left to the thread that opened it: torch ends a recording nowhere else."""

    window: Window
    complete: bool
    is_wanted: bool
    """Whether it is saved."""


_LEFT = (
    "a window ends on another thread than it was opened on, where torch cannot end it; "
    "the thread that opened it ends and saves it with its next step, or as it ends itself"
)
_LAST_LINE_S = 1.0
"""So long the end of the process waits for the next line of a thread that has a window open."""
_LOST = (
    "a window is lost: the thread that opened it still runs as the process ends (a daemon thread?), and torch ends a "
    "recording only there; stop the recording on that thread"
)


class RecorderWindows:
    """One window at most is prepared or open; beside it there may be one in reserve, and one that is left to a thread.

    `schedule` gives the schedule that they follow by now.
    """

    def __init__(
        self,
        recorder: _Recorder,
        session: RecordingSession,
        folder: Path,
        schedule: Callable[[], Schedule],
    ) -> None:
        self.saver = Saver(session.options)
        self.timer = StepTimer()
        self.current: Window | None = None
        """The one that is prepared or open."""
        self.audit: StepAudit | None = None
        """Of the steps behind the first window."""
        self.is_reserve = False
        """Whether that one is recorded in case the run ends before the first window of the plan."""
        self.is_exiting = False
        """Whether the process ends."""
        self._recorder = recorder
        self._session = session
        self._folder = folder
        self._schedule = schedule
        self._reserve: Window | None = None
        """The one that ended with the first step, until a window of the plan is saved."""
        self._left: _LeftWindow | None = None
        self._handing = threading.RLock()
        """Held while a thread takes the open window, to end it or to leave it to another one."""
        self._pending: list[Pending] = []
        self._memory_watch: EndMemoryWatch | None = None
        """Of a window in which no step has been made."""

    @property
    def is_recording(self) -> bool:
        return self.current is not None and self.current.is_recording and not self._session.is_forked

    @property
    def is_auditing(self) -> bool:
        """Whether steps behind a window are looked at, or are to be."""
        return self.audit is not None and not self.audit.is_over

    def end_audit(self) -> None:
        """No trace waits any more for steps behind its window."""
        if self.audit is not None:
            self.audit.stop()

    @property
    def has_left(self) -> bool:
        """Whether the end of a window is left to its thread."""
        return self._left is not None

    def make(self, move: Move, step: int) -> None:
        """Go from state to state as `step` begins; after Ctrl-C some of the moves may have been made already."""
        window = self.current
        if window is None:
            if move is Move.PREPARE:
                self._prepare()
            elif move is not Move.CLOSE and move is not Move.SET_ASIDE:
                self._open(step, is_reserve=move is Move.OPEN_IN_RESERVE)
        elif move is Move.CLOSE:
            self.close(is_audited=window.steps > 0 or self._schedule().has_cycles)
        elif move is Move.SET_ASIDE:
            self.set_aside()
        elif window.is_recording and not self.is_reserve:
            window.next_step(step)
        elif move is Move.OPEN:
            self._open(step)

    def _shortage(self) -> tuple[int, int] | None:
        return None if self.current is None else self.current.shortage()

    def stop_memory_watch(self) -> None:
        """Steps look at the memory from here on, or nobody has to."""
        watch, self._memory_watch = self._memory_watch, None
        if watch is not None:
            watch.stop()

    def _prepare(self) -> None:
        """Let torch set up its tracing for the next window."""
        with held_back():
            self.current, self.is_reserve = self._new_window(), False
            self.current.prepare()

    def _open(self, step: int, *, is_reserve: bool = False) -> None:
        """Record from here on; `step` begins, unless it is a block without steps (yet)."""
        is_whole = self._schedule() is WHOLE_BLOCK
        if is_whole:  # its thread begins before threads are recorded
            self._memory_watch = EndMemoryWatch(self._shortage, self._recorder._end_without_steps)
        with held_back():
            window = self.current = self.current or self._new_window()
            self.is_reserve = is_reserve
            open_recorders.take(self._recorder)
            self._session.agree()
            window.begin(None if is_whole else step)
        signals.save_at_sigterm(self._recorder, self._recorder._at_exit)

    def _new_window(self) -> Window:
        has = self._recorder._equip()
        give_way, thread_ends = self._give_way, self._end_with_thread
        return Window(
            self._session.options, has.lines, has.workers, give_way, counters=has.counters, thread_ends=thread_ends
        )

    def set_aside(self) -> None:
        """End the window, and keep it in reserve."""
        if not self._leave_to_its_thread(complete=False) and self.current is not None:
            with held_back():
                window, self.current = self.current, None
                self._reserve = window
                self._end(window)

    def drop_reserve(self) -> None:
        """Forget the window in reserve."""
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            reserve.discard()

    def close(self, *, complete: bool = True, is_audited: bool = False) -> None:
        """End and save the window; steps behind the first one that `is_audited` are looked at if the options say so."""
        if self._leave_to_its_thread(complete=complete) or self.current is None:
            return
        with held_back():
            window, self.current = self.current, None
            self._end(window)
            self.drop_reserve()
            may_audit = self.audit is None and self._session.options.audit
            audit = StepAudit(self._session.user_code) if is_audited and may_audit else None
            self._save(self._exported(window, complete=complete, audit=audit))
        self.end_with_what_is_saved()
        self.audit = audit or self.audit

    def put_off(self) -> None:
        """Drop the window: the next one begins later."""
        if not self._leave_to_its_thread(complete=False, is_wanted=False) and self.current is not None:
            with held_back():
                window, self.current = self.current, None
                window.discard()
                open_recorders.release(self._recorder)
            if self._reserve is None:
                self.end_with_what_is_saved()

    @guarded
    def finish(self, *, complete: bool) -> None:
        """The recording ends: save the window if it is open, else the one in reserve."""
        if self._leave_to_its_thread(complete=complete):
            return
        window, self.current = self.current, None
        if window is not None and window.is_recording:
            self._end_last(window, complete=complete)
            return
        if window is not None:
            window.discard()
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            self._save(self._exported(reserve, complete=complete))

    def discard(self) -> None:
        """After an error: leave nothing installed, and save nothing that is not over."""
        self._leave_to_its_thread(complete=False, is_wanted=False)
        window, self.current = self.current, None
        self.drop_reserve()
        if window is not None:
            window.discard()

    def end_with_what_is_saved(self) -> None:
        """No window is open any more. SIGTERM still has the process wait for those that are being written."""
        self._pending = [one for one in self._pending if one.keep(self._recorder._at_exit)]
        signals.save_no_more(self._recorder)

    def _leave_to_its_thread(self, *, complete: bool, is_wanted: bool = True) -> bool:
        """Whether the open window is another thread's; that one ends it then, and here it is open no longer."""
        with self._handing:
            window = self.current
            if window is None or window.may_end_here:
                return False
            self._left = _LeftWindow(window, complete, is_wanted)
            self.current = None
        window.take_hooks_out()
        if not self.is_exiting:
            warn(_LEFT)
        return True

    @guarded
    def end_left(self) -> None:
        """End the window that was left to this thread, if there is one."""
        with self._handing:
            left = self._left
            if left is None or not left.window.may_end_here:
                return
            self._left = None
        with held_back():
            if left.is_wanted:
                self._end_last(left.window, complete=left.complete)
            else:
                self._end(left.window)
                self.drop_reserve()
        self.end_with_what_is_saved()
        if self.is_exiting:
            self._recorder.wait()  # nobody waits for threads that start now

    @guarded
    def _end_with_thread(self) -> None:
        """The thread that opened the window ends: nobody can end the window behind it."""
        if self._session.is_forked:
            return
        with self._handing:
            window = self.current
            if self._left is None and window is not None and window.is_recording and window.may_end_here:
                self._left = _LeftWindow(window, complete=False, is_wanted=True)
                self.current = None
        self.timer.end()  # no step of this thread follows that a trace could wait for
        self.end_left()

    def end_on_its_thread(self) -> None:
        """A daemon thread still runs as the process ends: torch crashes where that cuts off a recording."""
        window = self.current if self._left is None else self._left.window
        if window is not None and not window.may_end_here:
            call_between_lines(window.thread, self._end_with_thread, within_s=_LAST_LINE_S)

    @guarded
    def give_up_left(self) -> None:
        """The process ends, and with it the thread that could end the window; should that end first, it still does."""
        left = self._left
        if left is not None:
            keep_forever(left)
            warn(_LOST)
            reserve, self._reserve = self._reserve, None
            if reserve is not None and left.is_wanted:
                self._save(self._exported(reserve, complete=False, skip_if_empty=True))

    @guarded
    def _give_way(self) -> None:
        """A torch profiler of the user's is about to start: keep what there is and make room."""
        if self.current is not None and self.current.is_recording:
            self.close(complete=False)
        raise RecorderError(
            "a torch profiler was started in a window, and torch has room for one; the window ends here"
        )

    def _give_up(self) -> None:
        self._recorder._give_up()

    def _end(self, window: Window) -> None:
        try:
            window.end()
        finally:
            open_recorders.release(self._recorder)

    def _end_last(self, window: Window, *, complete: bool) -> None:
        """It may hold no more than the beginning of a step that was never made."""
        reserve, self._reserve = self._reserve, None
        self._end(window)
        is_short = not window.steps
        other = self._exported(reserve, complete=complete) if is_short and reserve is not None else None
        if reserve is not None and other is None:
            reserve.discard()
        skip = is_short and (other is not None or bool(self.saver.traces))
        self._save(self._exported(window, complete=complete, otherwise=other, skip_if_empty=skip))

    def _save(self, job: SaveJob) -> None:
        pending = Pending()
        self._pending.append(pending)
        self.saver.save(replace(job, on_end=pending.end))

    def _exported(
        self,
        window: Window,
        *,
        complete: bool,
        otherwise: SaveJob | None = None,
        skip_if_empty: bool = False,
        audit: StepAudit | None = None,
    ) -> SaveJob:
        """Has torch write the window's events into the folder, which is made where it is missing.

        Raises `RecorderError` where the folder or the space in it cannot be had, and what torch raises.
        """
        session, folder, history = self._session, self._folder.absolute(), window.memory_history
        make_trace_folder(folder)
        target = naming.trace_path(folder, session.worker, compress=session.options.compress)
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
        instructions = Instructions(
            raw=str(raw),
            target=str(target),
            header=window_header(
                session,
                window,
                schedule=self._schedule().numbers,
                complete=complete,
                recorded_steps=self.timer.recorded if window.steps else None,
                number=None if otherwise is None else otherwise.instructions.header.window,
            ),
            rename=_new_names(window),
            drop_if_empty=window.step_name,
            on_its_thread=window.steps > 0,  # A block without steps may leave all work to threads.
            clock_readings=window.clock_readings,
            align_time=session.options.align_time,
            skip_if_empty=skip_if_empty,
        )
        return SaveJob(
            instructions=instructions,
            otherwise=otherwise,
            worker_timings=window.worker_timings,
            counted=window.counted,
            plain_steps=self.timer.plain_later(),
            audited=(lambda: None) if audit is None else audit.audited,
            is_first=session.is_first,
            local_rank=session.local_rank,
            on_written=lambda trace: None if history is None else history.write(snapshot_path(trace)),
        )


def _new_names(window: Window) -> dict[str, str | None]:
    names = {WINDOW_NAME: step_name(0) if window.steps else None, **window.annotation_names}
    return names if window.has_begun_step else names | {window.step_name: None}
