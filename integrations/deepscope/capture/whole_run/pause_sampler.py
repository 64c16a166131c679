"""Which lines the training thread is at while no step ends: in evaluations, before an epoch, between steps."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter_ns
from types import CodeType, FrameType

from deepscope.capture.lines import UserCode
from deepscope.capture.whole_run.run_timer import RunTimer
from deepscope.trace.format.run_account import PARTS, PauseAccount, RunPartName

_INTERVAL_S = 0.025
_PAUSE_NS = 40_000_000
"""No step has ended for so long, and for longer than a step takes in the mean: it is a pause, or a long step."""
_MOST_PATHS = 10_000
_MOST = 0.5
"""A line that is named has at least this share of its part's pauses, with what it calls."""

_Path = tuple[tuple[CodeType, int], ...]
"""The user's functions that run, the outermost first, each with its line."""


class PauseSampler:
    """A thread that sleeps but for some microseconds each 25 ms, and notes nothing while steps follow each other.

    `thread` gives the number of the thread that trains.
    """

    def __init__(self, timer: RunTimer, thread: Callable[[], int], code: UserCode) -> None:
        self._timer = timer
        self._training = thread
        self._code = code
        self._ended = threading.Event()
        self._noted: Counter[tuple[RunPartName, _Path]] = Counter()
        self._times: Counter[RunPartName] = Counter()
        """How many pauses each part had."""
        self._pending: Counter[tuple[RunPartName, _Path]] = Counter()
        """Of the pause that goes on: what its time was for is known for sure as it ends."""
        self._before_ns: dict[RunPartName, int] = {}
        """The time of each part as that pause began."""
        self._steps = -1
        self._quiet_since_ns = self._sampled_ns = perf_counter_ns()

    def start(self) -> None:
        self._quiet_since_ns = self._sampled_ns = perf_counter_ns()
        self._before_ns = self._parts_ns()
        threading.Thread(target=self._run, name="deepscope-pauses", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def account(self) -> list[PauseAccount]:
        """The line that most of each part's pauses were at, up to now; a part without such a line is missing."""
        noted, times = Counter(self._noted), Counter(self._times)
        _settle(Counter(self._pending), self._before_ns, self._parts_ns(), noted, times)
        parts = (part for part in PARTS if part != "recording")
        return [found for part in parts if (found := _account_of(part, noted, times[part])) is not None]

    def _run(self) -> None:
        with suppress(Exception):  # the run goes on without it
            while not self._ended.wait(_INTERVAL_S):
                self._wake()

    def _wake(self) -> None:
        now_ns, steps = perf_counter_ns(), self._timer.times("steps")
        if steps != self._steps:
            self._steps = steps
            if self._pending:
                _settle(self._pending, self._before_ns, self._parts_ns(), self._noted, self._times)
                self._pending = Counter()
            self._quiet_since_ns = self._sampled_ns = now_ns
            self._before_ns = self._parts_ns()
        elif now_ns - self._quiet_since_ns >= max(_PAUSE_NS, self._step_ns()):
            path = self._path()
            if path and len(self._noted) + len(self._pending) < _MOST_PATHS:
                self._pending[self._timer.part, path] += now_ns - self._sampled_ns
            self._sampled_ns = now_ns

    def _step_ns(self) -> int:
        return (self._timer.so_far_ns("steps") + self._timer.so_far_ns("data")) // max(self._timer.times("steps"), 1)

    def _parts_ns(self) -> dict[RunPartName, int]:
        return {part: self._timer.so_far_ns(part) for part in PARTS}

    def _path(self) -> _Path:
        lines = _lines(sys._current_frames().get(self._training()))
        return tuple(one for one in reversed(lines) if self._code.owns(one[0].co_filename))


def _lines(frame: FrameType | None) -> list[tuple[CodeType, int]]:
    """A thread's functions and lines, the innermost first; at once, for frames keep alive what is in them."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    return found


def _settle(
    pause: Counter[tuple[RunPartName, _Path]],
    before_ns: dict[RunPartName, int],
    after_ns: dict[RunPartName, int],
    noted: Counter[tuple[RunPartName, _Path]],
    times: Counter[RunPartName],
) -> None:
    """Add a pause: what was noted of a part whose time was given to another one since is of that part."""
    grown = {part: after_ns[part] - before_ns.get(part, 0) for part in PARTS}
    sampled_ns: Counter[RunPartName] = Counter()
    for (part, _), time_ns in pause.items():
        sampled_ns[part] += time_ns
    # The time of a part that goes on is added as it ends.
    moved = {part for part, time_ns in sampled_ns.items() if grown[part] < time_ns / 2 and max(grown.values()) > 0}
    other = max(PARTS, key=lambda part: grown[part])
    own = {part: other if part in moved and grown[other] >= sampled_ns[part] / 2 else part for part in sampled_ns}
    for (part, path), time_ns in pause.items():
        noted[own[part], path] += time_ns
    times.update(set(own.values()))


def _account_of(part: RunPartName, noted: Counter[tuple[RunPartName, _Path]], times: int) -> PauseAccount | None:
    """The innermost line through which most of a part's pauses went."""
    left = {path: time_ns for (of, path), time_ns in noted.items() if of == part}
    whole_ns = sum(left.values())
    found, found_ns, depth = None, 0, 0
    while left:
        by_entry: Counter[tuple[CodeType, int]] = Counter()
        for path, time_ns in left.items():
            if len(path) > depth:
                by_entry[path[depth]] += time_ns
        if not by_entry:
            break
        entry, entry_ns = by_entry.most_common(1)[0]
        if entry_ns < _MOST * whole_ns:
            break
        left = {path: time_ns for path, time_ns in left.items() if len(path) > depth and path[depth] == entry}
        found, found_ns, depth = entry, entry_ns, depth + 1
    if found is None:
        return None
    code, line = found
    file = UserCode.real_path(code.co_filename)
    return PauseAccount(part, file, line, getattr(code, "co_qualname", code.co_name), found_ns, times)
