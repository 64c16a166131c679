"""The tools that read: a question about a run, answered by the report's own words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Annotated

from pydantic import Field

from deepscope.cli.next_step import after_line, after_report, line_to_open, slower_line
from deepscope.comparison import Difference
from deepscope.comparison import compare as compared
from deepscope.mcp_server.answers import (
    ChangeEntry,
    CompareAnswer,
    FindingEntry,
    FindingsAnswer,
    LineAnswer,
    LineEntry,
    LinesAnswer,
    OverviewAnswer,
    PartEntry,
    PhaseEntry,
    RankEntry,
    RanksAnswer,
    RunEntry,
    RunsAnswer,
)
from deepscope.mcp_server.served_folders import RunReader, ServedFolders, ServedRun
from deepscope.quantities import ranges
from deepscope.records import Costs, Finding, Line, Profile, cost_ns, key_figures
from deepscope.records.source_files import short_path, short_place
from deepscope.report.comparison_report import noise_words, row_name, step_words, verdict_word
from deepscope.report.event_names import place_name
from deepscope.report.findings import saving_words, tried_words, without_findings
from deepscope.report.line_report import about_line, find_line, largest_parts
from deepscope.report.line_table import Sources, without_framework
from deepscope.report.line_tree import Node, lines_of
from deepscope.report.ranks.sentences import answer as ranks_sentence
from deepscope.report.ranks.sentences import late_entries
from deepscope.report.ranks.tables import slowest_first
from deepscope.report.run_verdict import run_verdict
from deepscope.report.step_table import serving_words
from deepscope.report.tables import table
from deepscope.report.terminal import shown_words
from deepscope.report.text_report import header


def place_of(file: str, line: int, profile: Profile) -> str:
    """`train.py:46`; "" where no line is known."""
    return short_place(file, line, profile.trace.project_root) if file else ""


def rounded(share: float | None) -> float | None:
    """A share as answers have it, to a hundredth of a percent."""
    return None if share is None else round(share, 4)


def run_entry(one: ServedRun) -> RunEntry:
    """A run by what the names and heads of its traces say."""
    run = one.run
    return RunEntry(
        path=one.path,
        program=run.program,
        recorded_at=datetime.fromtimestamp(run.newest.time_ns / 1e9, timezone.utc).isoformat(timespec="seconds"),
        ranks=ranges(run.ranks),
        stages=[name for name in run.stages if name],
    )


def finding_entry(one: Finding, profile: Profile) -> FindingEntry:
    """Advice in the words of the report."""
    return FindingEntry(
        code=one.code,
        severity=one.severity,
        place=place_of(one.file, one.line, profile),
        title=one.title,
        saving=saving_words(one, profile) if one.saving_ns else "",
        message=one.message,
        remedy=one.remedy.text,
        tried=tried_words(profile.tries, one.code),
    )


def line_entry(line: Line, profile: Profile, sources: Sources) -> LineEntry:
    """A line with the numbers of the report."""
    costs, own = Costs.of(profile), without_framework(line, profile)
    return LineEntry(
        place=place_of(line.file, line.line, profile),
        function=line.function,
        share=round(costs.share(line), 4),
        cost_ns=cost_ns(line),
        per_step_ns=round(costs.per_step_ns(line)),
        self_ns=line.self_device_ns,
        backward_ns=line.backward_device_ns,
        python_ns=own.python_ns,
        idle_ns=own.idle_ns,
        why=line.verdict,
        source=sources.text(line),
    )


def parts_of(tree: Node) -> list[tuple[int, Node]]:
    """What stands below the root, each with its depth; what was summed up is left out."""
    return [(depth, node) for depth, node in tree.walk() if depth and node.kind != "other"]


def part_entry(depth: int, node: Node, profile: Profile) -> PartEntry:
    """A part of a line's work."""
    return PartEntry(
        depth=depth,
        kind=node.kind,
        name=node.name if node.kind == "line" else place_name(node.kind, node.name),
        place=place_of(node.file, node.line, profile),
        total_ns=node.total_device_ns,
        self_ns=node.self_device_ns,
        calls=node.calls,
    )


