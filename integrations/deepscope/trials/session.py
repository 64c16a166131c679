"""A session: its sides, two unchanged runs first, then changed and unchanged ones in turn, within the budget."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deepscope.errors import DeepScopeError, OptionError
from deepscope.trials.judgement import (
    FLOAT32_ROUNDING,
    ComparedLosses,
    Speedup,
    compared_losses,
    is_repeatable,
    speedup,
    step_ns,
    verdict_of,
)
from deepscope.trials.messages import Answer, Change
from deepscope.trials.runs import Command, ProgramRuns
from deepscope.trials.scratch import Filler, ScratchFolder, fill_scratch, revision_files

WARMUP = 5
MOST_STEPS = 100
SHARE_OF_BUDGET = 1 / 20
"""The timed steps of one run end by the clock after so much of the budget."""
MOST_SECONDS = 15.0
MOST_ROUNDS = 4
USED_UP = "the budget is used up; give more with --budget"
_FEWEST_STEPS = 3
_PATIENCE = 3.0
"""A changed run may take so many times the time of an unchanged one, or what is left of its share."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Side:
    """One form of the program, known by its name: remedies on it, its files where they are not the working folder's."""

    name: str
    changes: tuple[Change, ...] = field(default=(), compare=False)
    rounding: float = field(default=0.0, compare=False)
    """Of the lowest precision that it computes in."""
    draws_otherwise: bool = field(default=False, compare=False)
    fill: Filler | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Measured:
    """What came of runs of two sides in turn."""

    found: Speedup
    compared: ComparedLosses
    answer: Answer
    """Of the last changed run."""


class NotApplicableError(DeepScopeError):
    """A remedy met what it cannot be applied to."""


class NoTimeError(DeepScopeError):
    """The budget is used up."""


