"""What holds a line back, in words: its verdict with the figures that it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.analysis.verdict import Judgement, Reason, judgement, limit_of
from deepscope.printable import printable
from deepscope.quantities import rate_text, time_text
from deepscope.records import Line, Operator, Peaks, Rate, cost_ns

_WORDS = {
    "launch-bound": "of its cost is launching, or kernels too short to fill the device",
    "host-bound": "of its cost is the device idle while the CPU does other work",
    "waiting": "of its cost is the device idle while the CPU waits for it",
    "data": "of its cost is loading data, or copies between host and device",
    "communication": "of its cost is collectives that nothing hides",
}
_WORDS_ON_CPU = {
    "launch-bound": "of its cost is operators so short that they are all dispatch",
    "host-bound": "of its cost is Python",
    "waiting": "of its cost is Python asleep, or waiting for a file, a lock or another thread",
    "data": "of its cost is waiting for the data loader",
    "waiting for a core": "of its cost is Python that could run while other work had the cores",
    "communication": "of its cost is collectives",
}
_ABOUT_KERNELS = frozenset({"launch-bound", "host-bound"})


def why_words(row: Line | Operator, peaks: Peaks | None, *, on_device: bool = True) -> str:
    """`memory-bound: 1.20 TB/s, 78% of the H100 SXM's; 41 FLOP/byte`; "" without a verdict."""
    if not row.verdict:
        return ""
    if isinstance(row, Line) and row.slowed:
        took = time_text(row.recording_ns)
        return f"slowed by recording: DeepScope took {took} here, so what is left is an estimate and is not judged"
    words = figures(row, peaks, on_device=on_device)
    return f"{row.verdict}: {words}" if words else row.verdict


def no_word(row: Line | Operator, peaks: Peaks | None) -> str:
    """Why there is no verdict; "" with one."""
    found = _judged(row, peaks)
    has_work = isinstance(row, Operator) and not found.word and row.self_device_ns
    if has_work and _judged(row, None).reason == Reason.NO_COST:
        return "its work is counted at the operator that calls it"
    return found.reason


def figures(row: Line | Operator, peaks: Peaks | None, *, on_device: bool = True) -> str:
    """What the verdict of a row rests on."""
    found = _judged(row, peaks)
    if found.word in ("compute-bound", "memory-bound") and peaks is not None:
        return _of_roof(found, peaks)
    share = f"{100 * found.share:.0f}%"
    if found.word == "mixed":
        return f"no cause has half of its cost; the largest has {share}"
    if found.word == "waiting" and isinstance(row, Line) and row.wait_ns > cost_ns(row) - row.why.hidden_ns:
        return f"the CPU waits {time_text(row.wait_ns)} in all for the device"
    words = (_WORDS if on_device else _WORDS_ON_CPU).get(found.word, "")
    if not words:
        return ""
    more = _kernel_words(row) if on_device and found.word in _ABOUT_KERNELS else ""
    return f"{share} {words}" + (f"; {more}" if more else "")


def _kernel_words(row: Line | Operator) -> str:
    """`kernels of 4.10µs on average, 1.2 queued at a launch`; "" where no launch is known."""
    if not row.why.kernels:
        return ""
    mean = time_text(row.self_device_ns / row.why.kernels) or "0"
    return f"kernels of {mean} on average, {_count(row.why.queued / row.why.kernels)} queued at a launch"


def _count(mean: float) -> str:
    return f"{mean:.0f}" if mean >= 10 or mean < 0.05 else f"{mean:.1f}"


def _judged(row: Line | Operator, peaks: Peaks | None) -> Judgement:
    return judgement(row.why, peaks, wait_ns=row.wait_ns if isinstance(row, Line) else 0)


def _of_roof(found: Judgement, peaks: Peaks) -> str:
    """Achieved rate, its share of the peak, and the intensity, over the work that has the verdict."""
    time_ns = sum(rate.device_ns for rate in found.rates)
    best_ns = sum(limit_of(rate, peaks)[1] for rate in found.rates)
    flops = sum(rate.flops for rate in found.rates)
    moved = sum(rate.moved_bytes for rate in found.rates)
    is_compute = found.word == "compute-bound"
    rate = rate_text(flops, time_ns, "FLOP/s") if is_compute else rate_text(moved, time_ns, "B/s")
    of_type = f" in {_types(found.rates)}" if is_compute else ""
    intensity = f"; {flops / moved:.3g} FLOP/byte" if flops and moved else ""
    share = f"{100 * best_ns / time_ns:.0f}%" if time_ns else "0%"
    return printable(f"{rate}, {share} of the {peaks.name}'s{of_type}{intensity}")


def _types(rates: Sequence[Rate]) -> str:
    spent: dict[str, int] = {}
    for rate in rates:
        spent[rate.dtype] = spent.get(rate.dtype, 0) + rate.device_ns
    return " and ".join(sorted(spent, key=lambda dtype: -spent[dtype])[:2])
