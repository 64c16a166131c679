"""Detail gives way before training does: what is recorded of the costliest functions is lowered step by step."""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time_ns
from typing import Protocol

from deepscope.capture.lines.bytecode import CodeLoop, Detail, find_loops, offsets_of_lines
from deepscope.capture.lines.frames import FunctionState, Stack
from deepscope.capture.lines.overhead_budget import TRIAL_RUNS, OverheadBudget
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.trace.format.header import LOWERED_TO_CALLER, LOWERED_TO_FUNCTION, LOWERED_TO_LOOP

_SHARE, _LARGER_SHARE = 0.8, 0.95
"""The costliest functions that together have this share of the entries since the last look are lowered."""
_MOST = 4096
"""Functions that are lowered at one look."""
_IN_A_HURRY = 1.0
"""So far beyond what it may cost, nothing is tried out any more."""
_MANY = 100
"""Functions at one look, for which steps that save little are not taken one by one either."""
_SHORT = 3
"""Lines a call, up to which a function costs more than half of what it did when it is recorded as a whole."""
_LAST_RESORT = 10.0
"""So far beyond, the window goes on with modules alone."""

_Spent = list[tuple[int, FunctionState]]


class Switch(Protocol):
    """The side of the hooks: have events come as the detail of a function says."""

    def silences_loops(self, function: FunctionState) -> bool:
        """Whether the loops of `function` can be left alone, and the rest of it not."""

    def follow_detail(self, function: FunctionState) -> None:
        """The detail of `function` has changed."""

    def end_lines(self) -> None:
        """No function is of interest any more, but for calls of modules."""

    def take_samples(self) -> None:
        """Time callbacks for as long as samples of what they cost are wanted."""


