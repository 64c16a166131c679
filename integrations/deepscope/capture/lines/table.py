"""The scopes of one window: the line or module that each number in `@ds:17` and `@dm:17` stands for, and its runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CodeType
from typing import NamedTuple

from deepscope.capture.dynamo import undisturbed
from deepscope.capture.lines.bytecode import Detail
from deepscope.capture.lines.frames import FunctionState
from deepscope.capture.lines.recorded_code import Libraries, Trial, UserCode, step_code
from deepscope.capture.lines.scopes import SILENT, UNLIMITED, MakePair, Slot, make_pair
from deepscope.trace.format.span_names import line_name, module_name

LINE, MODULE = 0, 1


class LocalScopeRow(NamedTuple):
    """One scope as in the trace's table (docs/trace-format.md, `scopes`), but with the path of its file."""

    kind: int
    """0 a line, 1 a module."""
    file: str
    line: int
    name: str
    first_line: int = 0
    path: str = ""
    python_module: str = ""
    library: bool = False
    """Of a line: whether it is an installed package's."""


class ScopeTable:
    """Numbers lines and modules in the order in which they first run; shared by all threads of a window."""

    def __init__(
        self, user_code: UserCode, budget: int, make: MakePair = make_pair, libraries: Libraries | None = None
    ) -> None:
        self._make = make
        self.libraries = libraries
        """The packages whose lines are recorded beside the user's; None where none are, or from some time on."""
        self.opened: list[str] = libraries.names if libraries is not None else []
        """Names of these packages."""
        self.has_ended_libraries = False
        """Whether no library's code is of interest any more."""
        self._step_code = step_code() if libraries is not None else None
        self.user_code = user_code
        self.budget = budget
        self.rows: list[LocalScopeRow] = []
        self.slots: list[Slot] = []
        self.functions: dict[int, FunctionState] = {}
        """By `id` of the code object: hashing a code object reads all its bytecode."""
        self.dropped: dict[int, FunctionState] = {}
        """Functions that get no scopes any more, likewise."""
        if libraries is not None:
            self._leave_alone(libraries)
        self.has_lines = True
        """Until the detail of the whole window is lowered to modules."""
        self._by_place: dict[tuple[str, int, str, int], Slot] = {}
        self._paths: dict[str, str] = {}
        self._lock = threading.Lock()

    def function(self, code: CodeType) -> FunctionState:
        """The facts of a code object that gets scopes."""
        known = self.functions.get(id(code))
        if known is None:
            known = self.functions[id(code)] = undisturbed(self._function, code)
        return known

    def _function(self, code: CodeType) -> FunctionState:
        function, libraries = FunctionState(code), self.libraries
        if libraries is None or self.user_code.owns(code.co_filename):
            return function
        function.is_library = libraries.owns(code.co_filename)
        if function.is_library:
            function.known = libraries.known(code)
            function.holds = any(function.known.verdicts.values())
        if code is self._step_code:
            function.meet = libraries.meet_optimizer
            function.opens_at_start = True
        return function

    def _leave_alone(self, libraries: Libraries) -> None:
        """Functions in which no operator was seen in earlier windows."""
        for key, known in libraries.codes.copy().items():
            if known.is_left_alone:
                function = self.dropped[key] = undisturbed(FunctionState, known.code)
                function.is_library, function.detail = True, Detail.CALLER

    def remember(self) -> None:
        """Keep for the next window what this one has found out of libraries' code."""
        for function in (*self.functions.values(), *self.dropped.values()):
            known = function.known
            if known is None or function.is_lowered:
                continue
            known.is_left_alone = function.detail is Detail.CALLER
            for line, slot in function.lines.copy().items():
                if slot.left <= SILENT:
                    known.verdicts[line] = False
                elif slot.is_certain:
                    known.verdicts[line] = True
                elif slot.is_unproven and not slot.trials:
                    known.on_trial[line] = Trial(slot.judged, slot.long)

    def owns(self, code: CodeType) -> bool:
        """Whether the code is the user's or an open library's, and of interest still."""
        if not self.has_lines or id(code) in self.dropped:
            return False
        return undisturbed(self.owns_file, code.co_filename)

    def owns_file(self, filename: str) -> bool:
        """Whether code compiled from `filename` is the user's or an open library's."""
        return self.user_code.owns(filename) or (self.libraries is not None and self.libraries.owns(filename))

    def line(self, function: FunctionState, line: int) -> Slot | None:
        """The slot of a line new to `function`; one for all code objects of the same place (a cell run again).

        None for a line that is to have no scope.
        """
        if line == function.hidden_line or function.whole is not None or line in function.silent_lines:
            return None
        if not function.is_library:
            return undisturbed(self._line, function, line)
        return undisturbed(self._line_of_library, function, line) if self.libraries is not None else None

    def _line_of_library(self, function: FunctionState, line: int) -> Slot:
        """The slot of a library's line, as far as earlier windows have judged it; one without a row if it is silent."""
        known = function.known
        if known is not None and known.holds_nothing(line):
            slot = function.lines[line] = Slot(-1, "", 0, self._make)
            slot.silence()
            return slot
        slot = self._line(function, line)
        if known is not None and slot.is_unproven and not slot.judged:
            if known.verdicts.get(line):
                slot.prove(self.budget)
                slot.is_certain = True
            elif line in known.on_trial:
                slot.judged, slot.long = known.on_trial[line]
        return slot

    def whole(self, function: FunctionState) -> Slot:
        """The slot of all lines of `function` together: that of its first line."""
        return self.slot_at(function, function.code.co_firstlineno)

    def slot_at(self, function: FunctionState, line: int) -> Slot:
        """The slot of a line of `function`, whatever its detail."""
        return undisturbed(self._line, function, line)

    def _line(self, function: FunctionState, line: int) -> Slot:
        code = function.code
        place = (code.co_filename, line, function.name, function.first_line)
        with self._lock:
            slot = self._by_place.get(place)
            if slot is None:
                path, of_library = self._real_path(code.co_filename), function.is_library
                row = LocalScopeRow(LINE, path, line, function.name, function.first_line, library=of_library)
                slot = self._by_place[place] = self._add(row, line_name, 0 if of_library else self.budget)
                slot.is_unproven = of_library
            function.lines[line] = slot
        return slot

    def _real_path(self, filename: str) -> str:
        if filename not in self._paths:
            self._paths[filename] = self.user_code.real_path(filename)
        return self._paths[filename]

    def module(self) -> Slot:
        """A slot for a module; its row is filled in after the window. Modules exist to hold operators: no budget."""
        with self._lock:
            return self._add(LocalScopeRow(MODULE, "", 0, ""), module_name, UNLIMITED)

    def _add(self, row: LocalScopeRow, name_of: Callable[[int], str], budget: int) -> Slot:
        number = len(self.rows)
        slot = Slot(number, name_of(number), budget, self._make)
        self.rows.append(row)
        self.slots.append(slot)
        return slot
