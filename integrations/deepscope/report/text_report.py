"""The report as text: a head, a table fitted to the width, and a foot."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from deepscope.printable import printable
from deepscope.quantities import count_text, number_text, ranges, share_text, time_text
from deepscope.records import Audit, Numbers, Profile, key_figures
from deepscope.records.source_files import short_path
from deepscope.report.columns import columns, outside_words
from deepscope.report.critical_path import critical_entries
from deepscope.report.filters import NO_FILTERS, Filters, part_words, row_words
from deepscope.report.findings import finding_words, findings_entries
from deepscope.report.footer import footer
from deepscope.report.memory import memory_entries
from deepscope.report.run_verdict import run_verdict
from deepscope.report.step_table import serving_words
from deepscope.report.tables import table, table_of_steps
from deepscope.report.terminal import DOT, MIN_WIDTH, Styles, entries_text, render
from deepscope.report.whole_run import evaluates_much

_FEW = 10
"""Times as many steps as were recorded: of fewer the mean says what recording made of them."""


def header(profile: Profile, by: str = "line", sort: str | None = None) -> Iterator[tuple[str, str]]:
    """Entries of the head, each a title and its printable text, above the table `by`, which is ordered by `sort`.

    The first is the verdict on the run, but above what is of one line (`by` is "").
    """
    if by:
        yield "verdict", run_verdict(profile).sentence
    paths = profile.trace.paths
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    yield "trace", printable(short_path(profile.trace.path)) + more
    if run := _run(profile):
        yield "run", run
    yield "device", _device(profile)
    outside = outside_words(sum(row.outside_calls for row in profile.collectives)) if by == "collective" else ""
    yield "time", DOT.join(filter(None, (_time(profile), outside)))
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


_AUDITED_CAUSES = frozenset({"operators", "Python", "device busy", "device idle"})
"""Causes that may be work which nobody needs."""
_ENOUGH = 0.1
"""While a finding promises this share of the wall time, it is what to do first."""
_NAMED = 3
"""Operators from outside torch that are named, and findings of an evaluation."""


def audit_entries(profile: Profile) -> Iterator[tuple[str, str]]:
    """One entry: what was looked at, why nothing was, or that it might help."""
    words = _audit_advice(profile) if profile.audit is None else _audit_words(profile.audit)
    if words:
        yield "audit", words


def _audit_words(audit: Audit) -> str:
    if not audit.steps:
        return printable(f"no step was looked at: {audit.left_out}")
    words = f"{audit.steps} steps were looked at, with {count_text(audit.operators)} operators in the first"
    if not audit.hidden:
        return words
    named = ", ".join(audit.hidden[:_NAMED]) + (", …" if len(audit.hidden) > _NAMED else "")
    return printable(f"{words}; what {named} do with their arguments is unknown and counts as a use")


def _audit_advice(profile: Profile) -> str:
    """That looking would help: where a training program's own work takes the time, and no advice does."""
    is_ours = bool(profile.trace.deepscope) and profile.trace.line_source == "scopes"
    trains = any(phase.name == "backward" and phase.wall_ns for phase in profile.phases)
    is_compiled = any(line.in_compiled_region for line in profile.lines)
    is_advised = any(one.saving_ns >= _ENOUGH * profile.totals.wall_ns for one in profile.findings)
    if not is_ours or not trains or is_compiled or is_advised or profile.part_of is not None:
        return ""
    if run_verdict(profile).cause not in _AUDITED_CAUSES:
        return ""
    return "`deepscope run --audit` (audit=True) looks for work that nobody needs, which times cannot show"


def text_report(
    profile: Profile,
    *,
    by: str = "line",
    sort: str | None = None,
    limit: int = 20,
    width: int = 80,
    color: bool = False,
    filters: Filters = NO_FILTERS,
) -> str:
    """The report for a terminal `width` cells wide, ending in a newline.

    Args:
        profile: what is reported.
        by: a word of `tables.TABLES`.
        sort: a key of the table; None for its own.
        limit: rows shown; 0 shows all.
        filters: which rows are shown at all.
        width: in terminal cells.
        color: with escape sequences of a terminal.

    Raises:
        OptionError: no such `by` or `sort`.
    """
    instead = by == "line" and not profile.lines
    if instead:
        by, sort = "operator", None
    by = table_of_steps(by, profile)
    styles = Styles(color)
    width = max(MIN_WIDTH, width)
    chosen = table(by, profile.details)
    rows = chosen.rows(profile, sort=sort)
    kept = filters.rows(by, rows, profile.trace.project_root)
    shown = chosen.limited(kept, sort, limit)
    rest = kept[len(shown) :]  # of a tree only how many
    head = list(header(profile, by, sort))
    if words := row_words(profile, by, filters, rows, kept):
        head.append(("filter", words))
    if by == "memory" or profile.memory.failure is not None:
        head += memory_entries(profile)
    if by == "critical":
        head += critical_entries(profile)
    if instead:
        head.append(("lines", "none: recorded without Python frames, so these are its operators; see also --by kernel"))
    lines = list(entries_text(head, width, styles))
    named = replace(profile, no_line=Numbers(), framework=[]) if filters else profile  # these have no name to match
    made = columns(by, shown, rest, named, sort=sort, width=width, styles=styles)
    fitted = render(made, width, title_style=styles.title)
    lines += ["", *(fitted if len(fitted) > 1 else [_nothing(by, filters)]), ""]
    if by == "line" or instead:
        advice = [*findings_entries(profile), *audit_entries(profile)]
        found = list(entries_text(advice, width, styles))
        lines += [*found, ""] if found else []
    lines += entries_text(footer(profile, by, shown, len(rest)), width, styles)
    return "\n".join(lines).rstrip("\n") + "\n"


def evaluation_text(profile: Profile, training: Profile, *, width: int = 80, color: bool = False) -> str:
    """What was found in an evaluation, for a terminal below its training's report; "" where nothing of weight was.

    Where evaluations take much of the run, the evaluation's verdict comes first: it names the line that costs most.
    """
    found = [one for one in profile.findings if one.severity != "hint"][:_NAMED]
    sentences = [words for one in found for words in (finding_words(one, profile), printable(one.remedy.text))]
    if evaluates_much(training.whole_run):
        sentences.insert(0, run_verdict(replace(profile, whole_run=None)).sentence)
    entries = [("validate", words) for words in sentences]
    return "".join(f"{line}\n" for line in entries_text(entries, max(MIN_WIDTH, width), Styles(color)))


_NOTHING = {
    "overview": "no steps and no work of a device in this trace",
    "step": "no steps: none was marked while the trace was recorded",
    "serving": "no steps of a server of models in this trace",
    "run": "no account of the whole run beside this trace",
    "thread": "no threads of the CPU in this trace",
    "stream": "no device in this trace, so no streams",
    "counter": 'no counters in this trace; counters="window" samples them',
    "collective": "no collectives between ranks in this trace",
    "memory": "no memory in this trace; profile_memory=True records it",
    "critical": "no critical path in this trace",
}


def _nothing(by: str, filters: Filters) -> str:
    if filters:
        return f"no {table(by).key} match"
    return _NOTHING.get(by) or f"no {table(by).key} in this trace"
