"""The words at the end of a measured line, and the few more that its tooltip has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from deepscope.quantities import spaced
from deepscope.records import Line, Numbers, cost_ns
from deepscope.report.line_verdict import why_words
from deepscope_lsp.engine.profile_index import Scales
from deepscope_lsp.engine.wording import quantities

SEPARATOR = " · "
LABEL_LENGTH = 43
"""Characters that VS Code shows of a line's hints (`editor.inlayHints.maximumLength`)."""
CALLS_SHARE = 0.01
"""A line with a cost of its own says what it calls if that is at least this share of the run's cost."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is shown of one line."""

    label: str
    shorter: tuple[str, ...]
    """The label without what its cost is made of, then without its smaller parts, too."""
    tooltip: str
    parts: str
    """What the cost is made of: `device, forward 8.1 ms, device, backward 4.3 ms, device idle meanwhile 2 ms, …`."""
    weight: float
    """The largest share among its numbers: what thresholds are compared with."""

    def fitted(self, rest: str) -> str:
        """The longest label that is seen whole with the rest of the hint behind it."""
        labels = [one + rest for one in (self.label, *self.shorter)]
        return next((one for one in labels if len(one) <= LABEL_LENGTH), labels[-1])


def annotate(line: Line, scales: Scales) -> Annotation:
    """The label of a line: its cost a step, its share of the run's, what it is made of, calls and waits for.

    `12.4 ms · 38 %`, `12.4 ms · 38 % · Python`, `0.2 ms · 0.6 % · calls 30.1 ms · 91 %`, `waits 12 ms`.
    """
    own = scales.costs.share(line)
    waits, works = scales.wall_share(line.wait_ns), scales.wall_share(line.worker_ns)
    parts, made_of = _main_parts(line, scales), _made_of(line, scales)
    if line.wait_ns and waits >= own:
        parts.append((waits, f"waits {_time(line.wait_ns, scales)}"))
    if line.worker_ns and works >= own:
        parts.append((works, f"workers {_time(line.worker_ns, scales)}"))
    kind = []
    if 2 * line.shared_ns > line.self_device_ns:
        kind.append(fused_words(line, 2))
    if not (line.exact or line.fused):
        kind.append(f"whole {'loop' if line.of_loop else 'function'}")
    words = [part for _, part in parts]
    whole = _parts(line, scales)
    why = spaced(why_words(line, scales.peaks, on_device=scales.is_device))
    return Annotation(
        label=SEPARATOR.join([*words[:1], *made_of, *words[1:], *kind]),
        shorter=tuple(SEPARATOR.join([*some, *kind]) for some in _fewer_and_fewer(parts)),
        tooltip="; ".join(filter(None, (why, f"{_basis(scales)}, {scales.step_words}: {whole}"))),
        parts=whole,
        weight=max(scales.weight(line), waits, works),
    )


def _fewer_and_fewer(parts: list[tuple[float, str]]) -> Iterator[list[str]]:
    """All parts, then without the smallest, down to the largest alone; in their order."""
    left = list(parts)
    while left:
        yield [words for _, words in left]
        left.remove(min(reversed(left), key=lambda part: part[0]))


def _basis(scales: Scales) -> str:
    if scales.is_device:
        return "cost, of the device's work and idle time"
    return "cost, of operators and Python on the CPU (no device events in this trace)"


def total_words(numbers: Numbers, scales: Scales) -> str:
    """A function's or a module's work with what it calls, and its cost: `30.1 ms · 91 %, cost 12.4 ms`."""
    words = []
    if numbers.total_device_ns:
        whole = _time_and_share(numbers.total_in_steps_ns, numbers.total_device_ns, scales)
        words.append(("" if scales.is_device else "operators ") + whole)
    if cost_ns(numbers):
        cost = _cost(numbers, scales) if not words else _cost_time(numbers, scales)
        words.append(f"cost {cost}")
    return ", ".join(words)


def _main_parts(line: Line, scales: Scales) -> list[tuple[float, str]]:
    """The cost, and what is called, with their shares."""
    own = [(scales.costs.share(line), _cost(line, scales))] if cost_ns(line) else []
    if _mostly_calls(line, scales):
        calls = f"calls {_time_and_share(line.total_in_steps_ns, line.total_device_ns, scales)}"
        return [*own, (scales.costs.share_of(line.total_device_ns), calls)]
    if not own and line.self_cpu_ns and not (line.wait_ns or line.worker_ns):
        return [(0.0, f"CPU {_time(line.self_cpu_ns, scales)}")]
    return own


