"""Rows of answers, made of the report's records by the functions that make the report's own rows."""

from __future__ import annotations

from datetime import datetime, timezone

from deepscope.comparison import Difference
from deepscope.mcp_server.answers import ChangeEntry, FindingEntry, LineEntry, PartEntry, RankEntry, RunEntry
from deepscope.mcp_server.served_folders import ServedRun
from deepscope.ranks.results import RankRow
from deepscope.records import Costs, Finding, Line, Profile, cost_ns
from deepscope.records.places import short_place
from deepscope.records.ranges import ranges
from deepscope.report.below import Node
from deepscope.report.compare import row_name, verdict_word
from deepscope.report.findings import saving_words, tried_words
from deepscope.report.framework import without_framework
from deepscope.report.places import Sources, place_name
from deepscope.store.runs import STAGES


def place_of(file: str, line: int, profile: Profile) -> str:
    """`train.py:46`; "" where no line is known."""
    return short_place(file, line, profile.trace.project_root) if file else ""


def rounded(share: float | None) -> float | None:
    """A share as answers have it, to a hundredth of a percent."""
    return None if share is None else round(share, 4)


def run_entry(run: ServedRun) -> RunEntry:
    """A run by what the names and heads of its traces say."""
    stages = {one.identity.stage for one in run.traces}
    return RunEntry(
        path=run.path,
        program=next((one.identity.program for one in run.traces if one.identity.program), ""),
        recorded_at=datetime.fromtimestamp(run.traces[0].time_ns / 1e9, timezone.utc).isoformat(timespec="seconds"),
        ranks=ranges(sorted({one.identity.rank for one in run.traces if one.identity.rank is not None})),
        stages=[name for name in STAGES if name and name in stages] + sorted(stages - set(STAGES)),
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


def rank_entry(row: RankRow) -> RankEntry:
    """A rank with the numbers of the report."""
    return RankEntry(
        rank=row.rank,
        host=row.host,
        step_ns=row.step_ns,
        own_ns=row.own_ns,
        exposed_ns=row.exposed_ns,
        idle_ns=row.idle_ns,
        data_ns=row.data_ns,
        waited_ns=row.waited_ns,
    )
