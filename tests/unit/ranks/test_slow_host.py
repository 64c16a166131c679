"""Without a device: a processor on which all operators are slower is slow hardware, and Python is slow with them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deepscope.analysis.build import build_profile
from deepscope.ranks.rank_summary import RankSummary, summary_of
from deepscope.ranks.side_by_side import side_by_side
from deepscope.ranks.straggler_finding import CODE
from deepscope.store.load import load_profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

US, STEPS, LAST = 1_000, 5, 4_000
OPERATORS = [("aten::addmm", 300), ("aten::relu", 60), ("aten::mul", 80), ("aten::sum", 120), ("aten::add_", 200)]


def rank_of(number: int, operators: float, python: float, folder: Path) -> RankSummary:
    """A rank whose operators, and whose Python between them, take so many times as long."""
    builder = TraceBuilder(distributedInfo={"backend": "gloo", "rank": number, "world_size": 4})
    for step in range(STEPS):
        at = began = step * LAST * US
        for line, (name, us) in enumerate(OPERATORS, 10):
            length, between = round(us * operators * US), round(40 * python * US)
            builder.line("/train.py", line, "main", at, length + between).op(name, at, length)
            at += length + between
        builder.line("/train.py", 20, "main", at, began + LAST * US - at)
        builder.op("c10d::allreduce_", at, 5 * US)
        builder.annotation("gloo:all_reduce", at + 5 * US, began + (LAST - 10) * US - at, tid=105)
        builder.step(step, began, LAST * US)
    return summary_of(build_profile(read_trace(builder.write(folder / f"rank{number}.json"))))


@pytest.mark.parametrize(
    ("operators", "python", "cause"), [(1.5, 1.5, "hardware"), (1.5, 1, "hardware"), (1, 10, "host")]
)
def test_slow_processors_are_told_from_slow_python(tmp_path: Path, operators: float, python: float, cause: str) -> None:
    ranks = [rank_of(one, operators if one == 3 else 1, python if one == 3 else 1, tmp_path) for one in range(4)]
    found = side_by_side([msgspec.structs.replace(one, rank=place) for place, one in enumerate(ranks)])
    (late,) = found.stragglers
    assert (late.rank, late.cause, late.late_steps) == (3, cause, STEPS)
    own = sum(us for _, us in OPERATORS)
    expected = own * (operators - 1) + 40 * len(OPERATORS) * (python - 1)
    assert late.excess_ns == pytest.approx(expected * US, rel=0.01)
    if cause == "hardware":
        assert late.hardware_ns == pytest.approx(late.excess_ns, rel=0.02)
        assert "the same operators take 1.50 times as long" in late.message


def test_a_rank_that_recorded_nothing_takes_no_finding_from_the_report(tmp_path: Path) -> None:
    for one in range(3):
        rank_of(one, 1.5 if one == 2 else 1, 1, tmp_path)
    found = [one for one in load_profile(tmp_path, cache=False).findings if one.code == CODE]
    nothing = TraceBuilder(distributedInfo={"backend": "gloo", "rank": 3, "world_size": 4})
    nothing.write(tmp_path / "rank3.json")
    with_it = [one for one in load_profile(tmp_path, cache=False).findings if one.code == CODE]
    assert [one.message for one in with_it] == [one.message for one in found] != []
