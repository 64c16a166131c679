"""Lines timed by a clock of our own, where no torch recording is: in the worker processes of a data loader."""

from __future__ import annotations

from time import perf_counter_ns
from typing import NamedTuple

from deepscope.capture.lines.calibration import CostSamples
from deepscope.capture.lines.emit import Pair
from deepscope.capture.lines.hooks import make_hooks
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.user_code import UserCode

__all__ = ["LineClock", "LineTime"]

_NO_BUDGET = 1 << 62


class LineTime(NamedTuple):
    """What one line took in one worker."""

    file: str
    line: int
    function: str
    self_ns: int
    """Time on this line less the lines that it called."""
    calls: int


class LineClock:
    """Times the lines of user code on the current thread from `start` to `stop`."""

    def __init__(self, user_code: UserCode) -> None:
        self._table = ScopeTable(user_code, _NO_BUDGET, self._pair)
        self._stacks = Stacks(self._table, None, only_owner=True)
        self._hooks = make_hooks(self._table, self._stacks, None, CostSamples(), self._fail)
        self._running: list[str] = []
        self._since = 0
        self._self_ns: dict[str, int] = {}

    def start(self) -> None:
        """Follow what the current frame calls; the frames that run already are not the worker's own."""
        self._hooks.install(None)

    def stop(self) -> None:
        """Take the hooks out."""
        self._hooks.remove()
        self._stacks.end()

    def times(self) -> list[LineTime]:
        """The lines so far; may be called on another thread while the clock runs."""
        self_ns = dict(self._self_ns)
        running, since = self._running[-1:], self._since
        if running:
            self_ns[running[0]] = self_ns.get(running[0], 0) + perf_counter_ns() - since
        slots = list(self._table.slots)
        rows = [(self._table.rows[slot.id], self_ns.get(slot.name, 0), slot.opened) for slot in slots]
        return [LineTime(row.file, row.line, row.name, spent, calls) for row, spent, calls in rows]

    def _pair(self, name: str) -> Pair:
        running, self_ns = self._running, self._self_ns
        self_ns.setdefault(name, 0)

        def enter() -> None:
            now = perf_counter_ns()
            if running:
                self_ns[running[-1]] += now - self._since
            running.append(name)
            self._since = now

        def leave() -> None:
            now = perf_counter_ns()
            self_ns[running.pop()] += now - self._since
            self._since = now

        return enter, leave

    def _fail(self, _error: Exception) -> None:
        self._hooks.remove()
