"""The two ways to learn which line runs, and the choice between them."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Protocol

from deepscope.capture.lines.lowering import Lowering, Switch
from deepscope.capture.lines.monitoring import MonitoringHooks, monitoring
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import FunctionState, ScopeTable
from deepscope.capture.lines.tracing import TracingHooks
from deepscope.capture.process_hooks.interrupts import comes_from_handler


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
