"""A recorder that is idle until it is asked: it counts steps, and records a window when a request says so.

While nobody asks it costs a number and three readings of clocks each step. Requests come on another thread; windows
open and close on the thread that makes the steps, between two of them.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from deepscope.capture import notices
from deepscope.capture.on_demand.messages import ControlAnswer, ControlRequest, Order
from deepscope.capture.options import RankChoice
from deepscope.capture.process_hooks.interrupts import comes_from_handler
from deepscope.capture.process_hooks.threads import call_soon
from deepscope.capture.step_timer import StepKind, StepTimer
from deepscope.errors import ControlError, DeepScopeError

if TYPE_CHECKING:
    from deepscope.capture.options import RecordingOptions
    from deepscope.capture.recorder import Recorder
    from deepscope.capture.schedule import Plan

CHOSEN_ON_REQUEST = frozenset(
    {
        "topics", "lines", "modules", "libraries", "compiled_lines", "record_shapes", "profile_memory", "with_stack",
        "with_flops", "with_modules", "sync_events", "align_time", "max_slowdown", "max_entries", "source", "compress",
    }
)  # fmt: skip
"""What a request may choose: what is recorded, never where it is written or what is run."""

_KEPT = 64
_STACK_LINES = 40

MakeRecorder = Callable[["RecordingOptions", "Plan | None", int, str], "Recorder"]
"""Makes the recorder of a window: its options, its plan, the number of its first step, the id of its run."""


class _LateError(ControlError):
    """The job has come too far for what was proposed."""


def _ranks_text(choice: RankChoice) -> str:
    """A choice of ranks as a user writes it."""
    return ",".join(map(str, sorted(choice))) if isinstance(choice, frozenset) else str(choice)


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
        self._order: Order | None = None
        self._lock = threading.Lock()
        self._holder = 0
        """The thread that begins or ends a window."""
        self._is_called_meanwhile = False
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
        order = self._order
        return order is not None and order.state not in {"saved", "failed"}

    @property
    def is_of_this_process(self) -> bool:
        """Whether this is not a forked child's copy."""
        return os.getpid() == self._pid

    @property
    def recorder(self) -> Recorder | None:
        """The one of the window that is open or warming up."""
        order = self._order
        return None if order is None or order.is_over else order.recorder

    @property
    def is_full(self) -> bool:
        """Whether the step that runs is the last one of the open window."""
        order = self._order
        return self.recorder is not None and order is not None and order.end is not None and self.count + 1 >= order.end

    def step(self) -> None:
        self.count += 1
        self._ends.append(monotonic_ns())
        if self._order is None or self._order.is_over:
            self._timer.next(StepKind.PLAIN)
        else:
            self._at_boundary()
            self._timer.begin(StepKind.OTHER)
        if self.on_step is not None:
            self.on_step()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Has the lock; a call to the main thread that came meanwhile comes again behind it."""
        try:
            with self._lock:
                yield
        finally:
            if self._is_called_meanwhile:
                self._is_called_meanwhile = False
                call_soon(self._act_on_main_thread)

    @contextmanager
    def _acting(self) -> Iterator[Order | None]:
        """This thread begins or ends windows; gives the one that is not over. The job does not fail for what fails."""
        with self._locked():
            self._holder = threading.get_ident()
            order = self._order
            try:
                yield None if order is None or order.is_over else order
            except Exception as error:
                if comes_from_handler(error):  # the program's own, which is to reach it
                    raise
                assert order is not None
                self._fail(order, error)
            finally:
                self._holder = 0

    def _at_boundary(self) -> None:
        if not self.is_of_this_process:  # nobody may hold there the lock that the parent held
            return
        with self._acting() as order:
            self._thread = self._holder
            if order is None:
                pass
            elif order.recorder is None:
                if order.is_held and not order.is_at_once and self.count == order.begin:
                    self._begin(order)
            elif order.thread == self._thread:
                self._go_on(order, order.recorder)

    def _begin(self, order: Order) -> None:
        from deepscope.capture.options import checked_options

        options = checked_options({**self.options, **order.options})
        notices.hear(order.notes.append)
        order.thread = threading.get_ident()
        try:
            first_number = order.first_number - order.warmup
            recorder = self.make(options, order.plan(), first_number, f"{order.id}-{order.id}")
            order.recorder = recorder
            recorder.timer.take_over(self._timer)
            recorder.start()
            if not recorder.session.is_chosen:
                raise ControlError(
                    f"this rank does not record: the job was started with ranks={_ranks_text(options.rank_choice)}"
                )
        except DeepScopeError:
            notices.hear(None)
            raise
        order.state = "recording"
        self.on_open()
        if recorder.is_stopped:
            self._close(order, recorder)

    def _go_on(self, order: Order, recorder: Recorder) -> None:
        if order.is_ending and not recorder.recording:  # whoever asked has gone in the warm-up
            self._close(order, recorder)
            return
        if not order.is_at_once:
            order.recorded = max(0, min(self.count, order.end or self.count) - order.first)
        recorder.step()
        is_last = order.end is not None and self.count >= order.end
        if order.is_ending or is_last or recorder.is_stopped:  # a recorder that gave up has said why
            self._close(order, recorder)

    def _close(self, order: Order, recorder: Recorder, *, complete: bool = True) -> None:
        """The window ends; another thread waits until it is saved."""
        order.state = "saving"
        try:
            if order.is_dropped:
                recorder.discard()
            recorder.stop(complete=complete)
        finally:  # a signal's handler may have raised
            self._wait_beside(order, recorder)

    def _wait_beside(self, order: Order, recorder: Recorder) -> None:
        waiting = threading.Thread(target=self._wait, args=(order, recorder), name="deepscope-on-demand", daemon=True)
        try:
            waiting.start()
        except RuntimeError:  # the interpreter is ending
            self._wait(order, recorder)

    def _wait(self, order: Order, recorder: Recorder) -> None:
        with suppress(Exception):
            recorder.wait()
        notices.hear(None)
        written = [path for path in recorder.traces if path.exists()]
        self.traces += written
        order.traces = [str(path) for path in written]
        order.recorder = None  # it holds on to what it recorded
        if order.is_dropped:
            self._order = None
        elif order.traces:
            order.state = "saved"
        else:
            order.problem = order.problem or "; ".join(order.notes) or "nothing was recorded"
            order.state = "failed"
        self.on_over()

    def _fail(self, order: Order, error: BaseException) -> None:
        order.problem = str(error) if isinstance(error, DeepScopeError) else f"{type(error).__name__}: {error}"
        recorder, order.recorder = order.recorder, None
        if recorder is not None:
            with suppress(Exception):
                recorder.discard()
            with suppress(Exception):
                recorder.stop(complete=False)
        notices.hear(None)
        order.state = "failed"
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
            if request.kind in {"start", "now"}:
                self._make_ready(request)
            with self._locked():
                act(request)
        except DeepScopeError as error:
            problem, is_late = str(error), isinstance(error, _LateError)
        answer = self._tell()
        answer.accepted, answer.is_late = not problem, is_late
        answer.problem = problem or answer.problem
        if request.stack:
            answer.stack = self._stack()
        return answer

    def _tell(self) -> ControlAnswer:
        order = self._order
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
        if order is not None:
            answer.state, answer.id, answer.problem = order.state, order.id, order.problem
            answer.recorded, answer.traces, answer.notes = order.recorded, order.traces[:], order.notes[:20]
        return answer

    def _make_ready(self, request: ControlRequest) -> None:
        """What a window needs is imported and checked here, so that no step waits for it."""
        unknown = sorted(request.options.keys() - CHOSEN_ON_REQUEST)
        if unknown:
            raise ControlError(f"{unknown[0]} cannot be chosen while a job runs; it is chosen when the job starts")
        import deepscope.capture.recorder  # noqa: F401
        from deepscope.capture.options import checked_options

        checked_options({**self.options, **request.options})

    def _new(self, request: ControlRequest) -> Order:
        order = self._order
        if self._is_finished:
            raise ControlError("the job ends")
        if not request.id:
            raise ControlError("a window needs an id")
        if order is not None and order.id != request.id and not order.is_over:
            raise ControlError("another `deepscope attach` records this job; wait until it is done")
        if order is not None and order.state == "saving":
            raise ControlError("the window before this one is still being saved; wait until it is done")
        if order is not None and order.id == request.id and (order.recorder is not None or order.is_over):
            raise ControlError("this window has been opened already")
        return Order(id=request.id, options=dict(request.options), warmup=request.warmup)

    def _propose(self, request: ControlRequest) -> None:
        order = self._new(request)
        order.first, order.steps = request.step, request.steps
        order.first_number = request.step if request.first_number is None else request.first_number
        order.end = None if request.steps is None else request.step + request.steps
        self._check_ahead(order.begin)
        self._order = order

    def _check_ahead(self, step: int) -> None:
        if self.count >= step:
            raise _LateError(f"step {step} is too early: the job is at step {self.count}")

    def _order_of(self, request: ControlRequest) -> Order:
        order = self._order
        if order is None or order.id != request.id:
            raise ControlError("there is no window of this id")
        return order

    def _commit(self, request: ControlRequest) -> None:
        order = self._order_of(request)
        if order.proposed_end is not None:
            self._check_ahead(order.proposed_end)
            order.end, order.proposed_end = order.proposed_end, None
        elif not order.is_held:
            self._check_ahead(order.begin)
            order.is_held = True

    def _propose_end(self, request: ControlRequest) -> None:
        order = self._order_of(request)
        if order.is_over:  # Another stage of a Trainer began meanwhile, say: what there is is being saved.
            return
        if not order.is_held or request.step <= order.first:
            raise ControlError("no window is open that could end at this step")
        self._check_ahead(request.step)
        order.proposed_end = request.step

    def _now(self, request: ControlRequest) -> None:
        order = self._new(request)
        order.is_held = order.is_at_once = True
        order.first_number = self.count + order.warmup  # less the warm-up that a whole block does not have
        self._order = order
        if not call_soon(self._act_on_main_thread):
            self._order = None
            raise ControlError("this Python takes no call on its main thread")

    def _act_on_main_thread(self) -> None:
        """On the main thread, at any moment of the program: begins or ends a window that does not wait for a step."""
        if not self.is_of_this_process:
            return
        self._is_called_meanwhile = True
        if self._lock.locked():  # maybe by this very thread, which would wait for itself
            return
        self._is_called_meanwhile = False
        with self._acting() as order:
            if order is None or not order.is_at_once:
                pass
            elif order.recorder is None:
                self._begin(order)
            elif order.is_ending and order.thread == threading.get_ident():
                self._close(order, order.recorder)

    def _stop(self, request: ControlRequest) -> None:
        order = self._order_of(request)
        if order.is_over:
            return
        if order.recorder is None:
            self._order = None
            return
        order.is_ending = True
        if order.is_at_once:
            call_soon(self._act_on_main_thread)

    def _drop(self, request: ControlRequest) -> None:
        order = self._order_of(request)
        order.is_dropped = True
        self._stop(request)

    def let_go(self, id_: str) -> None:
        """Whoever asked has gone: what is open ends and is saved, what is not is forgotten."""
        with suppress(DeepScopeError), self._locked():
            self._stop(ControlRequest("stop", id=id_))

    def cut_short(self, why: str, *, complete: bool = True) -> None:
        """No step follows this one for now: a window that is open is saved with what it has."""
        if not self.is_of_this_process or self._holder == threading.get_ident():
            return
        with self._acting() as order:
            if order is not None and order.recorder is not None:
                recorded = order.recorded if order.steps is None else f"{order.recorded} of {order.steps}"
                order.notes.append(f"{why}: the window ends after {recorded} steps")
                self._close(order, order.recorder, complete=complete)

    def finish(self) -> None:
        """The program ends: a window that is open is saved with what it has, and none is opened any more."""
        self._is_finished = True
        self.cut_short("the job ends", complete=False)
        order = self._order
        if self.is_of_this_process and order is not None and order.recorder is None and not order.is_over:
            order.problem, order.state = "the job ended before the window began", "failed"
            self.on_over()

    def _stack(self) -> list[str]:
        """Where the thread of the steps stands, innermost last."""
        frame = sys._current_frames().get(self._thread)
        if frame is None:
            return []
        summary = traceback.extract_stack(frame)
        return [f"{one.filename}:{one.lineno} {one.name}"[:500] for one in summary[-_STACK_LINES:]]
