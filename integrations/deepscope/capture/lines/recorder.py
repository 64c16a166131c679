"""The recorder of lines: hooks in for one window, and hands out what the scopes in the trace stand for."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from deepscope.capture import machine_use
from deepscope.capture.dynamo import hide_modules
from deepscope.capture.lines.calibration import CostSamples, HookWork, cost_of_operator_ns
from deepscope.capture.lines.hooks import make_hooks
from deepscope.capture.lines.lowering import lowered_scopes
from deepscope.capture.lines.modules import ModuleCalls
from deepscope.capture.lines.overhead_budget import Limits, OverheadBudget
from deepscope.capture.lines.recorded_code import Libraries, UserCode
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import LINE, LocalScopeRow, ScopeTable
from deepscope.capture.notices import warn
from deepscope.capture.process_hooks import open_recorders
from deepscope.capture.process_hooks.open_recorders import abandoned_in_children, is_at_own_work, own_work_watchers
from deepscope.trace.format import span_names
from deepscope.trace.format.header import LineAccount, ModuleParameters


@dataclass(frozen=True)
class LineRecord:
    """What one window's scopes stand for; an event `@ds:17` or `@dm:17` is a run of `scopes[17]`."""

    scopes: list[LocalScopeRow] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """User files (and cells) that ran, absolute with links resolved, in order of appearance."""
    library_files: list[str] = field(default_factory=list)
    """Files of installed packages whose lines were recorded, likewise."""
    entries: list[int] = field(default_factory=list)
    """Scopes opened, by scope number."""
    account: LineAccount = field(default_factory=LineAccount)
    autocast: str = ""
    """As `ModuleCalls.autocast`."""
    parameters: list[ModuleParameters] = field(default_factory=list)
    """Of the modules among `scopes`."""


_LOST = (RecursionError, IndexError)
"""Raised where the user's code is past its recursion limit, or another thread took the last spare entry or closes the
window."""
_TAKEN_OUT = (
    "lines are recorded in part: their hook was taken out by another tool, "
    "or by Python at the recursion limit or at an exception that a signal's handler raised"
)
_LET_GO = "lines are recorded in part: the window ended on another thread than it was opened on"


class LineRecorder:
    """Line and module scopes of one window after another; all is called on the training thread.

    `start` comes after torch's recording has begun and `stop` before it ends: a scope that is entered or closed without
    a recording corrupts torch's heap in a later one. Neither raises.
    """

    def __init__(
        self,
        user_code: UserCode,
        lines: bool = True,
        modules: bool = True,
        budget: int = 20_000,
        limits: Limits | None = None,
        *,
        libraries: bool = False,
    ) -> None:
        self.user_code = user_code
        self._libraries = Libraries(user_code) if libraries and lines else None
        self._limits = limits or Limits()
        self._lines = lines
        self._modules = modules
        self._budget = budget
        self.on_outermost: Callable[[FrameType], None] | None = None
        """Called when the outermost module is called, with the frame of that call; taken from here by `prepare`."""
        self._window: _Window | None = None
        self._prepared: _Window | None = None
        self._refusal = ""
        self._warned: set[str] = set()

    def prepare(self) -> None:
        """Make all that a window needs and measure what its hooks cost, so that `start` takes less of a step."""
        if self._window is not None:
            self.stop()
        try:
            user_code = self.user_code if self._lines else _NoCode(self.user_code.root)
            table = ScopeTable(user_code, self._budget, libraries=self._libraries)
            self._prepared = _Window(
                table, self._modules, self._limits, on_outermost=self.on_outermost, warned=self._warned
            )
        except Exception as error:  # noqa: BLE001 - the run goes on without lines
            self._refusal = f"lines are not recorded: {type(error).__name__}: {error}"
            warn(self._refusal)

    def start(self) -> None:
        """Open the scopes of the lines that run now and follow what runs from here on."""
        if self._prepared is None and not self._refusal:
            self.prepare()
        window, self._prepared = self._prepared, None
        if window is None:
            return
        self._window = window
        try:
            window.open(sys._getframe(1))
        except Exception as error:  # noqa: BLE001 - as above
            window.fail(error)

    def next_step(self) -> None:
        """Another step begins: measure anew what recording costs, since the first step makes what later ones use."""
        if self._window is not None:
            self._window.next_step()

    def mark_own_work(self) -> None:
        """A step ends or begins: what DeepScope did up to now lies on this side of it."""
        if self._window is not None:
            self._window.mark_own_work()

    def let_go(self) -> None:
        """Take the hooks out on another thread; `stop`, on the one that opened the scopes, closes them."""
        if self._window is not None:
            self._window.let_go()

    def stop(self) -> LineRecord:
        """Take every hook out, close this thread's scopes and hand out the record; empty where nothing was started."""
        window, self._window = self._window, None
        if window is not None:
            return window.close()
        refusal, self._refusal = self._refusal, ""
        return LineRecord(account=LineAccount(warnings=[refusal] if refusal else []))


