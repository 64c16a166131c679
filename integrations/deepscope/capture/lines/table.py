"""The scopes of one window: the line or module that each number in `@ds:17` and `@dm:17` stands for, and its runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import NamedTuple

from deepscope.capture.dynamo import continued_function, is_compiled, undisturbed
from deepscope.capture.lines.bytecode import (
    CodeLoop,
    Detail,
    line_starts,
    only_line,
    opens_at_start,
    resume_offset,
    users_line_starts,
)
from deepscope.capture.lines.recorded_code import Libraries, LibraryCode, Trial, UserCode, step_code
from deepscope.capture.lines.scopes import Pair, make_pair
from deepscope.trace.format.span_names import line_name, module_name

LINE, MODULE = 0, 1

HIDDEN = -1
"""In place of a line: the instruction is none of the user's."""

UNLIMITED = 1 << 62
SILENT = -UNLIMITED
"""A library's line that holds no operator has so little left: it gets no scopes."""
OFTEN = 4
"""A line holds operators where one in so many of its runs is long enough for one."""
_FIRST_PORTION, _LARGEST_PORTION = 4, 256

MakePair = Callable[[str], Pair]
"""Makes a scope of that name: a span of torch's recording, or whatever else is to happen while a line runs."""


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


class Slot:
    """A line or module that has run: its number, its idle scopes, and how many more runs its budget allows."""

    __slots__ = (
        "_make",
        "granted",
        "holds",
        "id",
        "is_certain",
        "is_unproven",
        "judged",
        "late",
        "left",
        "long",
        "missed",
        "name",
        "pool",
        "reserve",
        "trials",
    )

    def __init__(self, number: int, name: str, budget: int, make: MakePair = make_pair) -> None:
        self._make = make
        self.id = number
        self.name = name
        self.granted = self.left = budget if budget == UNLIMITED else min(budget, _FIRST_PORTION)
        self.reserve = budget - self.granted
        """The budget that is not granted yet. It is granted in portions, so that runs are counted in passing."""
        self.missed = 0
        """Runs without a scope, past the budget."""
        self.late = 0
        """Stretches of runs without a scope that were recorded afterwards: an operator may have been in them."""
        self.judged = 0
        """Runs since the budget was spent."""
        self.long = 0
        """Stretches long enough for an operator, since it was last judged whether the line holds any."""
        self.holds = False
        """Whether its runs, when they were last judged, were long enough for operators."""
        self.is_unproven = False
        """Whether it is a library's line of which it is not known yet whether it holds operators."""
        self.is_certain = False
        """Of a library's line: whether something was seen in it that holds operators, and not its length alone."""
        self.trials = 0
        """Trials that it passed, if it is unproven."""
        self.pool: list[Pair] = []
        """Scopes that are closed; recursion needs one for each open run."""

    def grant(self) -> int:
        """Allow another portion of the budget, at least one; returns how many runs."""
        portion = max(min(self.reserve, self.granted, _LARGEST_PORTION), 1)
        self.reserve -= portion
        self.granted += portion
        self.left += portion
        return portion

    def spend_budget(self) -> None:
        """Judge the line from its next run on."""
        self.granted -= max(self.left, 0)
        self.reserve = 0
        self.left = min(self.left, 0)

    def try_again(self) -> None:
        """As `spend_budget`, whatever an earlier trial has found."""
        self.spend_budget()
        self.judged = self.long = 0
        self.holds = False

    def silence(self) -> None:
        """Give the line no scope from here on."""
        if self.left > SILENT:
            self.granted -= self.left
            self.trials = 0
            self.reserve = 0
            self.left = SILENT

    @property
    def silent_runs(self) -> int:
        """Runs since it was silenced."""
        return SILENT - self.left if self.left < SILENT else 0

    def prove(self, budget: int) -> None:
        """A library's line holds an operator: it has a budget like a line of the user's from here on."""
        self.is_unproven = False
        self.trials = 0
        self.reserve = budget
        self.judged = self.long = 0

    @property
    def seems_to_hold(self) -> bool:
        """Whether the line has been seen to run as long as operators do."""
        return self.holds or self.long * OFTEN > self.judged

    def pair(self) -> Pair:
        """A new scope, for when the pool is empty."""
        return self._make(self.name)

    @property
    def opened(self) -> int:
        """Scopes opened."""
        return self.granted - (self.left if self.left > SILENT else 0) + self.late


