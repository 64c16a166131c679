"""The names and categories of DeepScope's spans.

Until a trace is made of torch's own recording, a span is known by its name alone:

| name | stands for |
|---|---|
| `@ds:17` | a run of scope 17, a line |
| `@dm:17` | a call of scope 17, a module |
| `@da:3` | annotation 3 of the window, by whatever name |
| `@dw:0` | the window, until it is known at its end whether it had steps: then step 0, else nothing |
| `@dt:` | a moment: the span's start |
| `@dy:5` | the moment of survey 5 of the memory, or of a release that it watched for: the span's start |
| `@dc:3` | comparison 3 of torch's clock with the host's: the span's start |
| `@do:81200:30000` | the thread was off the CPU for 81,200 ns on the open line, 30,000 ns of them without a core |
| `@dr:45000` | recording took 45,000 ns of the open line, beside what entries cost, since it was last told |
| `@dl:14,17:1843` | runs of lines 14 and, within it, 17, from 1,843 ns before the thread's last moment to that moment |

They are short and ASCII: Kineto's writer makes `unknown` of a name with other letters, and a broken file of one with
quotes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LINE, MODULE, LATE = "@ds:", "@dm:", "@dl:"
MOMENT_NAME = "@dt:"
OFF_CPU = "@do:"
_RECORDING = "@dr:"
_MEMORY = "@dy:"
_CLOCK = "@dc:"
WINDOW_NAME = "@dw:0"
_ANNOTATION = "@da:"
_MOST_DIGITS = 16
"""More nanoseconds than that are months."""

LINE_CATEGORY, MODULE_CATEGORY, OFF_CPU_CATEGORY = "python_line", "python_module", "python_off_cpu"
RECORDING_CATEGORY = "python_recording"
"""In the finished trace."""
MODULE_TITLE = "nn.Module: "
"""In the finished trace: what a module's span is called, before its class."""
STEP_PREFIX = "ProfilerStep#"
PHASE_ANNOTATIONS = {f"deepscope.{phase}": phase for phase in ("data", "forward", "backward", "optimizer")}
"""Annotation → phase of training; torch itself marks data loaders, optimizers and backward nodes."""


class ScopeEvent(NamedTuple):
    """What an event of torch's recording says about scopes."""

    scopes: tuple[int, ...]
    """Scope numbers, outermost first; more than one for late spans only. Each gets an event of its own."""
    began_ns: int = 0
    """Late spans: the runs began this long before the last moment on the thread, and ended there; else 0."""


def line_name(scope: int) -> str:
    """The name of a line's scope."""
    return f"{LINE}{scope}"


def module_name(scope: int) -> str:
    """The name of a module's scope."""
    return f"{MODULE}{scope}"


def annotation_name(number: int) -> str:
    """The name of an annotation's span."""
    return f"{_ANNOTATION}{number}"


def step_name(step: int) -> str:
    """The name of a step's span, torch's own."""
    return f"{STEP_PREFIX}{step}"


def late_name(scopes: Iterable[int], began_ns: int) -> str:
    """The name of a late span for lines that ran nested, outermost first."""
    return f"{LATE}{','.join(map(str, scopes))}:{began_ns}"


class OffCpu(NamedTuple):
    """How long a line was off the CPU."""

    duration_ns: int
    core_wait_ns: int
    """The part in which the thread could run and had no core."""


def off_cpu_name(off_cpu: OffCpu) -> str:
    """The name of a mark: the open line was off the CPU for so long."""
    return f"{OFF_CPU}{off_cpu.duration_ns}:{off_cpu.core_wait_ns}"


def memory_name(number: int) -> str:
    """The name of a moment at which the memory was looked at."""
    return f"{_MEMORY}{number}"


def recording_name(duration_ns: int) -> str:
    """The name of a mark: recording took so long of the open line."""
    return f"{_RECORDING}{duration_ns}"


def parse_memory(name: str) -> int | None:
    """The number in the name of such a moment; None for any other name."""
    return _number_behind(_MEMORY, name)


def clock_name(number: int) -> str:
    """The name of a moment at which the host's clock was read."""
    return f"{_CLOCK}{number}"


def parse_off_cpu(name: str) -> OffCpu | None:
    """How long a line was off the CPU, as the mark's name says; None for a name that is not a mark's."""
    numbers = name[len(OFF_CPU) :].split(":")
    if not name.startswith(OFF_CPU) or len(numbers) > 2 or not all(map(_is_number, numbers)):
        return None
    duration_ns = int(numbers[0])
    return OffCpu(duration_ns, min(int(numbers[1]), duration_ns) if len(numbers) == 2 else 0)


def parse_recording(name: str) -> int | None:
    """How long recording took of a line, as the mark's name says; None for a name that is not such a mark's."""
    return _number_behind(_RECORDING, name)


def _number_behind(prefix: str, name: str) -> int | None:
    digits = name.removeprefix(prefix)
    return int(digits) if digits != name and _is_number(digits) else None


def _is_number(digits: str) -> bool:
    return digits.isascii() and digits.isdecimal() and len(digits) < _MOST_DIGITS


def is_late(name: str) -> bool:
    """Whether it is the name of a late span."""
    return name.startswith(LATE)


def is_own(name: str) -> bool:
    """Whether a span of that name in torch's recording is DeepScope's, and no annotation of the user's."""
    return name.startswith((LINE, MODULE, LATE, MOMENT_NAME, OFF_CPU, _RECORDING, _MEMORY, _CLOCK))


def parse_name(name: str) -> ScopeEvent | None:
    """What an event of that name says; None for a name that is not a scope's."""
    if name.startswith((LINE, MODULE)):
        number = name[len(LINE) :]
        return ScopeEvent((int(number),)) if number.isdecimal() else None
    if name.startswith(LATE):
        scopes, _, began = name[len(LATE) :].partition(":")
        numbers = scopes.split(",")
        if began.isdecimal() and all(number.isdecimal() for number in numbers):
            return ScopeEvent(tuple(map(int, numbers)), int(began))
    return None
