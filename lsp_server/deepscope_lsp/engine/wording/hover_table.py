"""The table of a hover: each number per step with its share, and beside it the same of the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from deepscope.quantities import rate_text
from deepscope.records import Function, Line, Numbers, Totals, cost_ns
from deepscope.report import markdown
from deepscope.report.table_column import ColumnOf, field
from deepscope_lsp.engine.baseline import Noise
from deepscope_lsp.engine.profile_index import Scales
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import own_parts

NOISE = "within noise"


@dataclass(frozen=True, slots=True)
class Row:
    """One number."""

    name: str
    value: str
    share: str = ""
    time_ns: float | None = None
    """Per step; None for what is no time, of which no change is shown."""


@dataclass(frozen=True, slots=True)
class BaselineNumbers:
    """The same line or function in the baseline."""

    numbers: Numbers | None
    """None where it was not measured."""
    scales: Scales
    totals: Totals
    noise: Noise
    """What the difference of its own device time is."""


def numbers_table(numbers: Numbers, scales: Scales, totals: Totals, before: BaselineNumbers | None = None) -> str:
    """The numbers that are not 0, in a fixed order; "" where all are.

    Args:
        numbers: of a line or a function.
        scales: the scales of its profile.
        totals: the whole that shares are of.
        before: the same of the baseline. Where its own time differs by no more than noise, no time is said to have
            changed.
    """
    rows = list(_rows(numbers, scales, totals))
    head = ["", scales.step_words, "share"]
    if before is None:
        return markdown.table(head, [[row.name, row.value, row.share] for row in rows]) if rows else ""
    old = {row.name: row for row in _rows(before.numbers or Numbers(), before.scales, before.totals)}
    names = [row.name for row in rows]
    new = {row.name: row for row in rows}
    cells = []
    for name in [*names, *(name for name in old if name not in new)]:
        one, other = new.get(name, Row(name, "0")), old.get(name, Row(name, "0"))
        cells.append([name, one.value, one.share, other.value, _change(one, other, before.noise)])
    return markdown.table([*head, "baseline", "change"], cells) if cells else ""


def _change(new: Row, old: Row, noise: Noise) -> str:
    if new.time_ns is None and old.time_ns is None:
        return ""
    change = quantities.change(old.time_ns or 0, new.time_ns or 0)
    return NOISE if noise == "within" and change != quantities.UNCHANGED else change


_OF_COST = (
    field("collective_ns", "collectives", "time"),
    field("collective_exposed_ns", "collectives not overlapped", "time"),
)
_OF_WALL = (
    field("self_cpu_ns", "CPU", "time"),
    ColumnOf(
        "total_cpu_ns",
        "CPU with calls",
        "time",
        lambda row: row.total_cpu_ns if row.total_cpu_ns > row.self_cpu_ns else 0,
    ),
    field("wait_ns", "waiting for the device", "time"),
    field("loader_wait_ns", "waiting for data-loader workers", "time"),
    field("blocked_ns", "blocked", "time"),
    field("core_wait_ns", "waiting for a core", "time"),
    field("worker_ns", "data-loader workers", "time"),
    field("worker_cpu_ns", "data-loader workers on the CPU", "time"),
)
_ALLOCATED = (field("bytes_allocated", "memory allocated", "bytes"), field("bytes_freed", "memory freed", "bytes"))


def _rows(numbers: Numbers, scales: Scales, totals: Totals) -> Iterator[Row]:
    yield from _of_costs(numbers, scales)
    if numbers.outside_ns:
        outside = quantities.duration(numbers.outside_ns / scales.ranks)
        yield Row("outside the steps, in all", outside, _of_cost(numbers.outside_ns, scales))
    yield from _sums(_OF_WALL, numbers, scales, lambda ns: f"{quantities.share(scales.wall_share(ns))} of wall")
    yield from _sums(_ALLOCATED, numbers, scales)
    yield from _memory(numbers, scales, totals)
    if speed := rate_text(numbers.flops, numbers.self_device_ns, "FLOP/s"):
        yield Row("FLOP/s", speed, _part(numbers.flops, totals.flops, "all FLOPs"))
    if isinstance(numbers, Line):
        yield from _of_kernels(numbers)
    # The trace does not say how often a function was called, only how often its lines were entered.
    calls = "lines entered" if isinstance(numbers, Function) else "calls"
    yield from _sums([field("calls", calls, "count")], numbers, scales)
    launches = field("launches", "launches", "count")
    yield from _sums([launches], numbers, scales, lambda count: _part(count, totals.launches, "all"))


def _sums(
    columns: Sequence[ColumnOf], numbers: Numbers, scales: Scales, share: Callable[[Any], str] = lambda _: ""
) -> Iterator[Row]:
    """Sums over the steps, of each its mean."""
    for one in columns:
        if value := one.value(numbers):
            mean = scales.per_step(float(value))
            words = quantities.count(mean) if one.kind == "count" else quantities.number(mean, one.kind)
            yield Row(one.title, words, share(value), mean if one.kind == "time" else None)


def _of_kernels(line: Line) -> Iterator[Row]:
    """What is known of its kernels: bytes they must move, their length, how far ahead they were launched."""
    why = line.why
    moved = [rate for rate in why.rates if rate.moved_bytes]
    if speed := rate_text(sum(rate.moved_bytes for rate in moved), sum(rate.device_ns for rate in moved), "B/s"):
        yield Row("bytes moved, at least", speed)
    if why.kernels:
        yield Row("mean kernel", quantities.duration(line.self_device_ns / why.kernels))
        yield Row("from launch to start", quantities.duration(why.delay_ns / why.kernels))
        yield Row("queued at a launch", quantities.count(round(why.queued / why.kernels, 1)))
    if why.occupancy_known_ns:
        yield Row("occupancy, estimated", quantities.share(why.occupied_ns / why.occupancy_known_ns))


def _of_costs(numbers: Numbers, scales: Scales) -> Iterator[Row]:
    """The cost with its parts, and work that is counted at the lines that it calls, too."""
    costs = scales.costs
    if cost_ns(numbers):
        share = f"{quantities.share(costs.share(numbers))} of the run's cost"
        yield _per_step("cost", costs.per_step_ns(numbers), share)
        for name, duration_ns in own_parts(numbers, scales):
            if duration_ns:
                yield _time(f"of it {name}", duration_ns, _of_cost(duration_ns, scales), scales)
    if numbers.total_in_steps_ns > numbers.self_in_steps_ns:
        name = "device with calls" if scales.is_device else "operators with calls"
        yield _time(name, numbers.total_in_steps_ns, _of_cost(numbers.total_device_ns, scales), scales)
    yield from _sums(_OF_COST, numbers, scales, lambda ns: _of_cost(ns, scales))


def _of_cost(duration_ns: int, scales: Scales) -> str:
    return f"{quantities.share(scales.costs.share_of(duration_ns))} of the run's cost"


def _memory(numbers: Numbers, scales: Scales, totals: Totals) -> Iterator[Row]:
    if numbers.peak_bytes:
        # Not a sum over the steps: what was live at the one moment of the peak.
        share = _part(numbers.peak_bytes, totals.peak_bytes, "the peak")
        yield Row("live at the peak", quantities.size(numbers.peak_bytes / scales.ranks), share)
    for name, size_bytes, duration_ns in (
        ("copies to the device", numbers.h2d_bytes, numbers.h2d_ns),
        ("copies from the device", numbers.d2h_bytes, numbers.d2h_ns),
        ("copies on the device", numbers.d2d_bytes, numbers.d2d_ns),
    ):
        if size_bytes or duration_ns:
            size, duration = scales.per_step(size_bytes), scales.per_step(duration_ns)
            yield Row(name, f"{quantities.size(size)} in {quantities.duration(duration)}", "", duration)


def _time(name: str, duration_ns: int, share: str, scales: Scales) -> Row:
    return _per_step(name, scales.per_step(duration_ns), share)


def _per_step(name: str, duration_ns: float, share: str) -> Row:
    return Row(name, quantities.duration(duration_ns), share, duration_ns)


def _part(part: int, whole: int, words: str) -> str:
    return f"{quantities.share(part / whole)} of {words}" if whole and part <= whole else ""
