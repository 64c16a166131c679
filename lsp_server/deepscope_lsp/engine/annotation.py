"""The words at the end of a measured line, and the few more that its tooltip has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from deepscope.records import Line, Numbers
from deepscope_lsp.engine import wording
from deepscope_lsp.engine.measure import Measure

__all__ = ["Annotation", "Mark", "annotate", "total_words"]

SEPARATOR = " · "
CALLS_SHARE = 0.01
"""Of the busy time, from which a line with work of its own says what it calls."""


class Mark(Enum):
    """Why a number may not be the line's own; the value is the word that stands beside it."""

    NONE = ""
    EDITED = "edited"
    """The line was changed since it was measured."""
    UNVERIFIED = "file newer than trace"
    """The trace has no text of the file, and the file was written after it."""
    OTHER_TEXT = "file changed since"
    """The trace has no text of the file, and its hash is not that of the text now."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is shown of one line."""

    label: str
    tooltip: str
    parts: str
    """What the time is made of: `forward 8.1 ms, backward 4.3 ms, …`."""
    weight: float
    """The largest share among its numbers: what thresholds are compared with."""


def annotate(line: Line, measure: Measure) -> Annotation:
    """The label of a line: own time and share; with what it calls, where that is most; waiting and idling it causes.

    `12.4 ms · 38 %`, `0.2 ms · 0.6 % · calls 30.1 ms · 91 %`, `0.1 ms · 0.3 % · waits 12 ms`.
    """
    own, total = measure.share(line.self_device_ns), measure.share(line.total_device_ns)
    waits, idles = measure.wall_share(line.wait_ns), measure.wall_share(line.idle_ns)
    works = measure.wall_share(line.worker_ns)
    parts = _main_parts(line, measure)
    if line.wait_ns and waits >= own:
        parts.append(f"waits {_time(line.wait_ns, measure)}")
    if line.idle_ns and idles >= max(own, 0.01):
        parts.append(f"device idle {_time(line.idle_ns, measure)}")
    if line.worker_ns and works >= own:
        parts.append(f"workers {_time(line.worker_ns, measure)}")
    label = SEPARATOR.join(parts)
    if not line.exact:
        label += f"{SEPARATOR}whole {'loop' if line.of_loop else 'function'}"
    made_of = _parts(line, measure)
    basis = "time on the device" if measure.is_device else "operators' time on the CPU (no device events in this trace)"
    return Annotation(
        label=label,
        tooltip=f"{basis}, {measure.step_words}: {made_of}",
        parts=made_of,
        weight=max(own, total, waits, idles, works),
    )


def total_words(numbers: Numbers, measure: Measure) -> str:
    """A function's totals: `30.1 ms · 91 %, own 12.4 ms`."""
    whole = (
        f"{_time(numbers.total_device_ns, measure)}{SEPARATOR}{wording.share(measure.share(numbers.total_device_ns))}"
    )
    own = f", own {_time(numbers.self_device_ns, measure)}" if numbers.self_device_ns else ""
    return _prefix(measure) + whole + own


def _main_parts(line: Line, measure: Measure) -> list[str]:
    prefix = _prefix(measure)
    own = [prefix + _time_and_share(line.self_device_ns, measure)] if line.self_device_ns else []
    if _mostly_calls(line, measure):
        return [*own, f"calls {'' if own else prefix}{_time_and_share(line.total_device_ns, measure)}"]
    if not own and line.self_cpu_ns and not (line.wait_ns or line.idle_ns or line.worker_ns):
        return [f"CPU {_time(line.self_cpu_ns, measure)}"]
    return own


def _mostly_calls(line: Line, measure: Measure) -> bool:
    """Whether what a line calls is most of its time; beside own work it must also be worth a word."""
    if not line.self_device_ns:
        return line.total_device_ns > 0
    return line.total_device_ns >= 2 * line.self_device_ns and measure.share(line.total_device_ns) >= CALLS_SHARE


def _time_and_share(duration_ns: int, measure: Measure) -> str:
    return f"{_time(duration_ns, measure)}{SEPARATOR}{wording.share(measure.share(duration_ns))}"


def _prefix(measure: Measure) -> str:
    return "" if measure.is_device else "CPU "


def _time(duration_ns: float, measure: Measure) -> str:
    return wording.duration(measure.per_step(duration_ns))


def _parts(line: Line, measure: Measure) -> str:
    forward_ns = line.self_device_ns - line.backward_device_ns
    words = [
        ("forward", forward_ns),
        ("backward", line.backward_device_ns),
        ("with what it calls", line.total_device_ns if line.total_device_ns > line.self_device_ns else 0),
        ("CPU", line.self_cpu_ns),
        ("waiting for the device", line.wait_ns),
        ("device idle meanwhile", line.idle_ns),
        ("in data-loader workers", line.worker_ns),
    ]
    return ", ".join(f"{word} {_time(value, measure)}" for word, value in words if value) or "nothing"