class TrialSession:
    """Runs of one program, and what is known of it unchanged."""

    def __init__(self, runs: ProgramRuns, tell: Tell, *, steps: int | None, unchanged: Side | None = None) -> None:
        self._runs, self._tell = runs, tell
        self.unchanged = unchanged or Side("unchanged")
        self._asked = steps
        self.warmup = WARMUP
        self.steps = 0
        self._noise: dict[float, Answer | None] = {}
        self._times: dict[Side, list[float]] = {}
        self._last: tuple[Side, float] | None = None
        self._run_s = 0.0
        self.first: Answer
        self.second: Answer

    def start(self) -> None:
        """The two unchanged runs.

        Raises:
            RunFailedError: the program fails by itself.
        """
        runs, side = self._runs, self.unchanged
        self._tell(f"{side.name}, first run: how long a step takes, and what there is to change")
        begun = time.monotonic()
        seconds = None if self._asked else min(MOST_SECONDS, runs.left_s * SHARE_OF_BUDGET)
        self.first = runs.run(warmup=WARMUP, steps=self._asked or MOST_STEPS, seconds=seconds, fill=side.fill)
        total = self.first.steps
        if total < _FEWEST_STEPS:
            raise DeepScopeError(
                f"{runs.command.target}: it made {total} steps; {_FEWEST_STEPS} are needed to time any"
            )
        self.warmup = min(WARMUP, total // 3)
        self.steps = total - self.warmup
        self._run_s = time.monotonic() - begun
        self._check(side, self.first)
        self._keep(side, self.first)
        self.second = self._run(side)

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        return self._runs.left_s

    @property
    def round_s(self) -> float:
        """About how long three runs take."""
        return 3 * self._run_s

    def measure(self, before: Side, after: Side, *, share_s: float) -> Measured:
        """Runs A B B A A B B A …, until the verdict is certain or `share_s` seconds are over.

        Raises:
            NoTimeError: there is no time for a round.
            NotApplicableError: a remedy met what it cannot be applied to.
            RunFailedError: a run failed.
        """
        if self.left_s < self.round_s:
            raise NoTimeError(USED_UP)
        end_s = time.monotonic() + share_s
        pairs: list[tuple[float, float]] = []
        answers: list[Answer] = []
        while True:
            old_ns = self._last[1] if self._last is not None and self._last[0] == before else self._time(before)
            answers.append(self._run(after, end_s))
            pairs.append((old_ns, step_ns(answers[-1], self.warmup)))
            compared = self._compared(after, *answers)
            if len(pairs) == 1 and self._is_settled(before, pairs, compared):
                break
            answers.append(self._run(after, end_s))
            pairs.append((self._time(before), step_ns(answers[-1], self.warmup)))
            compared = self._compared(after, *answers)
            has_time = time.monotonic() + self.round_s < end_s and self.left_s > self.round_s
            if self._is_settled(before, pairs, compared) or not has_time or len(pairs) >= 2 * MOST_ROUNDS:
                break
        return Measured(speedup(pairs, self._times[before]), compared, answers[-1])

    def _is_settled(self, before: Side, pairs: Sequence[tuple[float, float]], compared: ComparedLosses) -> bool:
        """Whether more runs would hardly change the verdict; a single pair never settles that something is faster."""
        verdict = verdict_of(speedup(pairs, self._times[before]), compared.losses)
        return verdict != "inconclusive" and (len(pairs) > 1 or verdict != "faster")

    def _time(self, side: Side) -> float:
        return step_ns(self._run(side), self.warmup)

    def _run(self, side: Side, end_s: float | None = None) -> Answer:
        self._tell(f"{side.name}: run {self._runs.number + 1}, {self.steps} steps")
        begun = time.monotonic()
        longest = None if end_s is None else max(end_s - begun, _PATIENCE * self._run_s)
        answer = self._runs.run(
            warmup=self.warmup, steps=self.steps, changes=side.changes, fill=side.fill, longest_s=longest
        )
        self._check(side, answer)
        if side == self.unchanged:
            self._run_s = time.monotonic() - begun
        self._keep(side, answer)
        return answer

    def _check(self, side: Side, answer: Answer) -> None:
        for name, reason in answer.refused.items():
            raise NotApplicableError(f"{name}: {reason}" if len(side.changes) > 1 else reason)
        for change in side.changes:
            if change.remedy not in answer.applied:
                raise NotApplicableError("the program makes nothing that it could change")
        if side.fill is not None and answer.outside:
            modules = ", ".join(answer.outside[:3])
            raise DeepScopeError(
                f"{modules}: imported from {self._runs.command.root} in the place of {side.name}, as what is installed "
                "for development; run with PYTHONPATH naming the folder that holds it"
            )
        if not step_ns(answer, self.warmup):
            raise DeepScopeError(f"it made {answer.steps} steps in the place of {self.warmup + self.steps}")

    def _keep(self, side: Side, answer: Answer) -> None:
        length_ns = step_ns(answer, self.warmup)
        self._times.setdefault(side, []).append(length_ns)
        self._last = (side, length_ns)

    def _compared(self, side: Side, *answers: Answer) -> ComparedLosses:
        """The losses of all changed runs beside the unchanged ones; the worst of them counts."""
        if not self.first.losses:
            return ComparedLosses("not comparable", "the program made no backward pass")
        if not is_repeatable(self.first, self.second):
            return ComparedLosses("not comparable", "two unchanged runs have different losses")
        found = [self._one(side, answer, None) for answer in answers]
        if all(one.losses in {"identical", "within rounding"} for one in found):
            return found[0]
        noise = self._noisy(max(side.rounding, FLOAT32_ROUNDING))
        found = [self._one(side, answer, noise) for answer in answers]
        order = ("different", "other random numbers", "within rounding", "identical")
        return min(found, key=lambda one: order.index(one.losses))

    def _one(self, side: Side, answer: Answer, noise: Answer | None) -> ComparedLosses:
        return compared_losses(
            self.first, answer, noisy=noise, rounding=side.rounding, draws_otherwise=side.draws_otherwise
        )

    def _noisy(self, rounding: float) -> Answer | None:
        """An unchanged run with rounding added; None where it failed."""
        if rounding not in self._noise:
            self._tell(
                f"{self.unchanged.name}, with one rounding added to each parameter: what rounding does to losses"
            )
            self._noise[rounding] = None
            try:
                self._noise[rounding] = self._runs.run(
                    warmup=self.warmup, steps=self.steps, rounding=rounding, fill=self.unchanged.fill
                )
            except DeepScopeError as error:
                self._tell(f"this run failed: {error}")
            self._last = None
        return self._noise[rounding]


def combined(sides: Sequence[Side]) -> Side:
    """The remedies of several sides together."""
    return Side(
        " + ".join(side.name for side in sides),
        tuple(change for side in sides for change in side.changes),
        max((side.rounding for side in sides), default=0.0),
        any(side.draws_otherwise for side in sides),
    )


@contextmanager
def sides(runs: ProgramRuns, before: str, after: str) -> Iterator[tuple[Side, Side]]:
    """Both sides; worktrees are removed at the end.

    Args:
        runs: whose folder holds the worktrees.
        before: a file that stands in the program's place, or a revision.
        after: the same; "" for the folder as it is.

    Raises:
        OptionError: git knows no such revision, or a file is to take the place of a module.
    """
    with ExitStack() as end:
        found = []
        for option, word in (("before", before), ("after", after)):
            fill = None
            if word and (runs.command.working / word).is_file():
                if runs.command.is_module:
                    raise OptionError(option, word, "is a file, which cannot take a module's place; name a revision")
                fill = _with_file(runs.command, runs.command.working / word)
            elif word:
                fill = end.enter_context(revision_files(runs.command.root, runs.folder / option, option, word))
            found.append(Side(f"{option} ({word or 'this folder'})", fill=fill))
        yield found[0], found[1]


def _with_file(command: Command, file: Path) -> Filler:
    def fill(scratch: Path) -> ScratchFolder:
        target = Path(command.target_in(scratch))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
        return fill_scratch(command.root, scratch)

    return fill
