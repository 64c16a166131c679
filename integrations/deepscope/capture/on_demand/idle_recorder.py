"""A recorder that is idle until it is asked: it counts steps, and records a window when a request says so.

While nobody asks it costs a number and three readings of clocks each step. Requests come on another thread; windows
open and close on the thread that makes the steps, between two of them.
"""

from __future__ import annotations

import os
import statistics
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from deepscope.capture import notices
from deepscope.capture.on_demand.protocol import CHOSEN_ON_REQUEST, ControlAnswer, ControlRequest, RequestedWindow
from deepscope.capture.process_hooks.signals import comes_from_handler
from deepscope.capture.process_hooks.threads import MainThreadLock, stack_of
from deepscope.capture.step_timer import StepKind, StepTimer
from deepscope.errors import ControlError, DeepScopeError

if TYPE_CHECKING:
    from deepscope.capture.options import RecordingOptions
    from deepscope.capture.recorder import Recorder
    from deepscope.capture.schedule import Plan

_KEPT = 64

MakeRecorder = Callable[["RecordingOptions", "Plan | None", int, str], "Recorder"]
"""Makes the recorder of a window: its options, its plan, the number of its first step, the id of its run."""


class _LateError(ControlError):
    """The job has come too far for what was proposed."""


class IdleRecorder:
    """Counts steps (`step`), answers requests (`answer`) and records the windows that they ask for.

    `make` makes the recorder of a window; `options` are its options unless a request says otherwise.
    """

    def __init__(
        self,
        make: MakeRecorder,
        *,
        folder: Path,
        options: Mapping[str, Any],
        facts: Callable[[], Mapping[str, Any]],
        counted_by: str = "program",
    ) -> None:
        self.make = make
        self.folder = folder
        self.options = options
        self.counted_by = counted_by
        self.is_joined = False
        """Whether the job ran already when steps began to be counted."""
        self.count = 0
        self.on_step: Callable[[], None] | None = None
        """Called at each step: a control server without a thread looks for requests then."""
        self.traces: list[Path] = []
        """Of all windows so far."""
        self._facts = facts
        self._ends: deque[int] = deque(maxlen=_KEPT)
        self._timer = StepTimer()
        self._window: RequestedWindow | None = None
        self._lock = MainThreadLock(self._act_on_main_thread)
        self._holder = 0
        """The thread that begins or ends a window."""
        self._is_finished = False
        self._pid = os.getpid()
        self._thread = threading.main_thread().ident or 0
        self.on_open: Callable[[], None] = lambda: None
        """Called when a window has opened."""
        self.on_over: Callable[[], None] = lambda: None
        """Called when a window is saved, or failed."""

    @property
    def is_asked(self) -> bool:
        """Whether a window is asked for, open or being saved."""
        window = self._window
        return window is not None and window.state not in {"saved", "failed"}

    @property
    def is_of_this_process(self) -> bool:
        """Whether this is not a forked child's copy."""
        return os.getpid() == self._pid

    @property
    def recorder(self) -> Recorder | None:
        """The one of the window that is open or warming up."""
        window = self._window
        return None if window is None or window.is_over else window.recorder

    @property
    def is_full(self) -> bool:
        """Whether the step that runs is the last one of the open window."""
        end = None if self._window is None or self.recorder is None else self._window.end
        return end is not None and self.count + 1 >= end

    def step(self) -> None:
        self.count += 1
        self._ends.append(monotonic_ns())
        if self._window is None or self._window.is_over:
            self._timer.next(StepKind.PLAIN)
        else:
            self._at_boundary()
            self._timer.begin(StepKind.OTHER)
        if self.on_step is not None:
            self.on_step()

    @contextmanager
    def _acting(self) -> Iterator[RequestedWindow | None]:
        """This thread begins or ends windows; gives the one that is not over. The job does not fail for what fails."""
        with self._lock.held():
            self._holder = threading.get_ident()
            window = self._window
            try:
                yield None if window is None or window.is_over else window
            except Exception as error:
                if comes_from_handler(error):  # the program's own, which is to reach it
                    raise
                assert window is not None
                self._fail(window, error)
            finally:
                self._holder = 0

    def _at_boundary(self) -> None:
        if not self.is_of_this_process:  # nobody may hold there the lock that the parent held
            return
        with self._acting() as window:
            self._thread = self._holder
            if window is None:
                pass
            elif window.recorder is None:
                if window.is_held and not window.is_at_once and self.count == window.begin:
                    self._begin(window)
            elif window.thread == self._thread:
                self._go_on(window, window.recorder)

    def _begin(self, window: RequestedWindow) -> None:
        from deepscope.capture.options import checked_options

        options = checked_options({**self.options, **window.request.options})
        notices.hear(window.notes.append)
        window.thread = threading.get_ident()
        try:
            id_, first_number = window.request.id, window.first_number - window.request.warmup
            recorder = self.make(options, window.plan(), first_number, f"{id_}-{id_}")
            window.recorder = recorder
            recorder.timer.take_over(self._timer)
            recorder.start()
            if not recorder.session.is_chosen:
                choice = options.rank_choice
                ranks = ",".join(map(str, sorted(choice))) if isinstance(choice, frozenset) else choice
                raise ControlError(f"this rank does not record: the job was started with ranks={ranks}")
        except DeepScopeError:
            notices.hear(None)
            raise
        window.state = "recording"
        self.on_open()
        if recorder.is_stopped:
            self._close(window, recorder)

    def _go_on(self, window: RequestedWindow, recorder: Recorder) -> None:
        if window.is_ending and not recorder.recording:  # whoever asked has gone in the warm-up
            self._close(window, recorder)
            return
        if not window.is_at_once:
            window.recorded = max(0, min(self.count, window.end or self.count) - window.request.step)
        recorder.step()
        is_last = window.end is not None and self.count >= window.end
        if window.is_ending or is_last or recorder.is_stopped:  # a recorder that gave up has said why
            self._close(window, recorder)

    def _close(self, window: RequestedWindow, recorder: Recorder, *, complete: bool = True) -> None:
        """The window ends; another thread waits until it is saved."""
        window.state = "saving"
        try:
            if window.is_dropped:
                recorder.discard()
            recorder.stop(complete=complete)
        finally:  # a signal's handler may have raised
            arguments = window, recorder
            try:
                threading.Thread(target=self._wait, args=arguments, name="deepscope-on-demand", daemon=True).start()
            except RuntimeError:  # the interpreter is ending
                self._wait(window, recorder)

    def _wait(self, window: RequestedWindow, recorder: Recorder) -> None:
        with suppress(Exception):
            recorder.wait()
        notices.hear(None)
        written = [path for path in recorder.traces if path.exists()]
        self.traces += written
        window.traces = [str(path) for path in written]
        window.recorder = None  # it holds on to what it recorded
        if window.is_dropped:
            self._window = None
        elif window.traces:
            window.state = "saved"
        else:
            window.problem = window.problem or "; ".join(window.notes) or "nothing was recorded"
            window.state = "failed"
        self.on_over()

    def _fail(self, window: RequestedWindow, error: BaseException) -> None:
        window.problem = str(error) if isinstance(error, DeepScopeError) else f"{type(error).__name__}: {error}"
        recorder, window.recorder = window.recorder, None
        if recorder is not None:
            with suppress(Exception):
                recorder.discard()
            with suppress(Exception):
                recorder.stop(complete=False)
        notices.hear(None)
        window.state = "failed"
        self.on_over()

    def answer(self, request: ControlRequest) -> ControlAnswer:
        """What becomes of a request; raises nothing that it is to blame for."""
        act = {
            "look": lambda _: None,
            "start": self._propose,
            "end": self._propose_end,
            "commit": self._commit,
            "now": self._now,
            "stop": self._stop,
            "drop": self._drop,
        }[request.kind]
        problem, is_late = "", False
        try:
            if request.opens_window:
                self._make_ready(request)
            with self._lock.held():
                act(request)
        except DeepScopeError as error:
            problem, is_late = str(error), isinstance(error, _LateError)
        answer = self._tell()
        answer.accepted, answer.is_late = not problem, is_late
        answer.problem = problem or answer.problem
        if request.stack:
            answer.stack = stack_of(self._thread)
        return answer

    def _tell(self) -> ControlAnswer:
        window = self._window
        ends = list(self._ends)
        lengths = [after - before for before, after in pairwise(ends)]
        answer = ControlAnswer(
            **self._facts(),
            pid=self._pid,
            folder=str(self.folder),
            step=self.count,
            ends_ns=ends[-16:],
            now_ns=monotonic_ns(),
            step_ns=int(statistics.median(lengths)) if lengths else 0,
            counted_by=self.counted_by,
            is_joined=self.is_joined,
        )
        if window is not None:
            answer.state, answer.id, answer.problem = window.state, window.request.id, window.problem
            answer.recorded, answer.traces, answer.notes = window.recorded, window.traces[:], window.notes[:20]
        return answer

    def _make_ready(self, request: ControlRequest) -> None:
        """What a window needs is imported and checked here, so that no step waits for it."""
        unknown = sorted(request.options.keys() - CHOSEN_ON_REQUEST)
        if unknown:
            raise ControlError(f"{unknown[0]} cannot be chosen while a job runs; it is chosen when the job starts")
        import deepscope.capture.recorder  # noqa: F401
        from deepscope.capture.options import checked_options

        checked_options({**self.options, **request.options})

    def _check_free(self, request: ControlRequest) -> None:
        """Raises `ControlError` where no window can be had for this request."""
        window = self._window
        if self._is_finished:
            raise ControlError("the job ends")
        if not request.id:
            raise ControlError("a window needs an id")
        if window is None:
            return
        is_same = window.request.id == request.id
        if not is_same and not window.is_over:
            raise ControlError("another `deepscope attach` records this job; wait until it is done")
        if window.state == "saving":
            raise ControlError("the window before this one is still being saved; wait until it is done")
        if is_same and (window.recorder is not None or window.is_over):
            raise ControlError("this window has been opened already")

    def _propose(self, request: ControlRequest) -> None:
        self._check_free(request)
        window = RequestedWindow(
            request,
            first_number=request.step if request.first_number is None else request.first_number,
            end=None if request.steps is None else request.step + request.steps,
        )
        self._check_ahead(window.begin)
        self._window = window

    def _check_ahead(self, step: int) -> None:
        if self.count >= step:
            raise _LateError(f"step {step} is too early: the job is at step {self.count}")

    def _window_of(self, request: ControlRequest) -> RequestedWindow:
        window = self._window
        if window is None or window.request.id != request.id:
            raise ControlError("there is no window of this id")
        return window

    def _commit(self, request: ControlRequest) -> None:
        window = self._window_of(request)
        if window.proposed_end is not None:
            self._check_ahead(window.proposed_end)
            window.end, window.proposed_end = window.proposed_end, None
        elif not window.is_held:
            self._check_ahead(window.begin)
            window.is_held = True

    def _propose_end(self, request: ControlRequest) -> None:
        window = self._window_of(request)
        if window.is_over:  # Another stage of a Trainer began meanwhile, say: what there is is being saved.
            return
        if not window.is_held or request.step <= window.request.step:
            raise ControlError("no window is open that could end at this step")
        self._check_ahead(request.step)
        window.proposed_end = request.step

    def _now(self, request: ControlRequest) -> None:
        self._check_free(request)
        first_number = self.count + request.warmup  # less the warm-up that a whole block does not have
        self._window = RequestedWindow(request, first_number, is_held=True)
        if not self._lock.call_soon():
            self._window = None
            raise ControlError("this Python takes no call on its main thread")

    def _act_on_main_thread(self) -> None:
        """On the main thread, at any moment of the program: begins or ends a window that does not wait for a step."""
        if not self.is_of_this_process:
            return
        with self._acting() as window:
            if window is None or not window.is_at_once:
                pass
            elif window.recorder is None:
                self._begin(window)
            elif window.is_ending and window.thread == threading.get_ident():
                self._close(window, window.recorder)

    def _stop(self, request: ControlRequest) -> None:
        window = self._window_of(request)
        if window.is_over:
            return
        if window.recorder is None:
            self._window = None
            return
        window.is_ending = True
        if window.is_at_once:
            self._lock.call_soon()

    def _drop(self, request: ControlRequest) -> None:
        window = self._window_of(request)
        window.is_dropped = True
        self._stop(request)

    def let_go(self, id_: str) -> None:
        """Whoever asked has gone: what is open ends and is saved, what is not is forgotten."""
        with suppress(DeepScopeError), self._lock.held():
            self._stop(ControlRequest("stop", id=id_))

    def cut_short(self, why: str, *, complete: bool = True) -> None:
        """No step follows this one for now: a window that is open is saved with what it has."""
        if not self.is_of_this_process or self._holder == threading.get_ident():
            return
        with self._acting() as window:
            if window is not None and window.recorder is not None:
                steps = window.request.steps
                recorded = window.recorded if steps is None else f"{window.recorded} of {steps}"
                window.notes.append(f"{why}: the window ends after {recorded} steps")
                self._close(window, window.recorder, complete=complete)

    def finish(self) -> None:
        """The program ends: a window that is open is saved with what it has, and none is opened any more."""
        self._is_finished = True
        self.cut_short("the job ends", complete=False)
        window = self._window
        if self.is_of_this_process and window is not None and window.recorder is None and not window.is_over:
            window.problem, window.state = "the job ended before the window began", "failed"
            self.on_over()
