"""One rank in detail: each of its numbers beside the median of the other ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import median
from typing import Any, Literal, TypeVar

import msgspec

from deepscope.errors import OptionError
from deepscope.quantities import ranges
from deepscope.ranks.rank_summary import RankSummary
from deepscope.ranks.ranks_report import CollectiveRow, Failure, PairRow, RankClock, RankRow, RanksReport, Straggler
from deepscope.ranks.side_by_side import numbered, own_lines
from deepscope.trace.names import announces_collective

ROWS = 50
"""Rows of each table, those that differ most."""

Record = TypeVar("Record", bound=msgspec.Struct)


class NumberComparison(msgspec.Struct, kw_only=True):
    """A number of the rank."""

    name: str
    """The field of `RankRow`, or `part: NAME` of a part of its step."""
    kind: Literal["time", "count", "bytes"]
    value: int | None
    typical: int | None
    """The median of the others."""


class LineComparison(msgspec.Struct, kw_only=True):
    """A line of the critical path; times a step, without communication."""

    file: str
    line: int
    function: str = ""
    text: str = ""
    value: int = 0
    typical: int = 0


class CollectiveComparison(msgspec.Struct, kw_only=True):
    """Collectives of a kind, group, type and size; a step."""

    kind: str
    group: str = ""
    dtype: str = ""
    size_class_bytes: int = 0
    calls: float = 0
    typical_calls: float = 0
    value: int = 0
    """Time in them."""
    typical: int = 0


class WorkComparison(msgspec.Struct, kw_only=True):
    """An operator (its self time) or a kernel, but those of collectives; a step."""

    kind: Literal["operator", "kernel"]
    name: str
    calls: float = 0
    typical_calls: float = 0
    value: int = 0
    typical: int = 0


class RankDetail(msgspec.Struct, kw_only=True):
    """One rank beside the median of the others; tables by how much they differ, the largest difference first."""

    path: str = ""
    project_root: str = ""
    row: RankRow
    others: int
    """How many they are."""
    numbers: list[NumberComparison] = []
    straggler: Straggler | None = None
    clock: RankClock | None = None
    lines: list[LineComparison] = []
    collectives: list[CollectiveComparison] = []
    late: list[CollectiveRow] = []
    """Collectives that this rank came last to most often."""
    pairs: list[PairRow] = []
    """Messages from it and to it."""
    work: list[WorkComparison] = []
    failures: list[Failure] = []
    """Traces that could not be used and claim to be of this rank."""


def rank_detail(summaries: Sequence[RankSummary], report: RanksReport, rank: int) -> RankDetail:
    """One rank of those that `report` was made of.

    Raises:
        OptionError: there is no such rank; the message lists those there are.
    """
    rows = {row.rank: row for row in report.ranks}
    if rank not in rows:
        raise OptionError("rank", rank, _no_such(report, rank))
    named, _ = numbered(summaries)
    own = next(one for one in named if one.rank == rank)
    others = [one for one in named if one.rank != rank]
    return RankDetail(
        path=own.path,
        project_root=own.project_root,
        row=rows[rank],
        others=len(others),
        numbers=_numbers(rows[rank], [row for row in report.ranks if row.rank != rank], report.part_names),
        straggler=next((one for one in report.stragglers if one.rank == rank), None),
        clock=next((one for one in report.clocks if one.rank == rank), None),
        lines=_lines(own, others),
        collectives=_collectives(own, others),
        late=[row for row in report.collectives if row.last_rank == rank and row.last_calls],
        pairs=[row for row in report.pairs if rank in {row.source, row.target}],
        work=_largest([*_work("operator", own, others), *_work("kernel", own, others)]),
        failures=[one for one in report.failures if one.rank == rank],
    )


def _no_such(report: RanksReport, rank: int) -> str:
    failure = next((one for one in report.failures if one.rank == rank), None)
    if failure is not None:
        return f"its trace could not be used: {failure.message}"
    return f"no trace of this rank; there are: {ranges(row.rank for row in report.ranks)}"


_COUNTS = {"steps", "last", "matched"}
_NUMBERS = (
    "step_ns", "own_ns", "compute_ns", "communication_ns", "exposed_ns", "overlapped_ns", "idle_ns", "data_ns",
    "sync_ns", "waited_ns", "last", "matched", "steps", "peak_bytes",
)  # fmt: skip


def _numbers(row: RankRow, others: Sequence[RankRow], parts: Sequence[str]) -> list[NumberComparison]:
    found = []
    for name in _NUMBERS:
        kind: Literal["time", "count", "bytes"] = "time"
        if name in _COUNTS or name.endswith("_bytes"):
            kind = "count" if name in _COUNTS else "bytes"
        known = [value for one in others if (value := getattr(one, name)) is not None]
        typical = int(median(known)) if known else None
        found.append(NumberComparison(name=name, kind=kind, value=getattr(row, name), typical=typical))
    for part in parts:
        values = [one.parts.get(part, 0) for one in others]
        typical = int(median(values)) if values else None
        found.append(NumberComparison(name=f"part: {part}", kind="time", value=row.parts.get(part, 0), typical=typical))
    return [one for one in found if one.value or one.typical]


def _lines(own: RankSummary, others: Sequence[RankSummary]) -> list[LineComparison]:
    def times(of: RankSummary) -> dict[Hashable, tuple[float, ...]]:
        return {key: (time_ns,) for key, (_, time_ns) in own_lines(of).items()}

    files = {key: file for of in (*others[::-1], own) for key, (file, _) in own_lines(of).items()}
    texts = {(one.file, one.line): one.text for of in (own, *others[:8]) for one in of.lines if one.text}
    return _largest(
        LineComparison(
            file=files[key],
            line=key[1],
            function=key[2],
            text=texts.get((files[key], key[1]), "").strip(),
            value=round(value),
            typical=round(typical),
        )
        for key, ((value, typical),) in _beside(times, own, others)
    )


def _collectives(own: RankSummary, others: Sequence[RankSummary]) -> list[CollectiveComparison]:
    def times(of: RankSummary) -> dict[Hashable, tuple[float, ...]]:
        steps = max(of.totals.steps, 1)
        found: dict[Hashable, tuple[float, ...]] = {}
        for one in of.collectives:
            key = (one.kind, one.group_description or one.group, one.dtype, one.size_class_bytes)
            calls, time = found.get(key, (0.0, 0.0))
            found[key] = (calls + one.calls / steps, time + one.time_ns / steps)
        return found

    return _largest(
        CollectiveComparison(
            kind=key[0],
            group=key[1],
            dtype=key[2],
            size_class_bytes=key[3],
            calls=calls,
            typical_calls=typical_calls,
            value=round(value),
            typical=round(typical),
        )
        for key, ((calls, typical_calls), (value, typical)) in _beside(times, own, others)
    )


def _work(kind: Literal["operator", "kernel"], own: RankSummary, others: Sequence[RankSummary]) -> list[WorkComparison]:
    def times(of: RankSummary) -> dict[Hashable, tuple[float, ...]]:
        steps = max(of.totals.steps, 1)
        on_cpu = kind == "operator" and of.metric != "device"
        return {
            one.name: (one.calls / steps, (one.cpu_ns if on_cpu else one.device_ns) / steps)
            for one in (of.operators if kind == "operator" else of.kernels)
            if not announces_collective(one.name)
        }

    return [
        WorkComparison(
            kind=kind,
            name=name,
            calls=calls,
            typical_calls=typical_calls,
            value=round(value),
            typical=round(typical),
        )
        for name, ((calls, typical_calls), (value, typical)) in _beside(times, own, others)
    ]


def _beside(
    values: Callable[[RankSummary], dict[Hashable, tuple[float, ...]]],
    own: RankSummary,
    others: Sequence[RankSummary],
) -> Iterable[tuple[Any, list[tuple[float, float]]]]:
    """By key, of each number the rank's value and the median of the others; a rank without the key counts as 0."""
    mine = values(own)
    found: dict[Hashable, list[tuple[float, ...]]] = defaultdict(list)
    for one in others:
        for key, numbers in values(one).items():
            found[key].append(numbers)
    for key in mine.keys() | found.keys():
        listed = found.get(key, [])
        width = len(mine[key] if key in mine else listed[0])
        nothing = (0.0,) * width
        whole = [*listed, *[nothing] * (len(others) - len(listed))]
        typical = [median(column) for column in zip(*whole, strict=True)] if whole else list(nothing)
        yield key, list(zip(mine.get(key, nothing), typical, strict=True))


def _largest(rows: Iterable[Record]) -> list[Record]:
    """Those that differ most; what differs in nothing comes last."""

    def order(row: Any) -> tuple[Any, ...]:
        return (-abs(row.value - row.typical), -row.value, *(str(value) for value in msgspec.structs.astuple(row)[:3]))

    return sorted((row for row in rows if row.value or row.typical), key=order)[:ROWS]  # type: ignore[attr-defined]