def _made_of(line: Line, scales: Scales) -> list[str]:
    """What has at least half of the cost beside the line's own work: the device's idle time, or Python."""
    name, beside_ns = "device idle" if scales.is_device else "Python", beside_work_ns(line)
    if not cost_ns(line) or 2 * beside_ns < cost_ns(line):
        return []
    in_steps_ns = beside_ns - line.python_outside_ns
    is_all = beside_ns == cost_ns(line) or not in_steps_ns
    return [name if is_all else f"{name} {_time(in_steps_ns, scales)}"]


def beside_work_ns(numbers: Numbers) -> int:
    """The part of a cost that is no work of its own: the device's idle time; without a device, Python."""
    return cost_ns(numbers) - numbers.self_device_ns


def _mostly_calls(line: Line, scales: Scales) -> bool:
    """Whether most of a line's time is that of what it calls. Beside a cost of its own it must also be worth a word."""
    if not cost_ns(line):
        return line.total_device_ns > 0
    calls = scales.costs.share_of(line.total_device_ns) >= CALLS_SHARE
    return line.total_device_ns >= 2 * cost_ns(line) and calls


def _cost(numbers: Numbers, scales: Scales) -> str:
    return f"{_cost_time(numbers, scales)}{SEPARATOR}{quantities.share(scales.costs.share(numbers))}"


def _cost_time(numbers: Numbers, scales: Scales) -> str:
    per_step_ns = scales.costs.per_step_ns(numbers)
    return quantities.duration(per_step_ns) if per_step_ns else outside_words(cost_ns(numbers), scales)


def _time_and_share(in_steps_ns: int, whole_ns: int, scales: Scales) -> str:
    """Of what runs outside the steps alone the whole time: `12.4 ms outside the steps · 38 %`."""
    time = outside_words(whole_ns, scales) if whole_ns and not in_steps_ns else _time(in_steps_ns, scales)
    return f"{time}{SEPARATOR}{quantities.share(scales.costs.share_of(whole_ns))}"


def outside_words(duration_ns: int, scales: Scales) -> str:
    """A time that no step has a part in: `12.4 ms outside the steps`."""
    return f"{quantities.duration(duration_ns / scales.ranks)} outside the steps"


def _time(duration_ns: float, scales: Scales) -> str:
    return quantities.duration(scales.per_step(duration_ns))


def _parts(line: Line, scales: Scales) -> str:
    words = [
        *own_parts(line, scales),
        (
            f"{'device' if scales.is_device else 'operators'} with calls",
            line.total_in_steps_ns if line.total_in_steps_ns > line.self_in_steps_ns else 0,
        ),
        ("CPU", line.self_cpu_ns),
        ("waiting for the device", line.wait_ns),
        ("in data-loader workers", line.worker_ns),
    ]
    parts = [f"{word} {_time(value, scales)}" for word, value in words if value]
    parts += [outside_words(line.outside_ns, scales)] if line.outside_ns else []
    return ", ".join(parts) or "nothing"


def own_parts(numbers: Numbers, scales: Scales) -> list[tuple[str, int]]:
    """The parts of a cost within the steps: they sum to it. Of work outside the steps the direction is not known."""
    work, beside = ("device", "device idle meanwhile") if scales.is_device else ("operators", "Python")
    forward_ns = numbers.self_device_ns - numbers.backward_device_ns
    parts = (
        [(work, numbers.self_in_steps_ns)]
        if numbers.outside_ns or not numbers.backward_device_ns
        else [(f"{work}, forward", forward_ns), (f"{work}, backward", numbers.backward_device_ns)]
    )
    return [*parts, (beside, beside_work_ns(numbers) - numbers.python_outside_ns)]


def fused_words(line: Line, most: int) -> str:
    """The lines that share kernels with this one, at most so many by number: `fused with lines 18, 19 and 2 more`."""
    here = [partner for partner in line.shared_with if partner.file == line.file]
    elsewhere = [partner for partner in line.shared_with if partner.file != line.file]
    named = [str(number) for number in sorted(partner.line for partner in here[:most])]
    named += [f"{PurePath(partner.file).name}:{partner.line}" for partner in elsewhere[: most - len(named)]]
    left = len(line.shared_with) - len(named)
    lines = "line" if len(named) == 1 else "lines"
    return f"fused with {lines} {', '.join(named)}" + (f" and {left} more" if left else "")
