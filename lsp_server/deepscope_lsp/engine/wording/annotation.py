"""The words at the end of a measured line, and the few more that its tooltip has."""

from __future__ import annotations

from dataclasses import dataclass

from deepscope.records import Line, Numbers
from deepscope.report.why_words import why_words
from deepscope_lsp.engine.profile.scales import Scales
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.fused import fused_words

__all__ = ["Annotation", "annotate", "total_words"]

SEPARATOR = " · "
CALLS_SHARE = 0.01
"""A line with work of its own says what it calls if that is at least this share of the busy time."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is shown of one line."""

    label: str
    tooltip: str
    parts: str
    """What the time is made of: `forward 8.1 ms, backward 4.3 ms, …`."""
    weight: float
    """The largest share among its numbers: what thresholds are compared with."""


def annotate(line: Line, scales: Scales) -> Annotation:
    """The label of a line: its own time and share, the time of what it calls where that is more, and what it waits for.

    `12.4 ms · 38 %`, `0.2 ms · 0.6 % · calls 30.1 ms · 91 %`, `0.1 ms · 0.3 % · waits 12 ms`.
    """
    own, total = scales.share(line.self_device_ns), scales.share(line.total_device_ns)
    waits, idles = scales.wall_share(line.wait_ns), scales.wall_share(line.idle_ns)
    works = scales.wall_share(line.worker_ns)
    parts = _main_parts(line, scales)
    if line.wait_ns and waits >= own:
        parts.append(f"waits {_time(line.wait_ns, scales)}")
    if line.idle_ns and idles >= max(own, 0.01):
        parts.append(f"device idle {_time(line.idle_ns, scales)}")
    if line.worker_ns and works >= own:
        parts.append(f"workers {_time(line.worker_ns, scales)}")
    label = SEPARATOR.join(parts)
    if 2 * line.shared_ns > line.self_device_ns:
        label += f"{SEPARATOR}{fused_words(line, 2)}"
    if not (line.exact or line.fused):
        label += f"{SEPARATOR}whole {'loop' if line.of_loop else 'function'}"
    made_of = _parts(line, scales)
    basis = "time on the device" if scales.is_device else "operators' time on the CPU (no device events in this trace)"
    why = quantities.spaced(why_words(line, scales.peaks, on_device=scales.is_device))
    return Annotation(
        label=label,
        tooltip="; ".join(filter(None, (why, f"{basis}, {scales.step_words}: {made_of}"))),
        parts=made_of,
        weight=max(own, total, waits, idles, works),
    )


def total_words(numbers: Numbers, scales: Scales) -> str:
    """A function's totals: `30.1 ms · 91 %, own 12.4 ms`."""
    whole = _time_and_share(numbers.total_in_steps_ns, numbers.total_device_ns, scales)
    own = f", own {_time(numbers.self_in_steps_ns, scales)}" if numbers.self_in_steps_ns else ""
    return _prefix(scales) + whole + own


def _main_parts(line: Line, scales: Scales) -> list[str]:
    prefix = _prefix(scales)
    own = [prefix + _time_and_share(line.self_in_steps_ns, line.self_device_ns, scales)] if line.self_device_ns else []
    if _mostly_calls(line, scales):
        calls = _time_and_share(line.total_in_steps_ns, line.total_device_ns, scales)
        return [*own, f"calls {'' if own else prefix}{calls}"]
    if not own and line.self_cpu_ns and not (line.wait_ns or line.idle_ns or line.worker_ns):
        return [f"CPU {_time(line.self_cpu_ns, scales)}"]
    return own


def _mostly_calls(line: Line, scales: Scales) -> bool:
    """Whether most of a line's time is that of what it calls. Beside work of its own it must also be worth a word."""
    if not line.self_device_ns:
        return line.total_device_ns > 0
    return line.total_device_ns >= 2 * line.self_device_ns and scales.share(line.total_device_ns) >= CALLS_SHARE


def _time_and_share(in_steps_ns: int, whole_ns: int, scales: Scales) -> str:
    """Of what runs outside the steps alone the whole time: `12.4 ms outside the steps · 38 %`."""
    time = outside_words(whole_ns, scales) if whole_ns and not in_steps_ns else _time(in_steps_ns, scales)
    return f"{time}{SEPARATOR}{quantities.share(scales.share(whole_ns))}"


def outside_words(duration_ns: int, scales: Scales) -> str:
    """A time that no step has a part in: `12.4 ms outside the steps`."""
    return f"{quantities.duration(duration_ns / scales.ranks)} outside the steps"


def _prefix(scales: Scales) -> str:
    return "" if scales.is_device else "CPU "


def _time(duration_ns: float, scales: Scales) -> str:
    return quantities.duration(scales.per_step(duration_ns))


def _parts(line: Line, scales: Scales) -> str:
    words = [
        *own_parts(line),
        ("with what it calls", line.total_in_steps_ns if line.total_in_steps_ns > line.self_in_steps_ns else 0),
        ("CPU", line.self_cpu_ns),
        ("waiting for the device", line.wait_ns),
        ("device idle meanwhile", line.idle_ns),
        ("in data-loader workers", line.worker_ns),
    ]
    parts = [f"{word} {_time(value, scales)}" for word, value in words if value]
    parts += [outside_words(line.outside_ns, scales)] if line.outside_ns else []
    return ", ".join(parts) or "nothing"


def own_parts(numbers: Numbers) -> list[tuple[str, int]]:
    """Own time within the steps by direction; of work outside the steps too, its direction is not known."""
    if numbers.outside_ns:
        return [("own", numbers.self_in_steps_ns)]
    return [
        ("forward", numbers.self_device_ns - numbers.backward_device_ns),
        ("backward", numbers.backward_device_ns),
    ]