class Lowering:
    """Weighs the costs of one window when its overhead_budget says so, and lowers what is costliest."""

    def __init__(self, table: ScopeTable, stacks: Stacks, overhead_budget: OverheadBudget, switch: Switch) -> None:
        self._table = table
        self._stacks = stacks
        self._overhead_budget = overhead_budget
        self._switch = switch
        self._tried: set[int] = set()
        self._has_lowered_libraries = False

    def look(self, stack: Stack) -> None:
        """A look is due, while `stack` is the current thread's and its top frame at a line's beginning."""
        started = thread_time_ns()
        beyond = self._overhead_budget.look()
        spent = self._spent()
        is_trial = False
        if beyond > 0 and not self._lower_libraries(spent, stack, beyond):
            if beyond >= _LAST_RESORT:
                self._end_lines(stack)
            else:
                is_trial = self._lower_dearest(spent, stack, beyond)
        if not is_trial:
            # A callback that is timed takes longer, and how long its runs take decides on a line on trial.
            self._switch.take_samples()
        self._overhead_budget.add_set_up(thread_time_ns() - started)

    def _lower_libraries(self, spent: _Spent, stack: Stack, beyond: float) -> bool:
        """Lower lines of libraries before the user's: the costliest functions, then all. False where none is left."""
        libraries = [one for one in spent if one[1].is_library]
        if not libraries or self._table.libraries is None:
            return False
        is_last = beyond >= _IN_A_HURRY or self._has_lowered_libraries
        self._has_lowered_libraries = True
        if is_last:
            self._table.libraries, self._table.has_ended_libraries = None, True
            functions = [one for one in list(self._table.functions.values()) if one.is_library]
        else:
            functions = list(_costliest(libraries, _SHARE))
        for function in functions:
            function.holds, function.is_lowered = False, True
            for slot in function.lines.values():
                slot.silence()
            self.drop(function, stack)
        return True

    def _lower_dearest(self, spent: _Spent, stack: Stack, beyond: float) -> bool:
        """Whether lines have been put on trial for it."""
        tries = beyond < _IN_A_HURRY
        costliest = list(_costliest(spent, _SHARE))
        is_hasty = not tries or len(costliest) > _MANY
        if is_hasty:
            costliest = list(_costliest(spent, _LARGER_SHARE))
        lowered = [self._lower(function, stack, tries=tries, is_hasty=is_hasty) for function in costliest[:_MOST]]
        return not all(lowered)

    def _spent(self) -> _Spent:
        """Functions by their entries since the last look, the largest number first."""
        spent: _Spent = []
        for function in list(self._table.functions.values()):
            slots = [function.whole] if function.whole is not None else list(function.lines.values())
            entries = sum(slot.opened + slot.missed for slot in slots) + function.calls
            if entries > function.seen and slots:
                spent.append((entries - function.seen, function))
            function.seen = entries
        spent.sort(key=lambda one: -one[0])
        return spent

    def _lower(self, function: FunctionState, stack: Stack, *, tries: bool, is_hasty: bool) -> bool:
        """False where its lines are on trial first."""
        if function.detail < Detail.FUNCTION:
            if tries and self._is_worth_a_trial(function) and self._try_out(function):
                return False
            if self._silence_loops(function):
                function.detail = Detail.LOOPS
            elif function.hidden_line or (is_hasty and function.seen <= (_SHORT + 1) * function.calls):
                self.drop(function, stack)
                return True
            else:
                function.whole = self._table.whole(function)
                function.detail, function.lines, function.opens_at_start = Detail.FUNCTION, {}, True
            function.seen = 0
            self._switch.follow_detail(function)
            self._mark_stale(function)
            self._stacks.refresh(stack)
        else:
            self.drop(function, stack)
        return True

    def _is_worth_a_trial(self, function: FunctionState) -> bool:
        """Whether anything follows from what its lines hold: a trial takes three times what it looks at does."""
        return self._overhead_budget.is_scarce or (
            self._switch.silences_loops(function) and bool(find_loops(function.code))
        )

    def _try_out(self, function: FunctionState) -> bool:
        """Have the lines of `function` judged by whether they hold operators; False where they have been."""
        if id(function) in self._tried:
            return False
        self._tried.add(id(function))
        slots = [slot for slot in function.lines.values() if not slot.judged and not slot.holds]
        for slot in slots:
            slot.spend_budget()
        return bool(slots)

    def _silence_loops(self, function: FunctionState) -> bool:
        """Take the lines of loops without operators out of what is followed; False where there is none to take.

        A loop that has hardly repeated stays: its inner loop is expensive, and its other lines may be still to come.
        """
        if not self._switch.silences_loops(function):
            return False
        chosen: list[CodeLoop] = []
        found = find_loops(function.code)
        for loop in found:
            slots = [function.lines[line] for line in loop.lines if line in function.lines]
            is_within = any(loop.is_within(outer) for outer in (*chosen, *function.loops))
            if is_within or any(slot.seems_to_hold for slot in slots):
                continue
            inner = [one.lines for one in found if one is not loop and one.is_within(loop)]
            own = [
                function.lines[line] for line in loop.lines.difference(*inner) or loop.lines if line in function.lines
            ]
            if any(slot.opened + slot.missed >= TRIAL_RUNS for slot in own):
                chosen.append(loop)
        if not chosen:
            return False
        function.loops += chosen
        starts = function.line_starts or offsets_of_lines(function.code)
        function.line_starts = {
            offset: line for offset, line in starts.items() if not any(offset in loop.offsets for loop in chosen)
        }
        function.silent_lines = frozenset().union(*(loop.lines for loop in function.loops)) - {
            *(loop.line for loop in function.loops),
            *function.line_starts.values(),
        }
        function.lines = {line: slot for line, slot in function.lines.items() if line not in function.silent_lines}
        return True

    def drop(self, function: FunctionState, stack: Stack) -> None:
        """Record nothing of `function`; put off while a frame of it lies below others that stay, or on another thread.

        Its frames go off the current thread's `stack`, with the dropped ones above them.
        """
        before, function.detail = function.detail, Detail.CALLER
        top = len(stack)
        while top and stack[top - 1].function.detail is Detail.CALLER:
            top -= 1
        others = [other for other in self._stacks.threads.all if other is not stack]
        if any(entry.function is function for other in (*others, stack[:top]) for entry in list(other)):
            function.detail = before
            return
        self._stacks.cut(stack, top)
        del self._table.functions[id(function.code)]
        self._table.dropped[id(function.code)] = function
        self._switch.follow_detail(function)

    def _mark_stale(self, function: FunctionState) -> None:
        """The detail of `function` has been lowered: its frames get another scope each when they go on."""
        for stack in self._stacks.threads.all:
            is_above = False
            for entry in list(stack):
                if entry.function is function:
                    entry.is_stale = is_above = True
                if is_above and not entry.is_special:
                    entry.quiet = None
                    entry.is_special = True

    def _end_lines(self, stack: Stack) -> None:
        table = self._table
        table.has_lines = False
        for key, function in table.functions.copy().items():
            if function.code is not self._stacks.module_code:
                table.dropped[key] = function
                del table.functions[key]
        self._switch.end_lines()
        self._stacks.end_lines(stack)


def _costliest(spent: _Spent, share: float) -> Iterator[FunctionState]:
    left = share * sum(entries for entries, _ in spent)
    for entries, function in spent:
        if left <= 0:
            return
        left -= entries
        yield function


def lowered_scopes(table: ScopeTable) -> list[tuple[int, str]]:
    """What was lowered, as in the trace: a scope and the word for its level."""
    found: dict[int, str] = {}
    for function in (*table.functions.values(), *table.dropped.values()):
        if function.is_library and (table.has_ended_libraries or not function.is_lowered):
            continue
        if function.detail is Detail.CALLER and function.only_line:
            continue  # it runs from its own line: nothing stands elsewhere
        if function.detail is Detail.CALLER:
            found[table.whole(function).id] = LOWERED_TO_CALLER
        elif function.detail is Detail.FUNCTION:
            found[table.whole(function).id] = LOWERED_TO_FUNCTION
        for loop in function.loops:
            slot = table.slot_at(function, loop.line)
            found.setdefault(slot.id, LOWERED_TO_LOOP)
    return sorted(found.items())
