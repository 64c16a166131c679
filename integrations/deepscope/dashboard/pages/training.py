"""A training run's own things: its stages, the phases of its steps, and what the framework does between the lines."""

from __future__ import annotations

from deepscope.dashboard.answer import PageAnswer
from deepscope.dashboard.pages.parts import Part, parts_of
from deepscope.dashboard.pages.words import place_words, word
from deepscope.records import PHASES, FrameworkPart, Profile


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
