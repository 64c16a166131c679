"""Four real processes on gloo: messages, who came last, and clocks, which are one and the same on one host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from deepscope.ranks.rank_summary import CallColumns, RankSummary
from deepscope.ranks.side_by_side import side_by_side
from deepscope.store.ranks import read_ranks

pytestmark = pytest.mark.thorough

MS, SECOND = 1_000_000, 1_000_000_000
STEPS, BYTES = 4, 4000


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> list[RankSummary]:
    folder = tmp_path_factory.mktemp("messages")
    program = Path(__file__).resolve().parents[1] / "targets" / "messages.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    subprocess.run([*command, str(program), str(folder)], check=True, capture_output=True, timeout=240)
    return read_ranks(folder, cache=False).summaries


def test_each_pair_has_its_messages_found_on_both_sides(summaries: list[RankSummary]) -> None:
    found = {(row.source, row.target): row for row in side_by_side(summaries).pairs}
    assert {pair: row.messages for pair, row in found.items()} == {
        (0, 1): 2 * STEPS, (1, 2): STEPS, (2, 3): 2 * STEPS, (3, 0): STEPS,
    }  # fmt: skip
    for row in found.values():
        assert row.bytes == row.messages * BYTES
        assert 0 < (row.transfer_ns or 0) <= row.time_ns


def test_who_is_late_by_fifty_milliseconds_comes_last_to_all_reduce_and_its_line_is_known(
    summaries: list[RankSummary],
) -> None:
    report = side_by_side(summaries)
    (row,) = (one for one in report.collectives if one.kind == "all_reduce")
    assert (row.group_ranks, row.role, row.calls, row.matched) == ("0-3", "world", STEPS, STEPS)
    assert (row.last_rank, row.last_calls) == (2, STEPS)
    assert (row.spread_ns or 0) > 40 * MS
    assert (row.wait_ns or 0) > 3 * STEPS * 40 * MS
    for one in summaries:
        calls = one.calls
        kinds = [one.collectives[row].kind for row in calls.column("collective").tolist()]
        texts = [one.lines[one.line_of[line]].text.strip() for line in calls.column("line").tolist()]
        lines = dict(zip(kinds, texts, strict=True))
        assert lines["all_reduce"] == "dist.all_reduce(out)"
        assert lines["broadcast"] == "dist.broadcast(out, 0)"


def test_on_one_host_the_clocks_agree_and_planted_errors_are_found(summaries: list[RankSummary]) -> None:
    """The truth is 0; how long a loaded host keeps a thread from leaving a call is told as the residual."""
    plain = side_by_side(summaries).clocks
    for clock in plain:
        assert clock.offset_ns is not None
        assert abs(clock.offset_ns) <= max(4 * max(one.residual_ns for one in plain), MS)
    errors = [0, 7 * SECOND, -3 * SECOND + 123, 90_000 * SECOND]
    moved = side_by_side([_moved(one, errors[one.rank]) for one in summaries])
    for before, after, error in zip(plain, moved.clocks, errors, strict=True):
        assert (after.offset_ns or 0) == (before.offset_ns or 0) - error
        assert after.residual_ns == before.residual_ns
    assert moved.collectives == side_by_side(summaries).collectives


def _moved(one: RankSummary, error_ns: int) -> RankSummary:
    """The rank by a clock that is wrong by so much."""
    columns = {name: np.array(one.calls.column(name)) for name in CallColumns.__struct_fields__}
    for name in ("start_ns", "end_ns"):
        columns[name] += error_ns
    return msgspec.structs.replace(
        one, calls=CallColumns(**{name: np.ascontiguousarray(column).tobytes() for name, column in columns.items()})
    )
