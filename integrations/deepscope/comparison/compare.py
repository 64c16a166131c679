"""Runs before a change beside runs after it: each row's difference with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from deepscope.comparison.noise import (
    Interval,
    Number,
    Pair,
    Sample,
    absent,
    added,
    intervals,
    run_variance,
    samples_of_phases,
    samples_of_rows,
    samples_of_steps,
)
from deepscope.comparison.pairing import pair_lines, relative_path
from deepscope.errors import IncomparableError
from deepscope.records import Line, Profile
from deepscope.records.lines import NO_LINE
from deepscope.records.steps import ROW_KEYS, StepTable

Status = Literal["same", "moved", "new", "gone"]


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line in one of the sides."""

    path: str
    """Relative to the project root, where that is known."""
    record: Line


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of a comparison. Times are a step's, of one rank, in nanoseconds."""

    name: str
    """Of an operator, kernel, module, phase or number of the step; of a line its function."""
    before: ComparedLine | None
    """Of lines: None for one that is new, and for the work of no line."""
    after: ComparedLine | None
    pair: Pair
    """Its times in all runs."""
    status: Status = "same"
    interval: Interval | None = None
    """None where nothing tells of the spread."""

    @property
    def before_ns(self) -> float:
        """0 where it is new."""
        return self.pair.before_ns

    @property
    def after_ns(self) -> float:
        """0 where it is gone."""
        return self.pair.after_ns

    @property
    def change_ns(self) -> float:
        """After less before."""
        return self.pair.change_ns

    @property
    def low_ns(self) -> float | None:
        """Where the true difference lies, from here to `high_ns`; None where nothing tells of the spread."""
        return None if self.interval is None else self.interval.low_ns

    @property
    def high_ns(self) -> float | None:
        """The other end."""
        return None if self.interval is None else self.interval.high_ns

    @property
    def within_noise(self) -> bool:
        """Whether the difference may be none at all; so it is where no interval is known."""
        return self.interval is None or self.interval.low_ns <= 0 <= self.interval.high_ns

    @property
    def place(self) -> ComparedLine | None:
        """Where a line stands: after, else before."""
        return self.after or self.before

    @property
    def text(self) -> str:
        """The line that ran; "" where it is not known."""
        place = self.place
        return (place.record.text or "").strip() if place is not None else ""

    @property
    def is_edited(self) -> bool:
        """Whether the line reads otherwise than before."""
        if self.before is None or self.after is None:
            return False
        old, new = self.before.record.text, self.after.record.text
        return old is not None and new is not None and old.strip() != new.strip()


By = Literal["line", "operator", "kernel", "module", "phase", "step"]
TABLES: tuple[By, ...] = get_args(By)