class _Window:
    """One recording window, from `open` to `close`."""

    def __init__(
        self,
        table: ScopeTable,
        modules: bool,
        limits: Limits,
        *,
        on_outermost: Callable[[FrameType], None] | None,
        warned: set[str],
    ) -> None:
        _hide_hooks()
        _costs.prepare()
        self._table = table
        self._modules = ModuleCalls(table, are_wanted=modules, on_outermost=on_outermost)
        self._overhead_budget = OverheadBudget(self._table, _costs, limits)
        self._stacks = Stacks(self._table, self._modules, self._overhead_budget, _costs.overhead.event_ns)
        self._hooks = make_hooks(self._table, self._stacks, self._overhead_budget, self.fail)
        self._is_hooked = False
        self._is_closing = False
        self._is_unhooked = False
        """Whether the hooks were taken out before the window's end."""
        self._warnings: list[str] = []
        self._warned = warned
        """What earlier windows of this recording have warned of; the trace says it again, the terminal does not."""
        self._operator_ns = 0.0
        self._underway: list[int] = []

    def open(self, frame: FrameType | None) -> None:
        _open_windows.add(self)
        self._operator_ns = cost_of_operator_ns()
        refusal = self._hooks.install(frame)
        if refusal is not None:
            self._note(f"lines are not recorded: {refusal}")
        else:
            self._is_hooked = True
            own_work_watchers.append(self)
            if is_at_own_work():
                self.begin_own_work()
            self._underway = [slot.id for one in self._stacks.threads.own if (slot := one.function.lines.get(one.line))]

    def next_step(self) -> None:
        if self._is_hooked and not self._is_unhooked and not self._is_closing:
            if self._stacks.threads.is_owner and self._hooks.go_on():
                self._note_taken_out()
            _costs.begin_burst()
            self._hooks.take_samples()

    def begin_own_work(self) -> None:
        if self._stacks.threads.is_owner:
            self._hooks.pause()
            self._stacks.marks.begin_own_work()

    def mark_own_work(self) -> None:
        if self._stacks.threads.is_owner:
            self._stacks.marks.mark_own_work()

    def end_own_work(self) -> None:
        if self._stacks.threads.is_owner:
            self._stacks.marks.end_own_work()
            self._hooks.resume()

    def let_go(self) -> None:
        self._is_closing = self._is_unhooked = True
        self._warnings.append(_LET_GO)  # whoever lets go warns
        self._hooks.remove()

    def close(self) -> LineRecord:
        _open_windows.discard(self)
        self._stop_watching()
        self._is_closing = True
        try:
            self._stacks.close_own()  # at first: what it takes to remove hooks is not the user's line's
            if (
                self._is_hooked
                and not self._is_unhooked
                and self._stacks.threads.is_owner
                and not self._hooks.is_in_place
            ):
                self._note_taken_out()
            self._hooks.remove()
        except Exception as error:  # noqa: BLE001 - the scopes must be closed whatever happens
            self._note("a hook could not be removed", error)
        try:
            self._stacks.end()
            if not self._stacks.threads.is_owner:
                self._note("the window was closed on another thread than it was opened on; its lines may be cut short")
            self._table.remember()
            self._modules.describe()
        except Exception as error:  # noqa: BLE001 - what was recorded is kept
            self._note("line scopes could not be closed", error)
        return self._record()

    def fail(self, error: BaseException) -> None:
        """Something went wrong in a hook: record no more lines; what is open is closed with the window.

        A lost event is no failure: the next one sets the stack right.
        """
        if self._is_closing or isinstance(error, _LOST):
            return
        self._is_unhooked = True
        try:
            self._hooks.remove()
        except Exception as second:  # noqa: BLE001 - nothing may reach the user's code from here
            error = second
        self._note("line recording stopped", error)

    def abandon(self) -> None:
        """In a forked child, where nobody records: take the hooks out and close nothing."""
        self._stop_watching()
        self._hooks.remove()
        self._stacks.abandon()

    def _stop_watching(self) -> None:
        own_work_watchers[:] = [one for one in own_work_watchers if one is not self]

    def _note_taken_out(self) -> None:
        if _TAKEN_OUT not in self._warnings:
            self._warnings.append(_TAKEN_OUT)  # the trace says it; the user's debugger is no matter to warn of

    def _note(self, message: str, error: BaseException | None = None) -> None:
        detail = f": {type(error).__name__}: {error}" if error is not None else ""
        self._warnings.append(message + detail)
        if len(self._warnings) == 1 and message not in self._warned:
            self._warned.add(message)
            warn(message, error)

    def _record(self) -> LineRecord:
        table = self._table
        lowered = lowered_scopes(table)
        entries = [slot.opened for slot in table.slots]
        files = dict.fromkeys(row.file for row in table.rows if row.kind == LINE and not row.library)
        library_files = dict.fromkeys(row.file for row in table.rows if row.library)
        account = LineAccount(
            backend=self._hooks.backend if self._is_hooked else None,
            entries=sum(entries),
            cost_ns=_costs.of(HookWork.ENTRY),
            operator_ns=self._operator_ns,
            total_ns=self._overhead_budget.cost_ns,
            calls=self._overhead_budget.calls,
            left_alone=self._overhead_budget.left_alone,
            slowdown=round(_costs.overhead.slowdown, 2),
            on_core=round(self._overhead_budget.share_on_core, 3),
            budget=table.budget,
            over_budget=[(slot.id, slot.missed - slot.late) for slot in table.slots if slot.missed > slot.late],
            lowered=lowered,
            modules_only=not table.has_lines,
            libraries=table.opened,
            library_entries=sum(n for n, row in zip(entries, table.rows, strict=False) if row.library),
            libraries_ended=table.has_ended_libraries,
            underway=self._underway,
            threads=self._stacks.threads.recorded,
            unrecorded_threads=self._stacks.threads.unrecorded,
            warnings=self._warnings,
        )
        return LineRecord(
            list(table.rows),
            list(files),
            list(library_files),
            entries,
            account,
            self._modules.autocast,
            self._modules.parameters,
        )


class _NoCode(UserCode):
    """A selection of nothing, for a recording of modules without lines."""

    def owns(self, filename: str) -> bool:  # noqa: ARG002 - the answer is the same for all
        return False


_costs = CostSamples()
_open_windows: weakref.WeakSet[_Window] = abandoned_in_children()


def _hide_hooks() -> None:
    package = __name__.rpartition(".")[0]
    own = [module for name, module in sys.modules.copy().items() if name.startswith(f"{package}.")]
    hide_modules([*own, machine_use, open_recorders, span_names])
