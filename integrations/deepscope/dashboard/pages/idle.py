"""When no stream works: what the CPU did meanwhile, and on which lines."""

from __future__ import annotations

from deepscope.dashboard.answer import PageAnswer
from deepscope.dashboard.pages.parts import Part, parts_of
from deepscope.dashboard.pages.words import place_words, word
from deepscope.records import Line, Profile

_LINES = 5


class IdleLine(PageAnswer):
    """A line on which the CPU was while the device had nothing to do."""

    file: str
    line: int
    place: str
    function: str
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
