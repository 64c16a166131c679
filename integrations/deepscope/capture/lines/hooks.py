"""The two ways to learn which line runs, and a clock of our own that times lines where no torch recording is."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import NamedTuple, Protocol

from deepscope.capture.lines.calibration import CostSamples
from deepscope.capture.lines.frames import FunctionState
from deepscope.capture.lines.lowering import Lowering, Switch
from deepscope.capture.lines.modules import ModuleCalls
from deepscope.capture.lines.monitoring import MonitoringHooks, monitoring
from deepscope.capture.lines.overhead_budget import Limits, OverheadBudget
from deepscope.capture.lines.recorded_code import UserCode
from deepscope.capture.lines.scopes import UNLIMITED, Pair
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.time_marks import LONG_NS, OffCpuTime
from deepscope.capture.lines.tracing import TracingHooks
from deepscope.capture.process_hooks.signals import comes_from_handler


class Hooks(Switch, Protocol):
    """Follows the lines of user code from `install` to `remove`, on the stacks that it was made with."""

    backend: str

    def install(self, frame: FrameType | None) -> str | None:
        """Hook in; `frame` is the innermost one that runs already. Returns why not, or None."""

    @property
    def is_in_place(self) -> bool:
        """Whether nobody else has taken the hooks of this thread out."""

    def go_on(self) -> bool:
        """On the thread of `install`: hook in again if Python took the hooks out, and tell whether it had."""

    def pause(self) -> None:
        """On the thread of `install`: see nothing until `resume`."""

    def resume(self) -> None:
        """Go on, unless `remove` was called."""

    def remove(self) -> None:
        """Leave nothing behind; safe to call twice."""

    def adopt(self, code: CodeType) -> FunctionState | None:
        """The facts of a code object that is seen for the first time; None for code that gets no scopes."""


def make_hooks(
    table: ScopeTable,
    stacks: Stacks,
    overhead_budget: OverheadBudget,
    fail: Callable[[Exception], None],
) -> Hooks:
    """The hooks of this Python, over `stacks`; `fail` is told of an exception in one of them and must not raise.

    What a signal's handler raises while a hook runs is the program's own, and reaches it.
    """

    def fail_or_raise(error: Exception) -> None:
        if comes_from_handler(error):
            raise error
        fail(error)

    make: type[MonitoringHooks] | type[TracingHooks] = MonitoringHooks if monitoring is not None else TracingHooks
    hooks: Hooks = make(table, stacks, overhead_budget, fail_or_raise)
    stacks.adopt = hooks.adopt
    lowering = Lowering(table, stacks, overhead_budget, hooks)
    stacks.look = lowering.look
    stacks.drop = lowering.drop
    return hooks


class LineTime(NamedTuple):
    """What one line took in one worker."""

    file: str
    line: int
    function: str
    self_ns: int
    """Time on this line less the lines that it called."""
    calls: int
    cpu_ns: int
    """The part of `self_ns` on the CPU; in the rest the thread slept, or waited for a file or a lock."""


class LineClock:
    """Times the lines of user code on the current thread from `start` to `stop`."""

    def __init__(self, user_code: UserCode) -> None:
        self._table = ScopeTable(user_code, UNLIMITED, self._pair)
        overhead_budget = OverheadBudget(self._table, CostSamples(), Limits())
        modules = ModuleCalls(self._table, are_wanted=False)
        self._stacks = Stacks(self._table, modules, overhead_budget, only_owner=True)
        self._hooks = make_hooks(self._table, self._stacks, overhead_budget, self._fail)
        self._running: list[str] = []
        self._since = 0
        self._self_ns: dict[str, int] = {}
        self._off_cpu = OffCpuTime()
        self._off_cpu_ns: dict[str, int] = {}

    def start(self) -> None:
        """Follow what the current frame calls; the frames that run already are not the worker's own."""
        self._hooks.install(None)

    def stop(self) -> None:
        """Take the hooks out."""
        self._hooks.remove()
        self._stacks.end()

    def times(self) -> list[LineTime]:
        """The lines so far; may be called on another thread while the clock runs."""
        self_ns, off_cpu_ns = dict(self._self_ns), dict(self._off_cpu_ns)
        running, since = self._running[-1:], self._since
        if running:
            now = perf_counter_ns()
            self_ns[running[0]] = self_ns.get(running[0], 0) + now - since
            off_cpu_ns[running[0]] = off_cpu_ns.get(running[0], 0) + self._off_cpu.peek(since, now)
        slots = list(self._table.slots)
        rows = [(self._table.rows[one.id], self_ns.get(one.name, 0), off_cpu_ns.get(one.name, 0), one) for one in slots]
        return [
            LineTime(row.file, row.line, row.name, spent, slot.opened, max(spent - off_cpu, 0))
            for row, spent, off_cpu, slot in rows
        ]

    def _pair(self, name: str) -> Pair:
        running, self_ns, off_cpu_ns, off_cpu = self._running, self._self_ns, self._off_cpu_ns, self._off_cpu
        self_ns.setdefault(name, 0)

        def hand_over(now: int) -> None:
            since = self._since
            if now - since >= LONG_NS or now - off_cpu.read_at >= LONG_NS:
                off_cpu_ns[running[-1]] = off_cpu_ns.get(running[-1], 0) + off_cpu.read(since, now)
            self_ns[running[-1]] += now - since

        def enter() -> None:
            now = perf_counter_ns()
            if running:
                hand_over(now)
            elif now - off_cpu.read_at >= LONG_NS:
                off_cpu.read(now, now)
            running.append(name)
            self._since = now

        def leave() -> None:
            now = perf_counter_ns()
            hand_over(now)
            running.pop()
            self._since = now

        return enter, leave

    def _fail(self, _error: Exception) -> None:
        self._hooks.remove()
