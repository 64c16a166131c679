"""The word for a cost: each cause from half on, and why there may be none."""

from __future__ import annotations

import pytest

from deepscope.analysis.verdict import Reason, judge, judgement, limit_of
from deepscope.records import Peaks, Rate, Why
from deepscope.records.merging import RankRecords, merge

PEAKS = Peaks(name="P", flops_per_s={"float32": 10e12, "bfloat16": 100e12}, memory_bytes_per_s=1e12, source="test")
MS = 1_000_000


def compute(ms: int) -> Rate:
    return Rate("bfloat16", 8, ms * MS, 400 * 10**9, 10**9)


def memory(ms: int) -> Rate:
    return Rate("", 0, ms * MS, 0, 10**9)


@pytest.mark.parametrize(
    ("rate", "word", "best_ms"),
    [
        (Rate("bfloat16", 7, MS, 200 * 10**9, 10**9), "compute-bound", 2.0),
        (Rate("bfloat16", 6, MS, 99 * 10**9, 10**9), "memory-bound", 1.0),
        (Rate("bfloat16", 6, MS, 100 * 10**9, 10**9), "compute-bound", 1.0),
        (Rate("float32", 3, MS, 20 * 10**9, 10**9), "compute-bound", 2.0),
        (Rate("", 0, MS, 0, 3 * 10**9), "memory-bound", 3.0),
        (Rate("float64", 9, MS, 10**12, 10**9), "", 0.0),
    ],
)
def test_the_lower_roof_limits(rate, word, best_ms):
    found, best_ns = limit_of(rate, PEAKS)
    assert (found, best_ns) == (word, pytest.approx(best_ms * MS))


@pytest.mark.parametrize(
    ("why", "word", "share"),
    [
        (Why(rates=[compute(6), memory(4)]), "compute-bound", 0.6),
        (Why(rates=[compute(4), memory(6)]), "memory-bound", 0.6),
        (Why(rates=[compute(4)], short_ns=3 * MS, launch_ns=2 * MS, host_ns=MS), "launch-bound", 0.6),
        (Why(rates=[compute(4)], short_ns=MS, launch_ns=MS, host_ns=4 * MS), "host-bound", 0.6),
        (Why(rates=[compute(4)], waiting_ns=6 * MS), "waiting", 0.6),
        (Why(rates=[compute(4)], data_ns=3 * MS, copies_ns=3 * MS), "data", 0.6),
        (Why(rates=[compute(4)], communication_ns=6 * MS), "communication", 0.6),
        (Why(rates=[compute(4), memory(4)], waiting_ns=2 * MS), "mixed", 0.4),
        (Why(rates=[compute(5)], waiting_ns=5 * MS), "compute-bound", 0.5),
        (Why(rates=[compute(4)], hidden_ns=90 * MS, unknown_ns=MS), "compute-bound", 0.8),
    ],
)
def test_the_cause_of_half_the_cost_gives_the_word(why, word, share):
    found = judgement(why, PEAKS)
    assert (found.word, found.share, found.reason) == (word, pytest.approx(share), "")


@pytest.mark.parametrize(
    ("why", "peaks", "reason"),
    [
        (Why(), PEAKS, Reason.NO_COST),
        (Why(hidden_ns=MS), PEAKS, Reason.NO_COST),
        (Why(rates=[compute(4)], unknown_ns=6 * MS), PEAKS, Reason.NO_BYTES),
        (Why(rates=[compute(4)]), None, Reason.NO_PEAKS),
        (Why(rates=[Rate("float64", 8, MS, 10**9, 10**6)]), PEAKS, Reason.NO_PEAKS),
    ],
)
def test_there_is_no_word_without_knowledge_and_it_says_why(why, peaks, reason):
    found = judgement(why, peaks)
    assert (found.word, found.reason) == ("", reason)


def test_causes_on_the_cpus_side_need_no_peaks():
    assert judgement(Why(rates=[compute(4)], host_ns=6 * MS), None).word == "host-bound"


def test_a_line_that_waits_longer_than_it_costs_is_waiting():
    why = Why(rates=[compute(4)])
    assert judgement(why, PEAKS, wait_ns=4 * MS).word == "compute-bound"
    assert judgement(why, PEAKS, wait_ns=4 * MS + 1).word == "waiting"
    assert judgement(Why(), None, wait_ns=1).word == "waiting"


def test_the_word_of_merged_ranks_is_that_of_the_sums():
    one, other = Why(rates=[memory(4), compute(1)], host_ns=MS), Why(rates=[compute(9)], kernels=3)
    merged = merge(RankRecords([one, other], [0, 1], [0, 1]))
    assert merged.rates == [memory(4), Rate("bfloat16", 8, 10 * MS, 800 * 10**9, 2 * 10**9)]
    assert (merged.host_ns, merged.kernels) == (MS, 3)
    assert [judgement(why, PEAKS).word for why in (one, other, merged)] == [
        "memory-bound", "compute-bound", "compute-bound",
    ]  # fmt: skip


def test_a_profile_is_judged_anew_by_other_peaks(profile_of):
    from trace_builder import TraceBuilder

    builder = TraceBuilder().line("/a.py", 3, "main", 0, 1000)
    builder.op("aten::mm", 100, 500, dims=[[512, 512], [512, 512]], **{"Input type": ["float", "float"]})
    profile = profile_of(builder.kernel("sgemm", 200, 1000, 100_000))
    assert [line.verdict for line in profile.lines] == [""]
    judge(profile, PEAKS)
    assert (profile.lines[0].verdict, profile.peaks) == ("compute-bound", PEAKS)
    assert [one.verdict for one in profile.operators] == ["compute-bound"]
    judge(profile, Peaks(name="Q", flops_per_s={"float32": 1e18}, memory_bytes_per_s=1e9, source="test"))
    assert profile.lines[0].verdict == "memory-bound"
    judge(profile, None)
    assert (profile.lines[0].verdict, profile.peaks) == ("", None)