_STEP_TABLES: Mapping[str, StepTable] = {"operator": "operators", "kernel": "kernels", "module": "modules"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows of one table in the runs before and after."""

    before: Sequence[Profile]
    after: Sequence[Profile]
    by: By
    number: Number
    step: Difference
    """The duration of a step (without steps, of the whole trace), judged by itself."""
    rows: list[Difference]
    """Those beyond noise first, each part by the size of its change."""
    replaced: Difference
    """All rows that are new less all that are gone, as one."""
    run_noise: float
    """By how much a time differs between runs of the same code besides the spread of steps: the standard deviation that
    was reckoned with, as a share of the time."""

    @property
    def is_repeated(self) -> bool:
        """Whether a side has several runs."""
        return len(self.before) > 1 or len(self.after) > 1

    @property
    def has_intervals(self) -> bool:
        """Whether anything is known of noise."""
        return self.step.interval is not None


class _Entry(NamedTuple):
    name: str
    place: ComparedLine | None
    samples: dict[int, Sample]
    """By the number of the run."""


_Side = dict[Hashable, _Entry]


def compare(
    before: Sequence[Profile], after: Sequence[Profile], *, by: By = "line", number: Number = "cost"
) -> Comparison:
    """Compares profiles of runs, one or several a side; each of one run, its ranks merged.

    Raises:
        IncomparableError: some have device work and some have none.
    """
    _check([*before, *after])
    lines = _line_rows(before, after, number)
    known = run_variance([row.pair for row in lines])
    if known is None:
        known = run_variance([row.pair for row in _named_rows("operator", before, after)]) or 0.0
    rows = lines if by == "line" else _named_rows(by, before, after)
    own = None if by in {"line", "phase", "step"} else run_variance([row.pair for row in rows])
    between_runs = known if own is None else own
    step = next(row for row in _named_rows("step", before, after) if row.name == "duration")
    replaced = Difference("", None, None, _replaced(rows, before, after))
    differences = _judged(rows, between_runs)
    return Comparison(
        before=before,
        after=after,
        by=by,
        number=number,
        step=_judged([step], known)[0],
        rows=sorted(differences, key=lambda one: (one.within_noise, -abs(one.change_ns))),
        replaced=_judged([replaced], known)[0],
        run_noise=between_runs**0.5,
    )


def _check(profiles: Sequence[Profile]) -> None:
    without = [profile for profile in profiles if profile.metric == "cpu_self"]
    if without and len(without) < len(profiles):
        path = without[0].trace.path
        raise IncomparableError(f"{path}: has no device work while others have; their times cannot be compared")


def _judged(rows: Sequence[Difference], between_runs: float) -> list[Difference]:
    """The rows that have any time, with their intervals."""
    found = intervals([row.pair for row in rows], between_runs)
    return [
        row if _is_slowed(row) else replace(row, interval=interval)
        for row, interval in zip(rows, found, strict=True)
        if row.pair.size_ns or row.name == "duration" or not row.name
    ]


def _is_slowed(row: Difference) -> bool:
    """Whether recording slowed the line on either side: its times are estimates, and tell of no change."""
    return any(place.record.slowed for place in (row.before, row.after) if place is not None)


def _line_rows(before: Sequence[Profile], after: Sequence[Profile], number: Number) -> list[Difference]:
    old, new = _lines_of(before, number), _lines_of(after, number)
    partners: dict[Hashable, Hashable] = {-1: -1}
    partners.update(pair_lines(before[0], after[0]).items())
    taken = set(partners.values())
    partners |= {key: key for key in old if key not in partners and key in new and key not in taken}
    return _joined(old, new, partners, before, after)


def _lines_of(profiles: Sequence[Profile], number: Number) -> _Side:
    """The lines of several runs, by their index in the first one; others by their place."""
    side: _Side = {}
    for run, profile in enumerate(profiles):
        here = {} if not run else {mine: first for first, mine in pair_lines(profiles[0], profile).items()}
        for index, sample in samples_of_rows(profile, "lines", number).items():
            if index < 0:
                side.setdefault(-1, _Entry(NO_LINE, None, {})).samples[run] = sample
                continue
            line = profile.lines[index]
            path = relative_path(line.file, profile.trace.project_root)
            key: Hashable = (path, line.line, line.function, line.exact) if run else index
            entry = _Entry(line.function, ComparedLine(path, line), {})
            side.setdefault(here.get(index, key), entry).samples[run] = sample
    return side


def _named_rows(by: By, before: Sequence[Profile], after: Sequence[Profile]) -> list[Difference]:
    old, new = _named_of(before, by), _named_of(after, by)
    return _joined(old, new, {key: key for key in old if key in new}, before, after)


def _named_of(profiles: Sequence[Profile], by: By) -> _Side:
    side: _Side = {}
    for run, profile in enumerate(profiles):
        for key, name, sample in _named_samples(profile, by):
            side.setdefault(key, _Entry(name, None, {})).samples[run] = sample
    return side


def _named_samples(profile: Profile, by: By) -> Iterable[tuple[Hashable, str, Sample]]:
    if by in {"phase", "step"}:
        found = samples_of_phases(profile) if by == "phase" else samples_of_steps(profile)
        yield from ((name, name, sample) for name, sample in found.items())
        return
    table = _STEP_TABLES[by]
    rows = getattr(profile, table)
    for index, sample in samples_of_rows(profile, table, "self").items():
        key = tuple(getattr(rows[index], field) for field in ROW_KEYS[table])
        yield key, key[0], sample


def _joined(
    old: _Side,
    new: _Side,
    partners: Mapping[Hashable, Hashable],
    before: Sequence[Profile],
    after: Sequence[Profile],
) -> list[Difference]:
    nothing: _Entry = _Entry("", None, {})
    found = [(old[key], new.get(partners[key], nothing) if key in partners else nothing) for key in old]
    matched = {partners[key] for key in old if key in partners}
    found += [(nothing, entry) for key, entry in new.items() if key not in matched]
    return [
        Difference(
            right.name or left.name,
            left.place,
            right.place,
            Pair(_samples(left, before), _samples(right, after)),
            _status(left, right),
        )
        for left, right in found
    ]


def _samples(entry: _Entry, profiles: Sequence[Profile]) -> list[Sample]:
    return [entry.samples.get(run) or absent(profile) for run, profile in enumerate(profiles)]


def _status(left: _Entry, right: _Entry) -> Status:
    if not left.samples:
        return "new"
    if not right.samples:
        return "gone"
    if left.place is None or right.place is None:
        return "same"
    is_there = left.place.path == right.place.path and left.place.record.line == right.place.record.line
    return "same" if is_there else "moved"


def _replaced(rows: Sequence[Difference], before: Sequence[Profile], after: Sequence[Profile]) -> Pair:
    gone = [row.pair.before for row in rows if row.status == "gone"]
    come = [row.pair.after for row in rows if row.status == "new"]
    return Pair(
        [added([absent(profile), *(side[run] for side in gone)]) for run, profile in enumerate(before)],
        [added([absent(profile), *(side[run] for side in come)]) for run, profile in enumerate(after)],
    )


MATTERS = 0.01
"""Of a step: a row that grew by less fails nothing."""


@dataclass(frozen=True, slots=True)
class FailOverVerdict:
    """What is slower than allowed."""

    percent: float
    reasons: list[str]
    """One for each; none where all is well."""


def judge(comparison: Comparison, percent: float) -> FailOverVerdict:
    """Fails what is beyond noise and slower by more than `percent`: the step, or a row by its own time before.

    A row's growth must be a hundredth of the step, too. Rows that are new count together, less those that are gone, and
    by the step's time: code that was only written anew is no slower code.
    """
    step = comparison.step
    limit = percent / 100
    reasons = []
    if not step.within_noise and step.change_ns > limit * step.before_ns:
        reasons.append(f"a step is {_grown(step)}")
    for row in comparison.rows:
        if row.status in {"new", "gone"} or row.within_noise or (row.name == "duration" and comparison.by == "step"):
            continue
        if row.change_ns > limit * row.before_ns and row.change_ns >= MATTERS * step.before_ns:
            place = row.place
            name = f"{place.path}:{place.record.line}" if place is not None else row.name
            reasons.append(f"{name} is {_grown(row)}")
    replaced = comparison.replaced
    if not replaced.within_noise and replaced.change_ns > limit * step.before_ns:
        share = f"{replaced.change_ns / step.before_ns:.1%}" if step.before_ns else "all"
        reasons.append(f"what is new costs more than what is gone, by {share} of a step")
    return FailOverVerdict(percent, reasons)


def _grown(row: Difference) -> str:
    if not row.before_ns:
        return "slower: it took no time before"
    return f"slower by {row.change_ns / row.before_ns:.1%}, beyond noise"
