"""Lines whose own time differs over the ranks: on the device, in operators or in Python."""

from __future__ import annotations

from pathlib import Path

import msgspec

import built_profiles
from deepscope.ranks.rank_summary import RankSummary, summary_of
from deepscope.ranks.side_by_side import varying_lines
from deepscope.records import CriticalLine
from deepscope.store.ranks import read_ranks
from trace_builder import TraceBuilder


def summary(rank: int, steps: int, **times: int) -> RankSummary:
    """A rank with lines of these own times in all steps, by function."""
    profile = built_profiles.training()
    profile.trace.ranks = [rank]
    one = summary_of(profile)
    lines = [
        CriticalLine(file="/p/net.py", line=number, function=name, exact=True, critical_ns=time + 7, communication_ns=7)
        for number, (name, time) in enumerate(times.items())
    ]
    return msgspec.structs.replace(
        one,
        critical=msgspec.structs.replace(one.critical, lines=lines),
        totals=msgspec.structs.replace(one.totals, steps=steps),
    )


def test_lines_are_compared_by_the_step_and_a_rank_without_one_has_nothing_of_it() -> None:
    found = varying_lines([summary(0, 2, f=20, g=10), summary(1, 1, f=30, g=5), summary(2, 1, f=11)])
    told = [(row.function, row.median_ns, row.min_ns, row.min_rank, row.max_ns, row.max_rank) for row in found]
    assert told == [("f", 11, 10, 0, 30, 1), ("g", 5, 0, 2, 5, 0)]


def test_a_project_may_lie_in_another_folder_on_each_host() -> None:
    ranks = [summary(0, 1, f=20, g=10), summary(1, 1, f=30, g=10), summary(2, 1, f=21, g=10)]
    ranks[0] = msgspec.structs.replace(ranks[0], project_root="/p")
    for place in (1, 2):
        path = ranks[place].critical
        lines = [msgspec.structs.replace(line, file=f"/scratch/{place}/net.py") for line in path.lines]
        ranks[place] = msgspec.structs.replace(
            ranks[place], critical=msgspec.structs.replace(path, lines=lines), project_root=f"/scratch/{place}"
        )
    (row,) = varying_lines(ranks)
    assert (row.file, row.function, row.min_ns, row.median_ns, row.max_ns) == ("/p/net.py", "f", 20, 21, 30)


def test_what_is_alike_on_all_ranks_is_left_out() -> None:
    assert varying_lines([summary(0, 1, f=20), summary(1, 2, f=40)]) == []
    assert varying_lines([summary(0, 1, f=20)]) == []


def test_python_of_the_host_counts_and_waiting_in_collectives_does_not(tmp_path: Path) -> None:
    us = 1000
    for number in range(3):
        built = TraceBuilder(distributedInfo={"rank": number, "world_size": 3})
        for step in range(2):
            at = 1000 * us * step
            built.step(step, at, 900 * us)
            built.line("/p/net.py", 7, "f", at, (300 + 50 * number) * us).op("aten::mm", at, 100 * us)
            built.line("/p/net.py", 9, "f", at + 450 * us, 400 * us).op("c10d::allreduce_", at + 460 * us, 300 * us)
            if number == 1:
                built.line("/p/net.py", 12, "g", at + 860 * us, 30 * us)
        built.write(tmp_path / f"rank{number}.json")
    found = {row.line: row for row in varying_lines(read_ranks(tmp_path).summaries)}
    assert (found[7].min_ns, found[7].median_ns, found[7].max_ns) == (300 * us, 350 * us, 400 * us)
    assert (found[12].min_ns, found[12].max_ns, found[12].max_rank) == (0, 30 * us, 1)
    assert 9 not in found
