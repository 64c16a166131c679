"""Scalars by step for TensorBoard, so that they stand beside the loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.memory import MemoryCurve
from deepscope.analysis.tables.collectives import collective_calls
from deepscope.analysis.tables.counters import levels
from deepscope.analysis.tables.memory import device_name
from deepscope.analysis.tables.steps import step_table
from deepscope.records import Step
from deepscope.records.interchange import import_extra
from deepscope.store.load import recorded_rank
from deepscope.trace.model import Int64, Trace

_PREFIX = "deepscope"
_MS = 1e6
_MIB = 1 << 20
_MOST_OF_A_COUNTER = 64
"""Series that get a chart: a machine has hundreds of cores."""


class Scalar(NamedTuple):
    """One point of a chart."""

    tag: str
    step: int
    """As the training's loggers count, where the trace tells; else the N of `ProfilerStep#N`."""
    wall_s: float
    """Since the epoch, when the step ended; 0 where the trace does not say."""
    value: float


def scalars(analysis: Analysis) -> Iterator[Scalar]:
    """The numbers of each step; of a trace without steps, of its window as step 0."""
    trace, work = analysis.attribution.trace, analysis.attribution.work
    steps = step_table(analysis, collective_calls(analysis.attribution, analysis.extent)) or _window(analysis)
    device_count = max(len(work.busy), 1)
    number_of = _Numbers(analysis)
    for step in steps:
        wall = _wall_s(trace, step)
        for name, value in _values(step, device_count, is_device=work.metric == "device").items():
            yield Scalar(f"{_PREFIX}/{name}", number_of(step), wall, value)
    start = np.array([step.start_ns for step in steps], np.int64)
    end = start + np.array([step.duration_ns for step in steps], np.int64)
    for curve in analysis.memory.devices:
        word = re.sub(r"\W", "", device_name(curve.device_type, curve.device_id))
        for step, peak in zip(steps, _peaks(curve, start, end).tolist(), strict=True):
            yield Scalar(f"{_PREFIX}/memory_{word}_peak_mib", number_of(step), _wall_s(trace, step), peak / _MIB)
    yield from _counters(trace, steps, start, end, number_of)


def _counters(
    trace: Trace, steps: Sequence[Step], start: Int64, end: Int64, number_of: Callable[[Step], int]
) -> Iterator[Scalar]:
    """DeepScope's counters: the mean in each step; of a trace without steps each value, by its sample's number.

    What does not change is not in the trace, so that the number follows from the time: all counters have one scale.
    """
    own = [level for level in levels(trace) if level.is_own]
    account = trace.header.counters
    interval_ns = account.interval_ns if account is not None else 0
    first_ns = min((int(level.at_ns[0]) for level in own), default=0)
    by_counter = groupby(own, key=attrgetter("counter"))
    for level in chain.from_iterable(islice(group, _MOST_OF_A_COUNTER) for _, group in by_counter):
        tag = f"{_PREFIX}/counter/{_plain(level.counter)}/{_plain(level.series)}"
        if not steps:
            for place, (at_ns, value) in enumerate(zip(level.at_ns.tolist(), level.value.tolist(), strict=True)):
                number = round((at_ns - first_ns) / interval_ns) if interval_ns else place
                yield Scalar(tag, number, max((trace.base_ns + at_ns) / 1e9, 0.0), value)
            continue
        parts = level.within(start, end)
        for step, mean, covered_ns in zip(steps, parts.mean.tolist(), parts.covered_ns.tolist(), strict=True):
            if covered_ns:
                yield Scalar(tag, number_of(step), _wall_s(trace, step), mean)


def _wall_s(trace: Trace, step: Step) -> float:
    """When a step ended, as `Scalar` has it."""
    return max((trace.base_ns + step.start_ns + step.duration_ns) / 1e9, 0.0)


