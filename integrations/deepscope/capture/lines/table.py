"""The scopes of one window: the line or module that each number in `@ds:17` and `@dm:17` stands for, and its runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CodeType
from typing import NamedTuple

from deepscope.capture.lines.code_facts import opens_at_start, resume_offset
from deepscope.capture.lines.dynamo import is_compiled, undisturbed
from deepscope.capture.lines.emit import Pair, make_pair
from deepscope.capture.lines.user_code import UserCode
from deepscope.trace.scope_names import line_name, module_name

__all__ = ["LINE", "MODULE", "Function", "MakePair", "ScopeRow", "ScopeTable", "Slot"]

LINE, MODULE = 0, 1

MakePair = Callable[[str], Pair]
"""Makes a scope of that name: a span of torch's recording, or whatever else is to happen while a line runs."""


class ScopeRow(NamedTuple):
    """One scope as in the trace's table (docs/trace-format.md, `scopes`), but with the path of its file."""

    kind: int
    """0 a line, 1 a module."""
    file: str
    line: int
    name: str
    first_line: int = 0
    path: str = ""
    python_module: str = ""


class Slot:
    """A line or module that has run: its number, its idle scopes, and how many more runs its budget allows."""

    __slots__ = ("_make", "granted", "id", "judged", "late", "left", "long", "missed", "name", "pool")

    def __init__(self, number: int, name: str, budget: int, make: MakePair = make_pair) -> None:
        self._make = make
        self.id = number
        self.name = name
        self.granted = budget
        self.left = budget
        self.missed = 0
        """Runs without a scope, past the budget."""
        self.late = 0
        """Stretches of these that were recorded afterwards, since an operator may have been in them."""
        self.judged = 0
        """Runs since the budget was spent."""
        self.long = 0
        """Stretches of these that were long enough for an operator, since it was last judged whether it holds any."""
        self.pool: list[Pair] = []
        """Scopes that are closed; recursion needs one for each open run."""

    def pair(self) -> Pair:
        """A new scope, for when the pool is empty."""
        return self._make(self.name)

    @property
    def opened(self) -> int:
        """Scopes opened."""
        return self.granted - self.left + self.late


class Function:
    """What the hooks need to know of a code object; keeps it alive, so that its `id` stays its own."""

    __slots__ = ("code", "hidden_line", "lines", "opens_at_start", "resume_offset")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.lines: dict[int, Slot] = {}
        self.opens_at_start = opens_at_start(code)
        self.resume_offset = resume_offset(code)
        self.hidden_line = code.co_firstlineno if is_compiled(code) else 0
        """A line that never has a scope: in compiled code the definition, where all that has no line stands."""


class ScopeTable:
    """Numbers lines and modules in the order in which they first run; shared by all threads of a window."""

    def __init__(self, user_code: UserCode, budget: int, make: MakePair = make_pair) -> None:
        self._make = make
        self.user_code = user_code
        self.budget = budget
        self.rows: list[ScopeRow] = []
        self.slots: list[Slot] = []
        self.functions: dict[int, Function] = {}
        """By `id` of the code object: hashing a code object reads all its bytecode."""
        self._by_place: dict[tuple[str, int, str, int], Slot] = {}
        self._lock = threading.Lock()

    def function(self, code: CodeType) -> Function:
        """The facts of a code object that gets scopes."""
        known = self.functions.get(id(code))
        if known is None:
            known = self.functions[id(code)] = undisturbed(Function, code)
        return known

    def owns(self, code: CodeType) -> bool:
        """Whether the code is the user's."""
        return undisturbed(self.user_code.owns, code.co_filename)

    def line(self, function: Function, line: int) -> Slot | None:
        """The slot of a line new to `function`; one for all code objects of the same place (a cell run again).

        None for a line that is to have no scope.
        """
        return None if line == function.hidden_line else undisturbed(self._line, function, line)

    def _line(self, function: Function, line: int) -> Slot:
        code = function.code
        name = getattr(code, "co_qualname", code.co_name)  # co_qualname came with 3.11
        place = (code.co_filename, line, name, code.co_firstlineno)
        with self._lock:
            slot = self._by_place.get(place)
            if slot is None:
                row = ScopeRow(LINE, self.user_code.real_path(code.co_filename), line, name, code.co_firstlineno)
                slot = self._by_place[place] = self._add(row, line_name, self.budget)
            function.lines[line] = slot
        return slot

    def module(self) -> Slot:
        """A slot for a module; its row is filled in after the window. Modules exist to hold operators: no budget."""
        with self._lock:
            return self._add(ScopeRow(MODULE, "", 0, ""), module_name, 1 << 62)

    def _add(self, row: ScopeRow, name_of: Callable[[int], str], budget: int) -> Slot:
        number = len(self.rows)
        slot = Slot(number, name_of(number), budget, self._make)
        self.rows.append(row)
        self.slots.append(slot)
        return slot
