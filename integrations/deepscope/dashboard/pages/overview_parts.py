"""Parts of the overview: idle time by cause, phases, the framework's part; the largest modules, operators, kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from deepscope.dashboard.page_answer import AtLine, PageAnswer, key_of, place_words, word
from deepscope.dashboard.pages.calls import NamedTime
from deepscope.dashboard.pages.operators import kernel_key, named_operator
from deepscope.records import PHASES, FrameworkPart, Kernel, Line, Profile
from deepscope.report.event_names import readable
from deepscope.report.module_tree import Branch, folded_modules


class Part(PageAnswer):
    """A time that is a part of another."""

    name: str
    time_ns: int
    share: float


def parts_of(times: Iterable[tuple[str, int]], whole_ns: int) -> list[Part]:
    """The parts of a whole that take any time."""
    return [
        Part(name=name, time_ns=time_ns, share=time_ns / whole_ns if whole_ns else 0.0)
        for name, time_ns in times
        if time_ns
    ]


_LINES = 5


class IdleLine(AtLine):
    """A line on which the CPU was while the device had nothing to do."""

    idle_ns: int
    share: float
    """Of the idle time."""
    cause: str
    """What most of it is."""


class Idle(PageAnswer):
    """The devices' idle time."""

    whole_ns: int
    causes: list[Part]
    """They sum to it."""
    lines: list[IdleLine]
    """The largest first."""


def idle_of(profile: Profile) -> Idle | None:
    """Idle time by cause and by line; None where no device works, or no line is known."""
    whole = profile.totals.idle_ns
    if profile.metric != "device" or not profile.lines or whole <= 0:
        return None
    sums: dict[str, int] = {}
    for line in profile.lines:
        for name, time_ns in _causes(line).items():
            sums[name] = sums.get(name, 0) + time_ns
    sums["on no line"] = profile.no_line.idle_ns
    largest = sorted(profile.lines, key=lambda line: -line.idle_ns)[:_LINES]
    return Idle(
        whole_ns=whole,
        causes=parts_of(sums.items(), whole),
        lines=[_line(line, profile.trace.project_root, whole) for line in largest if line.idle_ns > 0],
    )


def _causes(line: Line) -> dict[str, int]:
    """A line's idle time by what the CPU did on it."""
    why = line.why
    return {
        "launching work": why.launch_ns,
        "other work of the CPU": why.host_ns,
        "waiting for the device": why.waiting_ns,
        "loading data": why.data_ns,
        "the training framework": line.framework_ns,
    }


def _line(line: Line, root: str, whole: int) -> IdleLine:
    causes = _causes(line)
    return IdleLine(
        file=line.file,
        line=line.line,
        place=place_words(line.file, line.line, root),
        function=word(line.function),
        idle_ns=line.idle_ns,
        share=line.idle_ns / whole,
        cause=max(causes, key=causes.__getitem__),
    )


class FrameworkTime(PageAnswer):
    """One of the things that a framework does on its own account."""

    part: str
    """`loops`, `logging`, `checkpoints`, `callback EarlyStopping`."""
    time_ns: int
    share: float
    """Of the wall time."""
    file: str
    """The line that calls the framework's loop."""
    line: int
    place: str


class Training(PageAnswer):
    """How the training thread spent its time, and what the framework has of it."""

    stage: str
    """`fit`, `validate`, `test`, `predict`; "" outside of a framework that has stages."""
    also_recorded: list[str]
    """Other stages of the run."""
    phases: list[Part]
    """They sum to the wall time."""
    calls: list[int]
    """Of each phase how often it began."""
    framework: str
    """`Lightning`; "" for none."""
    parts: list[FrameworkTime]
    """The longest first."""


def training_of(profile: Profile) -> Training:
    """Stages, phases and the framework's own work."""
    phases = sorted(
        (phase for phase in profile.phases if phase.wall_ns),
        key=lambda one: PHASES.index(one.name) if one.name in PHASES else len(PHASES),
    )
    return Training(
        stage=word(profile.trace.stage),
        also_recorded=[word(one) for one in profile.trace.also_recorded],
        phases=parts_of(
            ((word(phase.name), phase.wall_ns) for phase in phases), sum(phase.wall_ns for phase in profile.phases)
        ),
        calls=[phase.calls for phase in phases],
        framework=word(next((one.framework for one in profile.framework), "")),
        parts=[_part(one, profile) for one in sorted(profile.framework, key=lambda one: -one.cost_ns)],
    )


def _part(one: FrameworkPart, profile: Profile) -> FrameworkTime:
    wall = profile.totals.wall_ns
    return FrameworkTime(
        part=word(one.part),
        time_ns=one.cost_ns,
        share=one.cost_ns / wall if wall else 0.0,
        file=one.file,
        line=one.line,
        place=place_words(one.file, one.line, profile.trace.project_root),
    )


ONE_LINE = 0.5
"""A line with more than this part of the cost calls the rest (`main()`, `trainer.fit`, a graph's replay)."""
_ROWS = 5
_T = TypeVar("_T")


class WorkList(PageAnswer):
    """The most expensive rows of one page."""

    page: Literal["modules", "operators", "kernels"]
    title: str
    rows: list[NamedTime]
    """By their own work, the largest first."""
    whole_ns: int
    """All work, which the rows are parts of."""


def work_of(profile: Profile) -> list[WorkList]:
    """Where work is done, by module, operator and kernel; lists that would be empty are left out."""
    whole = profile.totals.device_ns
    modules = [] if len(profile.modules) < 2 else _largest(folded_modules(profile.modules), _of_module)
    found: list[WorkList] = [
        WorkList(page="modules", title="Modules", rows=modules, whole_ns=whole),
        WorkList(page="operators", title="Operators", rows=_largest(profile.operators, named_operator), whole_ns=whole),
        WorkList(page="kernels", title="Kernels", rows=_largest(profile.kernels, _of_kernel), whole_ns=whole),
    ]
    return [one for one in found if one.rows]


def _largest(rows: Iterable[_T], shown: Callable[[_T], NamedTime]) -> list[NamedTime]:
    found = sorted(map(shown, rows), key=lambda one: -one.time_ns)[:_ROWS]
    return [one for one in found if one.time_ns > 0]


def _of_module(row: Branch) -> NamedTime:
    module = row.module
    path = module.path or row.name
    label = path if path.startswith(module.class_name) else f"{path} ({module.class_name})"
    return NamedTime(
        key=key_of(module.path, module.class_name),
        label=word(label),
        time_ns=module.self_device_ns,
        calls=module.calls,
    )


def _of_kernel(row: Kernel) -> NamedTime:
    return NamedTime(key=kernel_key(row), label=word(readable(row.name)), time_ns=row.device_ns, calls=row.calls)
