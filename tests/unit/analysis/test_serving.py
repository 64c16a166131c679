"""The phases of a server of models: what their steps take, and how it divides by tokens."""

from __future__ import annotations

from pathlib import Path

from deepscope.records import Profile, ServingPhase
from deepscope.records.ranks import merge_profiles
from deepscope.report.json_report import report_object
from deepscope.report.text import text_report
from deepscope.store.load import load_profile
from trace_builder import TraceBuilder

OTHER = 99


def server(rank: int = 0) -> TraceBuilder:
    """Two prefills and three decodes; the device runs behind the CPU."""
    builder = TraceBuilder(distributedInfo={"rank": rank, "world_size": 2})
    builder.annotation("execute_context_2(300)_generation_0(0)", 0, 100).kernel("k", 10, 50, 400)
    builder.annotation("execute_context_1(100)_generation_0(0)", 1000, 100)  # on the CPU alone
    builder.annotation("execute_context_0(0)_generation_4(4)", 2000, 500)
    builder.annotation("step[DECODE bs=4]", 2010, 100).kernel("k", 2020, 2100, 3000)  # within it, and long
    builder.annotation("execute_context_0(0)_generation_4(4)", 3000, 100).kernel("k", 3010, 5100, 200)
    builder.annotation("execute_context_0(0)_generation_4(4)", 7000, 100).kernel("k", 7010, 7050, 150)
    builder.annotation("execute_context_9(9)_generation_0(0)", 0, 10, tid=OTHER)
    return builder.kernel("k", 8000, 8000, 500)  # in no step


def profile(builder: TraceBuilder, path: Path) -> Profile:
    return load_profile(builder.write(path), cache=False)


def test_a_step_lasts_until_its_work_is_done_or_the_next_one_starts(tmp_path: Path) -> None:
    decode, prefill = profile(server(), tmp_path / "a.json").serving
    assert decode == ServingPhase(
        phase="decode", steps=3, duration_ns=1000 + 2300 + 200, device_ns=3350, requests=12, tokens=12
    )
    assert prefill == ServingPhase(
        phase="prefill", steps=2, duration_ns=450 + 100, device_ns=400, requests=3, tokens=400
    )


def test_each_face_has_the_same_numbers(tmp_path: Path) -> None:
    found = profile(server(), tmp_path / "a.json")
    text = " ".join(text_report(found, width=200).split())
    assert "serving decode: 3 steps of 1.17µs, each with 4 requests and 4 tokens, 292ns a token" in text
    assert "prefill: 2 steps of 275ns, each with 1.5 requests and 200 tokens, 1.38ns a token" in text
    assert "phases" not in text  # forward and backward are words of training
    decode, prefill = report_object(found)["serving"]
    assert (decode["step_ns"], decode["tokens_a_step"], prefill["token_ns"]) == (3500 / 3, 4, 550 / 400)


def test_ranks_that_share_the_tokens_show_their_means(tmp_path: Path) -> None:
    ranks = [profile(server(rank), tmp_path / f"{rank}.json") for rank in range(2)]
    merged = merge_profiles(ranks)
    assert [row.steps for row in merged.serving] == [6, 4]
    one, both = report_object(ranks[0])["serving"], report_object(merged)["serving"]
    means = ("mean_steps", "step_ns", "device_step_ns", "requests_a_step", "tokens_a_step", "token_ns")
    assert [[row.get(key) for key in means] for row in both] == [[row.get(key) for key in means] for row in one]


def test_tokens_that_are_not_told_are_unknown(tmp_path: Path) -> None:
    builder = TraceBuilder().annotation("step[TARGET_VERIFY bs=4]", 0, 100)
    found = profile(builder, tmp_path / "a.json")
    assert report_object(found)["serving"][0]["token_ns"] is None
    assert "with 4 requests; how many tokens is not told" in " ".join(text_report(found, width=200).split())


def test_a_trace_without_such_names_shows_nothing_new(tmp_path: Path) -> None:
    found = profile(TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 20), tmp_path / "a.json")
    assert found.serving == []
    assert "serving" not in text_report(found)