class FunctionState:
    """What the hooks need to know of a code object; keeps it alive, so that its `id` stays its own."""

    __slots__ = (
        "calls",
        "code",
        "detail",
        "first_line",
        "hidden_line",
        "holds",
        "is_continuation",
        "is_library",
        "is_lowered",
        "known",
        "line_starts",
        "lines",
        "loops",
        "meet",
        "name",
        "only_line",
        "opens_at_start",
        "resume_offset",
        "seen",
        "silent_lines",
        "whole",
    )

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.lines: dict[int, Slot] = {}
        name = getattr(code, "co_qualname", code.co_name)  # co_qualname came with 3.11
        continued = continued_function(code)
        self.name: str = continued or name
        self.first_line = code.co_firstlineno
        self.is_continuation = bool(continued)
        """Whether dynamo made it of what comes after a graph break: its caller is the function that it goes on with."""
        self.resume_offset = resume_offset(code)
        self.opens_at_start = self.is_continuation or opens_at_start(code)
        self.only_line = only_line(code)
        """As `bytecode.only_line`, as long as it runs from that line alone and calls no function of the user's."""
        is_written = self.is_continuation or is_compiled(code)
        users_own = users_line_starts(code) if is_written else None
        self.line_starts = users_own or line_starts(code)
        """The offsets of its lines, for a long function, a compiled one and one with silent loops."""
        self.hidden_line = HIDDEN if users_own else code.co_firstlineno if is_written else 0
        """A line that never has a scope: in compiled code the definition, where all that has no line stands."""
        self.calls = 0
        self.seen = 0
        """Entries of its lines up to when the costs were last looked at."""
        self.detail = Detail.LINES
        self.whole: Slot | None = None
        """The scope of all its lines together, from `Detail.FUNCTION` on."""
        self.loops: list[CodeLoop] = []
        """Those whose lines have no scopes of their own."""
        self.silent_lines: frozenset[int] = frozenset()
        """The lines that run in such loops alone."""
        self.is_library = False
        self.known: LibraryCode | None = None
        """Of a library's function: what its code says, and earlier windows."""
        self.holds = False
        """Of a library's function: whether an operator has been seen in it."""
        self.is_lowered = False
        """Of a library's function: whether it is left alone because it was too expensive."""
        self.meet: Callable[[FrameType], None] | None = None
        """Is told of a frame that starts."""

    @property
    def silent_runs(self) -> int:
        """Runs of its lines that got no scope because they hold no operator."""
        return sum(slot.silent_runs for slot in self.lines.values())

    def begins_silent(self, line: int) -> bool:
        """Of a library's function: whether no scope of its frame can be open when `line` begins, nor opens then."""
        known = self.known
        return known is not None and all(map(self._is_silent, (line, *known.before(line))))

    def _is_silent(self, line: int) -> bool:
        slot = self.lines.get(line)
        if slot is not None:
            return slot.left <= SILENT
        return self.known is not None and self.known.holds_nothing(line)

    def loop_at(self, offset: int) -> CodeLoop | None:
        """The silent loop that the instruction at `offset` is a part of."""
        return next((loop for loop in self.loops if offset in loop.offsets), None) if self.loops else None

    def place(self, frame: FrameType) -> int | None:
        """The line whose scope is to be open while the frame is where it is."""
        if self.meet is not None:
            self.meet(frame)
        if (loop := self.loop_at(frame.f_lasti)) is not None:
            return loop.line
        if self.hidden_line == HIDDEN and self.line_starts and frame.f_lasti < min(self.line_starts):
            return HIDDEN
        return frame.f_lineno


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