def _plain(name: str) -> str:
    """In letters that TensorBoard's tags have."""
    return re.sub(r"[^\w.]+", "_", name, flags=re.ASCII)[:64].strip("_")


class _Numbers:
    """From DeepScope's steps, which are batches of one fit, to the steps that Lightning's loggers count."""

    def __init__(self, analysis: Analysis) -> None:
        settings = analysis.attribution.trace.header.settings
        trainer = settings.trainer if settings is not None else {}
        self._first = _whole(trainer.get("first_batch"))
        self._global = _whole(trainer.get("global_step"))
        self._together = max(_whole(trainer.get("accumulate_grad_batches")) or 1, 1)

    def __call__(self, step: Step) -> int:
        if self._first is None or self._global is None:
            return step.number
        return self._global + (step.number - self._first) // self._together


def _whole(value: object) -> int | None:
    """A number of steps; None for what cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _values(step: Step, devices: int, *, is_device: bool) -> dict[str, float]:
    found = {
        "step_ms": step.duration_ns / _MS,
        "device_ms" if is_device else "operators_ms": step.device_ns / _MS,
        "busy_percent": 100 * step.busy_ns / max(step.duration_ns * devices, 1),
        "wait_ms": step.wait_ns / _MS,
    }
    if is_device:
        found["idle_ms"] = step.idle_ns / _MS
    return found | {f"phase_{name}_ms": ns / _MS for name, ns in step.phases.items()}


def _window(analysis: Analysis) -> list[Step]:
    from deepscope.analysis.tables.overview import totals
    from deepscope.analysis.tables.steps import phase_table

    if not len(analysis.window.start):
        return []
    whole = totals(analysis)
    return [
        Step(
            number=0,
            start_ns=int(analysis.window.start[0]),
            duration_ns=whole.wall_ns,
            device_ns=whole.device_ns,
            busy_ns=whole.busy_ns,
            idle_ns=whole.idle_ns,
            wait_ns=whole.wait_ns,
            phases={phase.name: phase.wall_ns for phase in phase_table(analysis)},
        )
    ]


def _peaks(curve: MemoryCurve, start: Int64, end: Int64) -> Int64:
    """The most that was allocated within each step, what was there as it began included; shape (s,)."""
    first = np.searchsorted(curve.ts_ns, start, "left")
    last = np.searchsorted(curve.ts_ns, end, "left")
    level = curve.allocated_bytes
    before = np.where(first > 0, level[np.maximum(first - 1, 0)], level[0] if len(level) else 0)
    peaks = [level[a:b].max(initial=least) for a, b, least in zip(first, last, before.tolist(), strict=True)]
    return np.array(peaks, np.int64)


def write_events(analyses: Iterable[Analysis], folder: Path) -> int:
    """Writes the scalars of each rank, of several into a folder each (`rank0`); gives the number of points.

    Raises:
        MissingExtraError: tensorboard is not installed.
    """
    writer_module = import_extra("tensorboard.summary.writer.event_file_writer", "tensorboard")
    events = import_extra("tensorboard.compat.proto.event_pb2", "tensorboard")
    summaries = import_extra("tensorboard.compat.proto.summary_pb2", "tensorboard")
    count = 0
    waiting = list(_numbered(analyses))
    for rank, points in waiting:
        where = folder if len(waiting) == 1 else folder / f"rank{rank}"
        writer = writer_module.EventFileWriter(str(where))
        for point in points:
            summary = summaries.Summary(value=[summaries.Summary.Value(tag=point.tag, simple_value=point.value)])
            writer.add_event(events.Event(wall_time=point.wall_s, step=point.step, summary=summary))
        writer.close()
        count += len(points)
    return count


def _numbered(analyses: Iterable[Analysis]) -> Iterator[tuple[int, list[Any]]]:
    for number, analysis in enumerate(analyses):
        rank = recorded_rank(analysis)
        yield rank if rank >= 0 else number, list(scalars(analysis))