def change_entry(row: Difference) -> ChangeEntry:
    """What became of a line."""
    return ChangeEntry(
        place=row_name(row),
        verdict=verdict_word(row),
        change_ns=round(row.change_ns),
        low_ns=None if row.interval is None else round(row.interval.low_ns),
        high_ns=None if row.interval is None else round(row.interval.high_ns),
        before_ns=None if row.status == "new" else round(row.before_ns),
        after_ns=None if row.status == "gone" else round(row.after_ns),
        source=row.text,
    )


FINDINGS = 3
"""Of an overview."""
WARNINGS = 3

RunPath = Annotated[str, Field(description="A run as list_runs names it, or a folder; empty for the newest run.")]
Rank = Annotated[int | None, Field(description="Only this rank; all are summed up otherwise.", ge=0)]
Stage = Annotated[str | None, Field(description="Another stage of the run, as list_runs names it: validate, test, …")]
Limit = Annotated[int, Field(description="Rows that are shown.", ge=1, le=200)]


class ReadTools:
    """Questions about the runs in the served folders."""

    def __init__(self, folders: ServedFolders, reader: RunReader) -> None:
        self._folders = folders
        self._reader = reader

    def list_runs(self, limit: Limit = 15) -> RunsAnswer:
        """List the recorded runs, the newest first. The `path` of a run is what other tools take."""
        runs = self._folders.runs()
        return RunsAnswer(
            folders=self._folders.names,
            runs=[run_entry(one) for one in runs[:limit]],
            shown=_shown(limit, len(runs), "runs"),
            next=_call("overview", path=runs[0].path) if runs else "record a run: deepscope run train.py",
        )

    def overview(self, path: RunPath = "", rank: Rank = None, stage: Stage = None) -> OverviewAnswer:
        """Say what the time of a run goes to: the verdict in a sentence, steps, phases, advice, and the next step."""
        profile = self._reader.profile(path, rank=rank, stage=stage)
        verdict, figures, head = run_verdict(profile), key_figures(profile), dict(header(profile, by=""))
        found = profile.findings
        return OverviewAnswer(
            path=_path(profile, path),
            verdict=verdict.sentence,
            cause=verdict.cause,
            share=rounded(verdict.share),
            place=place_of(verdict.file, verdict.line, profile),
            run=head.get("run", ""),
            device=head["device"],
            time=head["time"],
            steps=figures.steps,
            step_ns=None if figures.step_ns is None else round(figures.step_ns),
            busy_share=rounded(figures.busy_share),
            idle_share=rounded(figures.idle_share),
            phases=[PhaseEntry.model_validate(one) for one in table("phase").rows(profile)]
            if not profile.serving
            else [],
            serving=[serving_words(one, profile) for one in profile.serving],
            findings=[finding_entry(one, profile) for one in found[:FINDINGS]],
            findings_shown=_shown(FINDINGS, len(found), "findings", "the tool findings has all"),
            without_findings="" if found else without_findings(profile),
            warnings=profile.trace.warnings[:WARNINGS],
            next=_after_report(profile, path),
        )

    def lines(
        self,
        path: RunPath = "",
        sort: Annotated[str, Field(description="cost, self, backward, python, wait, idle, memory, …")] = "cost",
        limit: Limit = 12,
        rank: Rank = None,
        stage: Stage = None,
    ) -> LinesAnswer:
        """List the lines of the user's code that cost the time, as file:line with their source."""
        profile = self._reader.profile(path, rank=rank, stage=stage)
        rows: Sequence[Line] = table("line").rows(profile, sort=sort)
        sources = Sources(profile)
        return LinesAnswer(
            path=_path(profile, path),
            lines=[line_entry(one, profile, sources) for one in rows[:limit]],
            shown=_shown(limit, len(rows), "lines"),
            no_line_ns=cost_ns(profile.no_line),
            next=_after_report(profile, path),
        )

    def line_detail(
        self,
        line: Annotated[str, Field(description="file:line as the other tools show it, such as train.py:46.")],
        path: RunPath = "",
        limit: Limit = 25,
        rank: Rank = None,
        stage: Stage = None,
    ) -> LineAnswer:
        """Say what the time of one line is made of: modules, library lines, operators and kernels, and its advice."""
        profile = self._reader.profile(path, rank=rank, stage=stage)
        place = find_line(profile, line)
        found = lines_of(profile)[place]
        whole, tree = largest_parts(profile, place), largest_parts(profile, place, limit=limit)
        parts, of = parts_of(tree), parts_of(whole)
        return LineAnswer(
            path=_path(profile, path),
            line=line_entry(found, profile, Sources(profile)),
            about=[f"{title}: {text}" for title, text in about_line(profile, found, whole) if title != "line"],
            parts=[part_entry(depth, node, profile) for depth, node in parts],
            shown=_shown(len(parts), len(of), "parts"),
            findings=[
                finding_entry(one, profile)
                for one in profile.findings
                if (one.file, one.line) == (found.file, found.line)
            ],
            next=after_line(profile, found.file, found.line),
        )

    def findings(self, path: RunPath = "", limit: Limit = 6, rank: Rank = None, stage: Stage = None) -> FindingsAnswer:
        """List advice: where, what to change, on which figures, and how much it could save."""
        profile = self._reader.profile(path, rank=rank, stage=stage)
        found = profile.findings
        return FindingsAnswer(
            path=_path(profile, path),
            findings=[finding_entry(one, profile) for one in found[:limit]],
            without="" if found else without_findings(profile),
            shown=_shown(limit, len(found), "findings"),
            next=_after_report(profile, path),
        )

    def compare(
        self,
        before: Annotated[str, Field(description="The path of the run before the change.")],
        after: Annotated[str, Field(description="The path of the run after it.")],
        limit: Limit = 12,
    ) -> CompareAnswer:
        """Say which lines became slower or faster between two runs, and which differences are within noise."""
        comparison = compared(self._reader.repeats(before), self._reader.repeats(after))
        changed = [row for row in comparison.rows if row.change_ns]
        word = slower_line(comparison)
        return CompareAnswer(
            before=_path(comparison.before[0], before),
            after=_path(comparison.after[0], after),
            step=step_words(comparison),
            noise=noise_words(comparison),
            rows=[change_entry(row) for row in changed[:limit]],
            shown=_shown(limit, len(changed), "changed lines"),
            next=_call("line_detail", path=_path(comparison.after[0], after), line=word) if word else "",
        )

    def ranks(self, path: RunPath = "", limit: Limit = 16) -> RanksAnswer:
        """Hold the ranks of a run side by side: which one is late, by which line, and who waits for it."""
        report, skipped = self._reader.ranks(path)
        rows = slowest_first(report)
        late = report.stragglers[0].rank if report.stragglers else None
        return RanksAnswer(
            path=path or report.ranks[0].path,
            sentence=ranks_sentence(report),
            world_size=report.world_size,
            missing=report.missing,
            ranks=[RankEntry.model_validate(row) for row in rows[:limit]],
            shown=_shown(limit, len(rows), "ranks"),
            late=[" ".join(one).strip() for row in report.stragglers for one in late_entries(report, row)][:limit],
            failures=[*(one.message for one in report.failures), *skipped][:WARNINGS],
            next="" if late is None else _call("overview", path=path or report.ranks[0].path, rank=late),
        )


def _call(tool: str, **arguments: object) -> str:
    """A tool with its arguments, as the assistant may call it next."""
    return f"{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _after_report(profile: Profile, path: str) -> str:
    word = line_to_open(profile)
    return _call("line_detail", path=_path(profile, path), line=word) if word else after_report(profile, "line")


def _shown(limit: int, of: int, what: str, rest: str = "a larger limit shows more") -> str:
    return shown_words(min(limit, of), of, what=what, rest=rest) if of > limit else f"{of:,} of {of:,} {what} shown"


def _path(profile: Profile, given: str) -> str:
    """The run's handle: what was given, else its trace."""
    return given or short_path(profile.trace.path)
