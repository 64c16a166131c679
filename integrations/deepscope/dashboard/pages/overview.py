"""The first page: how long a step is, what it is made of, and the lines and findings that matter."""

from __future__ import annotations

from typing import Literal

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import (
    AtLine,
    Choice,
    Figure,
    PageAnswer,
    Table,
    in_page_words,
    place_words,
    table_of,
    word,
)
from deepscope.dashboard.pages.findings import ShownFinding, shown_finding
from deepscope.dashboard.pages.overview_parts import (
    ONE_LINE,
    Idle,
    Part,
    Training,
    WorkList,
    idle_of,
    training_of,
    work_of,
)
from deepscope.records import PHASES, Costs, Line, Profile, cost_ns, key_figures
from deepscope.records.steps import Section
from deepscope.report.findings import without_findings
from deepscope.report.line_table import Sources, without_framework
from deepscope.report.run_verdict import run_verdict
from deepscope.report.step_table import serving_columns
from deepscope.report.whole_run import run_rows

LINES = 5
FINDINGS = 3
STEPS = 2000
"""Bars of steps."""


class Split(PageAnswer):
    """A whole and its parts; where `is_partition`, the parts are all of it."""

    section: Section | Literal["run"]
    device: str
    """Of the section `device`."""
    title: str
    help: str
    whole_ns: int
    parts: list[Part]
    is_partition: bool


class StepBar(PageAnswer):
    """One step; of several ranks the mean."""

    number: int
    duration_ns: float
    busy_ns: float
    idle_ns: float
    phases: list[float]
    """Times in the order of `Overview.phase_names`; what they leave of the duration is in no phase."""


class HotLine(AtLine):
    """A line with what it costs."""

    source: str
    cost_per_step_ns: float
    """Self time and the device's idle time that it is blamed for; without a device, self time and Python's. Without
    steps in all."""
    share: float
    """Of what all lines cost, and what ran on none."""
    self_ns: int
    backward_ns: int
    idle_ns: int
    verdict: str
    """What holds it back, in a word; "" where that is not known."""


class Overview(PageAnswer):
    """What a stranger should see first."""

    sentence: str
    """The verdict on the run."""
    figures: list[Figure]
    splits: list[Split]
    phase_names: list[str]
    steps: list[StepBar]
    lines: list[HotLine]
    serving: Table | None
    """The phases of a server of models; None where the trace has none."""
    work: list[WorkList]
    """Where no line is known, or one has more than half of the cost."""
    idle: Idle | None
    """None where no device works, or no line is known."""
    training: Training
    findings: list[ShownFinding]
    more_findings: int
    without_findings: str
    """What it means that there are none."""


def overview(library: Library, question: Choice) -> Overview:
    """How long a step is, what it is made of, which lines and findings matter."""
    profile = library.profile(question)
    lines = _lines(profile)
    work = work_of(profile) if not lines or lines[0].share > ONE_LINE else []
    return Overview(
        sentence=in_page_words(run_verdict(profile).sentence),
        figures=_figures(profile),
        splits=[*_of_the_run(profile), *_splits(profile)],
        phase_names=list(PHASES),
        steps=step_bars(profile),
        lines=lines,
        serving=serving_phases(profile),
        work=work,
        idle=idle_of(profile),
        training=training_of(profile),
        findings=[shown_finding(profile, one) for one in profile.findings[:FINDINGS]],
        more_findings=max(len(profile.findings) - FINDINGS, 0),
        without_findings=without_findings(profile),
    )


def serving_phases(profile: Profile) -> Table | None:
    """What a server of models does; None for other programs."""
    if not profile.serving:
        return None
    return table_of("serving", "What the server does", serving_columns(profile), profile.serving)


def step_bars(profile: Profile) -> list[StepBar]:
    """The steps with their phases, of several ranks the mean."""
    ranks = max(profile.totals.ranks, 1)
    return [
        StepBar(
            number=step.number,
            duration_ns=step.duration_ns / ranks,
            busy_ns=step.busy_ns / ranks,
            idle_ns=step.idle_ns / ranks,
            phases=[step.phases.get(name, 0) / ranks for name in PHASES],
        )
        for step in profile.steps[:STEPS]
    ]


