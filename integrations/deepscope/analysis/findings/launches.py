"""A device that waits for launches: idle beside a line, or between tiny kernels (DS004, DS005)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union
from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.findings import data_loader
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import is_fused
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.idle_causes import occupied
from deepscope.analysis.tables.counters import Level
from deepscope.records import PHASES, Evidence, Finding
from deepscope.trace.format.counters import THROTTLE_REASONS, DeviceFacts
from deepscope.trace.kinds import Kind

_REMEDY = "Take this work out of the loop, or off the thread that launches."


def _find_idle_device(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or not facts.lines:
        return
    window = facts.analysis.window
    rest = [gap.intersection(data_loader.restarts(facts).complement(window)) for gap in facts.gaps.rest]
    if sum(gap.total_ns for gap in rest) < IDLE_DEVICE.worth_ns(facts) * facts.devices:
        return
    otherwise = occupied(facts.attribution, facts.analysis.phases, facts.analysis.waits)
    rest = [gap.intersection(otherwise.complement(window)) for gap in rest]
    if sum(gap.total_ns for gap in rest) < IDLE_DEVICE.worth_ns(facts) * facts.devices:
        return
    idle = sum((facts.by_line_of_cpu(gap) for gap in rest), np.zeros(facts.lines + 1, np.int64))
    # What the framework does between the lines cannot be taken out of them.
    idle = np.maximum(idle - facts.analysis.columns["framework_ns"], 0)
    saving = idle // facts.devices
    for line in np.flatnonzero(saving[:-1] >= IDLE_DEVICE.worth_ns(facts)).tolist():
        yield IDLE_DEVICE.finding(
            facts,
            location=line,
            message="the device has nothing to do while the CPU does something else than launch on this line",
            evidence={"device_idle_ns": int(idle[line])},
            saving_ns=int(saving[line]),
            remedy=line_remedy(facts.source(line)) or _REMEDY,
        )


IDLE_DEVICE = Rule("DS005", "Idle device", _find_idle_device, measured_on=("device",), worth=0.03)


MANY = 10
"""A line launches many if it launches so many in a step (without steps: in all)."""
TINY_NS = 20_000
"""A longer kernel, on average, leaves the CPU time to launch the next one."""


def _find_tiny_kernels(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device:
        return
    work = facts.work
    kernels = facts.analysis.counted & (work.kind == Kind.KERNEL) & ~work.collective
    location = work.location[kernels]
    count = by_line(work.location[kernels & work.counts], facts.lines)
    duration = by_line(location, facts.lines, work.duration_ns[kernels])
    many = (count >= MANY * max(facts.steps, 1)) & (duration <= TINY_NS * count)
    if not many.any():
        return
    gaps = facts.gaps.launch
    steps = kernels & work.counts & (facts.analysis.phases.at(work.launch_ns) == PHASES.index("optimizer"))
    stepping = by_line(work.location[steps], facts.lines)
    saving = gaps // facts.devices
    for line in np.flatnonzero(many & (saving >= TINY_KERNELS.worth_ns(facts))).tolist():
        yield TINY_KERNELS.finding(
            facts,
            location=line,
            message="the device runs these kernels faster than the CPU launches them, and is idle before each",
            evidence={
                **facts.counted("kernels", int(count[line])),
                "kernel_mean_us": round(float(duration[line] / count[line]) / 1000, 2),
                "idle_before_ns": int(gaps[line]),
            },
            saving_ns=int(saving[line]),
            remedy=f"Launch fewer: {', '.join(_ways(facts, line, in_optimizer=2 * stepping[line] > count[line]))}.",
        )


def _ways(facts: Facts, line: int, *, in_optimizer: bool) -> Iterator[str]:
    """What would launch fewer kernels of a line, and is not done already."""
    if in_optimizer and not is_fused(facts.trace):
        yield "`fused=True` in the optimizer"
    work = facts.work
    if not np.isin(work.called_at[work.location == line], facts.analysis.compiled).any():
        yield "`torch.compile`"
    yield "CUDA graphs"
    if not in_optimizer:
        yield "larger batches"


TINY_KERNELS = Rule("DS004", "Many tiny kernels", _find_tiny_kernels, measured_on=("device",), worth=0.01)


LEAST_NS = 500_000_000
"""Of the window must have been sampled: some samples may meet a moment."""
LEAST_SAMPLES = 5
MOST_OF_SAMPLES = 0.5
LEAST_SHARE = 0.2
"""Of that time the clock must be held down; a burst of power on each step of a run is no fault."""
SLOWER = 0.9
"""Of its maximum the clock must be below, in the mean over that time: boards differ by some percent of their own."""
_REMEDIES = {
    "thermal": "Cool it: look at its fans and filters, at the room, or give it less power (nvidia-smi -pl).",
    "hardware slowdown": (
        "The board protects itself from heat or from its power supply; nvidia-smi -q -d PERFORMANCE tells which. The "
        "machine's administrator must look at it."
    ),
    "power brake": "The machine's power supply asks it to slow down: the machine's administrator must look at it.",
    "power cap": (
        "It is at its power limit (nvidia-smi -q -d POWER): raise it where that is allowed, or take it as what the "
        "board can do. Lower precision does the same work with less power."
    ),
}
"""By reason, the gravest first."""


def _find(facts: Facts) -> Iterator[Finding]:
    account = facts.trace.header.counters
    if account is None or not facts.has_device:
        return
    for device in account.devices:
        clock = facts.levels.get(("GPU SM clock", device.series))
        if clock is not None and device.max_sm_mhz:
            yield from _of_device(facts, device, clock)


def _of_device(facts: Facts, device: DeviceFacts, clock: Level) -> Iterator[Finding]:
    window = facts.analysis.window
    sampled = Intervals(clock.at_ns[:1], clock.at_ns[-1:]).intersection(window)
    enough = facts.samples(clock) >= LEAST_SAMPLES and sampled.total_ns >= LEAST_NS
    held = {
        reason: _holds(level).intersection(sampled)
        for reason in THROTTLE_REASONS
        if (level := facts.levels.get(("GPU throttling", f"{device.series} {reason}"))) is not None
    }
    if not enough or not held:
        return
    down = union(
        np.concatenate([one.start for one in held.values()]), np.concatenate([one.end for one in held.values()])
    )
    share = down.total_ns / sampled.total_ns
    if share < LEAST_SHARE:
        return
    mean = _mean(clock, down)
    if mean > SLOWER * device.max_sm_mhz:
        return
    # What has to do with the clock takes so much less time at its maximum; what waits for memory does not.
    busy = _busy(facts, device).intersection(down).total_ns
    reasons = sorted(held, key=lambda reason: -held[reason].total_ns)
    reasons = [reason for reason in reasons if held[reason].total_ns]
    evidence: Evidence = {
        "device": device.series,
        "clock_mhz": round(mean, 1),
        "max_clock_mhz": float(device.max_sm_mhz),
        "held_down_ratio": round(share, 3),
        "reasons": ", ".join(f"{reason} {held[reason].total_ns / sampled.total_ns:.0%}" for reason in reasons),
    }
    temperature = facts.levels.get(("GPU temperature", device.series))
    if temperature is not None:
        evidence["peak_celsius"] = float(temperature.within(window.start, window.end).largest.max())
    power = facts.levels.get(("GPU power", device.series))
    if power is not None:
        evidence["power_w"] = round(_mean(power, down), 1)
    if device.power_limit_w:
        evidence["power_limit_w"] = device.power_limit_w
    gravest = next(reason for reason in _REMEDIES if reason in reasons)
    yield RULE.finding(
        facts,
        location=-1,
        message=f"device {device.series} runs at {mean:,.0f} of {device.max_sm_mhz:,} MHz for {share:.0%} of the time: "
        + " and ".join(reasons),
        evidence=evidence,
        saving_ns=int(busy * (1 - mean / device.max_sm_mhz)),
        remedy=_REMEDIES[gravest],
    )


def _holds(level: Level) -> Intervals:
    """When a flag is set: in a long window samples become their mean, and most of them must say so."""
    rows = np.flatnonzero(level.value[:-1] >= MOST_OF_SAMPLES)
    return union(level.at_ns[rows], level.at_ns[rows + 1])


def _mean(level: Level, spans: Intervals) -> float:
    """The level in the spans, weighted by time."""
    parts = level.within(spans.start, spans.end)
    return float((parts.mean * parts.covered_ns).sum() / max(int(parts.covered_ns.sum()), 1))


def _busy(facts: Facts, device: DeviceFacts) -> Intervals:
    """When the device works; where its number in the trace is not told, the only one there is."""
    busy = facts.work.busy
    if device.ordinal < 0 and len(busy) == 1:
        return next(iter(busy.values()))
    return busy.get(device.ordinal, NO_INTERVALS)


RULE = Rule("DS026", "Device clocks down", _find)
