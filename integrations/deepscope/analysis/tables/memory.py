"""Each device's memory curve and its peak, and what was live when an allocation failed."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.memory import MemoryCurve, MemoryUse, capacity_bytes, find_memory
from deepscope.analysis.numbers.memory_blocks import KINDS, device_of
from deepscope.records import CurvePoint, DeviceMemory, HeldByLine, HeldMemory, Memory, MemoryFailure
from deepscope.trace.arrays import distinct_values
from deepscope.trace.format.process_tables import OutOfMemory
from deepscope.trace.model import Int64, Trace

_STRETCHES = 240
"""Of a long curve each of so many stretches of time keeps its lowest and its highest point."""
_DEVICES = {
    0: "cpu",
    1: "cuda",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    14: "meta",
    15: "hpu",
    19: "mtia",
    20: "privateuseone",
}
"""torch's DeviceType, c10/core/DeviceType.h."""


def memory_table(analysis: Analysis) -> Memory:
    """The devices' memory, the largest peak first."""
    use, trace = analysis.memory, analysis.attribution.trace
    account = trace.header.memory
    devices = [_device(one, trace) for one in use.devices]
    return Memory(
        devices=sorted(devices, key=lambda one: -one.largest_peak_bytes),
        owners_known=account is not None and any(survey.held for survey in account.surveys),
        failure=None if account is None or account.failure is None else _failure(analysis, account.failure),
    )


def _device(curve: MemoryCurve, trace: Trace) -> DeviceMemory:
    chosen = curve_rows(curve.ts_ns, curve.allocated_bytes)
    points = zip(
        curve.ts_ns[chosen].tolist(),
        curve.allocated_bytes[chosen].tolist(),
        curve.reserved_bytes[chosen].tolist(),
        strict=True,
    )
    return DeviceMemory(
        device=device_name(curve.device_type, curve.device_id),
        peak=_held(curve.held_bytes.sum(axis=0)),
        largest_peak_bytes=curve.peak_bytes,
        peak_at_ns=int(curve.ts_ns[curve.peak]),
        capacity_bytes=capacity_bytes(trace, curve.device_type, curve.device_id),
        curve=[CurvePoint(*point) for point in points],
    )


def curve_rows(ts: Int64, level: Int64) -> Int64:
    """Rows that draw a curve: the first, the last, the peak, and the extremes of each stretch; ascending.

    `ts` ascends; both have the shape (k,), k at least 1.
    """
    count = len(ts)
    if count <= 2 * _STRETCHES:
        return np.arange(count)
    span = max(int(ts[-1] - ts[0]), 1)
    stretch = (ts - ts[0]) * (_STRETCHES - 1) // span if span < 1 << 52 else np.zeros(count, np.int64)
    by_level = np.lexsort((level, stretch))
    ends = np.flatnonzero(np.append(stretch[by_level][1:] != stretch[by_level][:-1], True))
    begins = np.append(0, ends[:-1] + 1)
    rows = np.concatenate((by_level[begins], by_level[ends], [0, int(np.argmax(level)), count - 1]))
    return distinct_values(rows)


def _failure(analysis: Analysis, failed: OutOfMemory) -> MemoryFailure | None:
    """What was live as the exception reached the recorder; None where that lies outside the extent."""
    attribution = analysis.attribution
    moment = np.array([failed.at_ns], np.int64)
    if not analysis.extent.holds(moment)[0]:
        return None
    on_cpu = failed.on_cpu or attribution.work.metric == "cpu_self"
    lines = len(attribution.scopes.locations)
    use = analysis.memory
    if on_cpu != (attribution.work.metric == "cpu_self"):
        use = find_memory(
            attribution.trace,
            attribution.calls.nested,
            attribution.owners.location,
            lines,
            analysis.extent,
            on_cpu=on_cpu,
        )
    found = [(code, _live(use, int(code), failed.at_ns)) for code in distinct_values(use.device).tolist()]
    if not found:
        return None
    code, held = max(found, key=lambda one: int(one[1].sum()))
    return MemoryFailure(
        error=failed.error,
        message=failed.message,
        device=device_name(*device_of(int(code))),
        at_ns=failed.at_ns,
        held=_held(held.sum(axis=0)),
        lines=_by_line(analysis, held),
    )


def _live(use: MemoryUse, code: int, at_ns: int) -> Int64:
    """What is live on a device at a moment; shape (lines + 1, kinds)."""
    place, level = use.level_of(code)
    row = int(np.searchsorted(use.trace.memory.ts_ns[use.rows[place]], at_ns, "right")) - 1
    if row < 0:
        return np.zeros((use.lines + 1, len(KINDS)), np.int64)
    return use.held_at(int(place[row]), code, int(level[row]))


def _by_line(analysis: Analysis, held: Int64) -> list[HeldByLine]:
    locations = analysis.attribution.scopes.locations
    whole = held.sum(axis=1)
    rows = []
    for line in np.flatnonzero(whole)[np.argsort(-whole[whole > 0], kind="stable")].tolist():
        place = locations[line] if line < len(locations) else None
        rows.append(
            HeldByLine(
                file=place.file if place else "",
                line=place.line if place else 0,
                function=place.function if place else "",
                exact=bool(place and place.exact),
                **_kinds(held[line]),
            )
        )
    return rows


def _held(by_kind: Int64) -> HeldMemory:
    return HeldMemory(**_kinds(by_kind))


def _kinds(by_kind: Int64) -> dict[str, int]:
    parts = {f"{kind}_bytes": int(size) for kind, size in zip(KINDS, by_kind.tolist(), strict=True)}
    return {"size_bytes": sum(parts.values()), **parts}


def device_name(device_type: int, device_id: int) -> str:
    """What a device is called, from torch's DeviceType and its index: `cuda:0`, `cpu`."""
    name = _DEVICES.get(device_type, f"device{device_type}")
    return name if device_id < 0 else f"{name}:{device_id}"
