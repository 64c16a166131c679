"""What the time of a whole run goes to, recorded or not: at any moment one part of the run has it."""

from __future__ import annotations

import copy
import os
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from math import log2
from pathlib import Path
from time import perf_counter_ns, time_ns

from deepscope.capture.machine_use import core_wait_ns
from deepscope.trace.format.run_account import (
    PARTS,
    CompiledAccount,
    EpochAccount,
    PartAccount,
    PauseAccount,
    RunAccount,
    RunPartName,
    account_path,
    encoded_account,
    renamed_when_whole,
)

LONG_STEP = 4
"""A step is long that takes so many times as long as the usual one."""
_PARTS_OF_OCTAVE = 4
_MOST_STEPS = 1 << 16
_READ_NS = 10_000_000
"""How long a thread waited for a core is read so often at most, for that takes some microseconds."""
_REGULAR = 0.6
"""So many of the long steps come as many steps behind the one before."""
MOST_EPOCHS = 256
"""Rows of epochs; beyond, neighbours become one row."""
_INTERRUPTING = frozenset({"checkpoint", "logging"})
"""Parts behind which the part before them goes on."""
_SAVED_BY_EVALUATION = ("evaluation", "checkpoint")


class _StepLengths:
    """Of the first steps, each by quarters of an octave; those behind them count as being like these.

    A step counts if it is long without the wait for a core that others had, and takes half the length that most time of
    such steps is in. If such steps do not come at regular intervals, the machine may be what made them long.
    """

    def __init__(self) -> None:
        self._octaves = array("B")
        self._sums_ns: Counter[int] = Counter()
        self._steps = 0
        self._read_at_ns = 0
        self._waited_ns: int | None = None

    def note(self, length_ns: int) -> None:
        """A step has ended, on the thread of those before it."""
        self._steps += 1
        if (now_ns := perf_counter_ns()) - self._read_at_ns >= _READ_NS:  # a step that others make long takes as much
            before_ns, self._waited_ns, self._read_at_ns = self._waited_ns, core_wait_ns(), now_ns
            if before_ns is not None and self._waited_ns is not None:
                length_ns -= min(max(self._waited_ns - before_ns, 0), length_ns)
        if len(self._octaves) < _MOST_STEPS:
            octave = int(_PARTS_OF_OCTAVE * log2(max(length_ns, 1)))
            self._octaves.append(octave)
            self._sums_ns[octave] += length_ns

    def long(self) -> tuple[int, int, int]:
        """The usual length, how many steps are long, and how long these are together; zeros where that is not known."""
        if not self._octaves:
            return 0, 0, 0
        usual = sorted(self._octaves)[(len(self._octaves) - 1) // 2]
        usual_ns = self._sums_ns[usual] // self._octaves.count(usual)
        longer = [one for one in self._sums_ns if one >= usual + _PARTS_OF_OCTAVE * log2(LONG_STEP)]
        least = max(longer, key=lambda one: self._sums_ns[one], default=usual) - _PARTS_OF_OCTAVE
        long = {one for one in longer if one >= least}
        places = [place for place, one in enumerate(self._octaves) if one in long]
        gaps = Counter(after - before for before, after in pairwise(places))
        if not gaps or max(gaps.values()) < _REGULAR * gaps.total():
            return usual_ns, 0, 0
        like_these = self._steps / len(self._octaves)
        return usual_ns, round(like_these * len(places)), round(like_these * sum(self._sums_ns[one] for one in long))


class RunTimer:
    """Begins with the run. A step lasts from the wait for its batch to `end("steps")`, without what interrupts it."""

    def __init__(self) -> None:
        self._began_ns = self._since_ns = perf_counter_ns()
        self.began_epoch_ns = time_ns()
        self._recording_ns = 0
        """Of the time since then."""
        self._part: RunPartName = "start"
        self._times_ns = dict.fromkeys(PARTS, 0)
        self._counts = dict.fromkeys(PARTS, 0)
        self._interrupted: list[RunPartName] = []
        self._first_step_ns = 0
        self._lengths = _StepLengths()
        self._counted_ns = 0
        """Of the steps whose lengths are noted."""
        self._process = os.getpid()
        self._epochs: list[EpochAccount] = []
        self._of_earlier_epochs = (0, 0, 0)
        """Steps, their time, their wait for data."""

    @property
    def has_account(self) -> bool:
        """Whether steps were done, in this process and not in one that it was forked from."""
        return self.has_come("steps") and os.getpid() == self._process

    def has_come(self, part: RunPartName) -> bool:
        return self._counts[part] > 0

    def times(self, part: RunPartName) -> int:
        return self._counts[part]

    def begin(self, part: RunPartName) -> None:
        """A part begins, at once or, if it interrupts another one, for as long as it lasts."""
        if part in _INTERRUPTING:
            self._interrupt(part)
        elif part == "evaluation":
            self._evaluate()
        elif part != self._part:
            self._interrupted.clear()  # an exception may have left some
            self.turn_to(part)

    def end(self, part: RunPartName) -> None:
        """A part ends: behind the wait for data comes the step."""
        if part in _INTERRUPTING:
            if self._interrupted:
                self.turn_to(self._interrupted.pop())
        elif part == "data":
            self.turn_to("steps")
        elif part == "steps":
            self._end_step()
        elif part == self._part:
            self.turn_to("rest")

    @property
    def part(self) -> RunPartName:
        return self._part

    @staticmethod
    def now_ns() -> int:
        """By the timer's clock."""
        return perf_counter_ns()

    def turn_to(self, part: RunPartName) -> None:
        """This part has the time from here on, whatever went on until now."""
        now_ns = perf_counter_ns()
        self._times_ns[self._part] += now_ns - self._since_ns - self._recording_ns
        self._times_ns["recording"] += self._recording_ns
        self._part, self._since_ns, self._recording_ns = part, now_ns, 0

    def so_far_ns(self, part: RunPartName) -> int:
        """The time of a part up to the last turn."""
        return self._times_ns[part]

    def share(self, part: RunPartName) -> float:
        """That of a part in the run behind its start, without what recording took, up to the last turn."""
        beside_ns = self._times_ns["start"] + self._times_ns["recording"]
        return self._times_ns[part] / max(self._since_ns - self._began_ns - beside_ns, 1)

    def move(self, source: RunPartName, target: RunPartName, time_ns: int) -> None:
        """So much that one part was given belongs to another one, as is known by now."""
        self._times_ns[source] -= time_ns
        self._times_ns[target] += time_ns

    def count(self, part: RunPartName, times: int = 1) -> None:
        """The part came so many times more."""
        self._counts[part] += times
        if part != "steps":
            return
        before_ns, self._counted_ns = self._counted_ns, self._times_ns["steps"] + self._times_ns["data"]
        if self._counts["steps"] == 1:
            self._first_step_ns = self._counted_ns
        else:
            self._lengths.note(self._counted_ns - before_ns)

    def copied(self) -> RunTimer:
        """One that goes on by itself: its account is that of a run that ends now."""
        other = copy.copy(self)
        other._times_ns, other._counts = dict(self._times_ns), dict(self._counts)
        other._interrupted, other._epochs = list(self._interrupted), list(self._epochs)
        other._lengths = copy.deepcopy(self._lengths)
        return other

    def give_to_recording(self, time_ns: int) -> None:
        """So much of the part that goes on was the recorder's work."""
        self._recording_ns += time_ns

    def end_epoch(self) -> None:
        self._interrupted.clear()
        self.turn_to("rest")
        self.keep_epoch()

    def keep_epoch(self) -> None:
        """The steps up to now that no epoch has are one."""
        steps, steps_ns, data_ns = self._of_earlier_epochs
        now = (self._counts["steps"], self._times_ns["steps"], self._times_ns["data"])
        if now[0] == steps:
            return
        last = self._epochs[-1] if self._epochs else None
        number = 0 if last is None else last.number + last.epochs
        # Of an epoch before this one some time may have been moved away since.
        self._epochs.append(
            EpochAccount(number, 1, now[0] - steps, max(now[1] - steps_ns, 0), max(now[2] - data_ns, 0))
        )
        self._of_earlier_epochs = now
        if len(self._epochs) > MOST_EPOCHS:
            self._epochs = list(_by_pairs(self._epochs))

    def account(
        self,
        *,
        unknown: Collection[RunPartName] = (),
        compiled: Sequence[CompiledAccount] = (),
        pauses: Sequence[PauseAccount] = (),
    ) -> RunAccount:
        """Of the run up to now.

        Args:
            unknown: parts that are not measured, so that others have their time.
            compiled: what was compiled since `began_epoch_ns`.
            pauses: where the run was while no step ended.
        """
        self.turn_to("rest")
        self.keep_epoch()
        counts = self._counts | {"data": self._counts["steps"]}
        parts = [PartAccount(name, self._times_ns[name], counts[name]) for name in PARTS]
        known = [part for part in parts if part.name not in unknown]
        length_ns = self._since_ns - self._began_ns
        usual_ns, long_steps, long_ns = self._lengths.long()
        return RunAccount(
            length_ns,
            known,
            self._first_step_ns,
            list(self._epochs),
            [*compiled],
            usual_step_ns=usual_ns,
            long_steps=long_steps,
            long_steps_ns=long_ns,
            pauses=[*pauses],
        )

    def _interrupt(self, part: RunPartName) -> None:
        """What an evaluation logs is the evaluation's, and all before the first step is the start's."""
        before = self._part
        is_apart = before in {"steps", "data", "rest"} or (before, part) == _SAVED_BY_EVALUATION
        self._interrupted.append(before)
        if is_apart:
            self._counts[part] += 1
        self.turn_to(part if is_apart else before)

    def _evaluate(self) -> None:
        """It began as the step before it ended: its loaders are made before anybody tells of it."""
        if self._part in {"start", "evaluation"}:
            return
        self._counts["evaluation"] += 1
        if self._part == "rest":
            self._part = "evaluation"
        else:
            self.turn_to("evaluation")

    def _end_step(self) -> None:
        if self._part not in {"steps", "data"}:
            return
        self.turn_to("rest")
        self.count("steps")


def _by_pairs(epochs: list[EpochAccount]) -> Iterable[EpochAccount]:
    for place in range(0, len(epochs), 2):
        pair = epochs[place : place + 2]
        sums = (sum(getattr(one, name) for one in pair) for name in ("epochs", "steps", "steps_ns", "data_ns"))
        yield EpochAccount(pair[0].number, *sums)


def write_account(account: RunAccount | None, traces: Iterable[Path]) -> None:
    """Lay the account beside those of the run's traces that are there; None, or a full disk, changes nothing."""
    if account is None:
        return
    content = encoded_account(account)
    for trace in traces:
        with suppress(OSError):
            if trace.exists():
                with renamed_when_whole(account_path(trace)) as part:
                    part.write_bytes(content)
