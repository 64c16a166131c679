"""The head of the text report: what was recorded, on what, and how busy the device was."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.printable import printable
from deepscope.quantities import number_text, share_text, time_text
from deepscope.records import Profile, key_figures
from deepscope.records.places import short_path
from deepscope.records.ranges import ranges
from deepscope.report.filters import part_words
from deepscope.report.places_of_work import outside_words
from deepscope.report.run_verdict import run_verdict
from deepscope.report.step_times import serving_words
from deepscope.report.tables import table

DOT = " · "

_FEW = 10
"""Times as many steps as were recorded: of fewer the mean says what recording made of them."""


def header(profile: Profile, by: str = "line", sort: str | None = None) -> Iterator[tuple[str, str]]:
    """Entries of the head, each a title and its printable text, above the table `by`, which is ordered by `sort`.

    The first is the verdict on the run, but above what is of one line (`by` is "").
    """
    if by:
        yield "verdict", run_verdict(profile).sentence
    yield "trace", _trace(profile)
    if run := _run(profile):
        yield "run", run
    yield "device", _device(profile)
    yield "time", _time(profile) + (_outside(profile) if by == "collective" else "")
    if len(profile.phases) > 1 and not profile.serving:  # these are of training
        yield "phases", _phases(profile)
    for row in profile.serving:
        yield "serving", serving_words(row, profile)
    if profile.metric == "cpu_self":
        yield "metric", "CPU only: this trace has no device work; self times are the operators' own time on the CPU"
    if len(profile.lines) > 1 and by in {"line", "function"}:
        yield "order", _order(profile, by, sort)
    if part := part_words(profile):
        yield "filter", part


def _order(profile: Profile, by: str, sort: str | None) -> str:
    if sort is not None and table(by).field(sort) != "cost_ns":
        return f"{by}s by {printable(sort)}"
    beside = "the device's idle time they are blamed for" if profile.metric == "device" else "Python's"
    return f"{by}s by what they cost the run: their self time and {beside}"


def _trace(profile: Profile) -> str:
    info = profile.trace
    path = printable(short_path(info.path))
    files = f" and {len(info.paths) - 1} more" if len(info.paths) > 1 else ""
    return path + files


def _run(profile: Profile) -> str:
    info = profile.trace
    parts = []
    if info.stage:
        parts.append(f"stage {info.stage}")
    if info.window:
        parts.append(f"window {info.window}")
    if profile.step is not None:
        parts.append(f"step {profile.step} alone")
    if info.recorded_at:
        parts.append(f"recorded {info.recorded_at}")
    if info.git_commit:
        parts.append(f"commit {info.git_commit[:10]}{' (changed)' if info.git_dirty else ''}")
    if info.torch:
        parts.append(f"torch {info.torch}")
    if info.also_recorded:
        parts.append(f"also recorded: {', '.join(info.also_recorded)} (--stage)")
    return printable(DOT.join(parts))


def _device(profile: Profile) -> str:
    info = profile.trace
    count = f" ({info.device_count} of them)" if info.device_count > 1 and profile.metric == "device" else ""
    parts = [(info.device or ("CPU" if profile.metric == "cpu_self" else "unnamed device")) + count]
    if len(info.ranks) > 1:
        parts.append(f"ranks {ranges(info.ranks)} of {info.world_size}, summed up")
    elif info.ranks and info.world_size > 1:
        parts.append(f"rank {info.ranks[0]} of {info.world_size}")
    return printable(DOT.join(parts))


def _time(profile: Profile) -> str:
    totals = profile.totals
    ranks = max(1, totals.ranks)
    if profile.part_of is not None:
        return f"{time_text(totals.wall_ns / ranks) or '0'} of {time_text(profile.part_of.wall_ns / ranks) or '0'}"
    run = key_figures(profile)
    parts = []
    if totals.steps:
        numbers = f" ({ranges([step.number for step in profile.steps])})" if profile.steps else ""
        parts.append(f"{totals.steps} {'step' if totals.steps == 1 else 'steps'}{numbers}")
        on_device = f" on the CPU, about {time_text(run.device_step_ns)} on the device" if run.device_step_ns else ""
        length = f"{time_text(run.step_ns or 0) or '0'} a step{on_device}"
        parts.append(f"{length}{_range(profile, ranks)}{_of_the_run(profile)}")
    else:
        steps = ", no steps marked" if not profile.serving else ""
        parts.append(f"{time_text(totals.wall_ns / ranks) or '0'}{steps}")
    if run.busy_share is not None and run.idle_share is not None:
        parts.append(f"device busy {number_text(run.busy_share, 'share')}, idle {number_text(run.idle_share, 'share')}")
    # Waits outside the steps, or on several threads at once, may be longer than the time.
    if 0 < run.waiting_share <= 1:
        parts.append(f"CPU waiting {number_text(run.waiting_share, 'share')}")
    elif run.waiting_share:
        parts.append(f"CPU threads waiting {time_text(run.waiting_per_step_ns)}{' a step' if totals.steps else ''}")
    return DOT.join(parts)


def _outside(profile: Profile) -> str:
    words = outside_words(sum(row.outside_calls for row in profile.collectives))
    return f"{DOT}{words}" if words else ""


def _range(profile: Profile, ranks: int) -> str:
    durations = [step.duration_ns / ranks for step in profile.steps]
    if len(durations) < 2:
        return ""
    return f" ({time_text(min(durations)) or '0'} to {time_text(max(durations)) or '0'})"


def _of_the_run(profile: Profile) -> str:
    """What all steps take beside those of the window; "" where those are many of all, and made them longer."""
    run = profile.whole_run
    if run is None or run.step_ns is None or run.steps < _FEW * profile.totals.steps:
        return ""
    return f", {time_text(run.step_ns) or '0'} over all {run.steps:,} of the run"


def _phases(profile: Profile) -> str:
    wall = sum(phase.wall_ns for phase in profile.phases)
    return DOT.join(
        f"{printable(phase.name)} {share_text(phase.wall_ns, wall) or '0%'}"
        for phase in sorted(profile.phases, key=lambda phase: -phase.wall_ns)
    )