def _lines(profile: Profile) -> list[HotLine]:
    costs, sources = Costs.of(profile), Sources(profile)
    hottest = costs.ranked(profile.lines)[:LINES]
    return [_hot_line(profile, line, costs, sources) for line in hottest if cost_ns(line) > 0]


def _hot_line(profile: Profile, line: Line, costs: Costs, sources: Sources) -> HotLine:
    return HotLine(
        file=line.file,
        line=line.line,
        place=place_words(line.file, line.line, profile.trace.project_root),
        function=word(line.function),
        source=word(sources.text(line)),
        cost_per_step_ns=costs.per_step_ns(line),
        share=costs.share(line),
        self_ns=line.self_device_ns,
        backward_ns=line.backward_device_ns,
        idle_ns=without_framework(line, profile).idle_ns,
        verdict=line.verdict,
    )


def _figures(profile: Profile) -> list[Figure]:
    totals, recorded = profile.totals, profile.steps if profile.part_of is None else []
    run, costs = key_figures(profile), Costs.of(profile)
    each, inside = " a step" if totals.steps else "", " a step" if recorded else ""
    launches, operators = (
        costs.per_step(sum(getattr(step, name) for step in recorded) if recorded else getattr(totals, name))
        for name in ("launches", "operators")
    )
    is_device = profile.metric == "device"
    operators_busy = totals.busy_ns / totals.wall_ns if totals.wall_ns else 0
    found = [
        Figure(f"time{each}", costs.per_step(totals.wall_ns), "time", "Wall time, by the recorded steps."),
        Figure(
            f"on the device{each}",
            run.device_step_ns or 0,
            "time",
            "Nothing waits for the device: the CPU runs ahead, until it has to wait.",
        ),
        Figure(
            "device busy" if is_device else "operators busy",
            run.busy_share or 0 if is_device else operators_busy,
            "share",
            "How much of the time at least one stream works." if is_device else "How much of the time operators run.",
        ),
        Figure(f"device idle{each}", costs.per_step(totals.idle_ns), "time", "When no stream of a device works."),
        Figure(f"waiting{inside}", run.waiting_per_step_ns, "time", "CPU time in calls that wait for the device."),
        Figure(f"kernels{inside}", launches, "count", "Kernels that were launched."),
        Figure(f"operators{inside}", operators, "count", "Operators that ran."),
        Figure("peak memory", totals.peak_bytes, "bytes", "The most that was allocated at once."),
        Figure("steps", totals.steps, "count", "That were recorded."),
    ]
    return [one for one in found if one.value]


_TITLES: dict[Section, tuple[str, str]] = {
    "step": ("Where the steps' time goes", "Each instant once: device work before what runs on the CPU."),
    "span": ("From the first to the last device work", "Computation, other device work, and neither."),
    "overlap": ("Collectives beside computation", "The part of collectives' time in which something is computed, too."),
    "idle": (
        "Why streams idle",
        "Host: the kernel was launched late. Kernel: a short gap between kernels. Other: all else.",
    ),
    "device": ("How the device is used", "Shares of the steps' time."),
}


def _of_the_run(profile: Profile) -> list[Split]:
    rows = [row for row in run_rows(profile) if row.section == "run" and row.whole_ns]
    if not rows or profile.part_of is not None:
        return []
    return [
        Split(
            section="run",
            device="",
            title="Where the run's time goes",
            help="All of its steps, recorded or not, and what is between them; without DeepScope's own work.",
            whole_ns=rows[0].whole_ns,
            parts=[Part(name=row.name, time_ns=row.time_ns, share=row.time_ns / row.whole_ns) for row in rows],
            is_partition=True,
        )
    ]


def _splits(profile: Profile) -> list[Split]:
    found: dict[tuple[Section, str], Split] = {}
    for row in profile.overview:
        title, explained = _TITLES[row.section]
        split = found.setdefault(
            (row.section, row.device),
            Split(
                section=row.section,
                device=word(row.device),
                title=title,
                help=explained,
                whole_ns=row.whole_ns,
                parts=[],
                is_partition=row.section in {"step", "span", "idle"},
            ),
        )
        split.parts.append(
            Part(name=word(row.name), time_ns=row.time_ns, share=row.time_ns / row.whole_ns if row.whole_ns else 0.0)
        )
    return [one for one in found.values() if one.whole_ns > 0]
