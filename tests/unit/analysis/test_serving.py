"""The phases of a server of models: what their steps take, and how it divides by tokens."""

from __future__ import annotations

from pathlib import Path

from deepscope.quantities import time_text
from deepscope.ranks.rank_summary import summary_of
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import Profile, ServingPhase
from deepscope.records.ranks import merge_profiles
from deepscope.report.columns import thread_columns
from deepscope.report.findings import without_findings
from deepscope.report.json_csv import csv_report, report_object
from deepscope.report.ranks import ranks_text
from deepscope.report.run_verdict import run_verdict
from deepscope.report.text_report import text_report
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
    assert (
        "serving decode: 3 steps of 1.17µs (median 1µs, p95 2.17µs), each with 4 requests and 4 tokens, 292ns a token"
        in text
    )
    assert (
        "prefill: 2 steps of 275ns (median 275ns, p95 432ns), each with 1.5 requests and 200 tokens, 1.38ns a token"
        in text
    )
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
    assert "with 4 requests; how many tokens is not known" in " ".join(text_report(found, width=200).split())


def test_each_step_is_a_row_of_every_face(tmp_path: Path) -> None:
    found = profile(server(), tmp_path / "a.json")
    steps = report_object(found, by="step")
    assert steps["steps"] == []
    assert steps["counts"]["serving_steps"] == 5
    rows = [(row["number"], row["phase"], row["requests"], row["tokens"]) for row in steps["serving_steps"]]
    assert rows == [
        (0, "prefill", 2, 300),
        (1, "prefill", 1, 100),
        (2, "decode", 4, 4),
        (3, "decode", 4, 4),
        (4, "decode", 4, 4),
    ]
    third = steps["serving_steps"][2]
    assert (third["duration_ns"], third["busy_ns"], third["idle_ns"], third["device_ns"], third["token_ns"]) == (
        1000,
        900,
        100,
        3000,
        250,
    )
    assert csv_report(found, by="step") == csv_report(found, by="serving")
    text = " ".join(text_report(found, by="step", width=200).split())
    assert "2 decode 4 4 1µs 90.0% 3µs 250ns" in text
    assert "no steps marked" not in text
    assert "verdict The server decodes for 86.4% of its steps' time: 3 steps of 1.17µs, 292ns a token." in text


def test_the_phases_sum_up_the_steps(tmp_path: Path) -> None:
    found = merge_profiles([profile(server(rank), tmp_path / f"{rank}.json") for rank in range(2)])
    for phase in found.serving:
        steps = [step for step in found.serving_steps if step.phase == phase.phase]
        assert sum(step.ranks for step in steps) == phase.steps
        for key in ("duration_ns", "device_ns"):
            assert sum(getattr(step, key) for step in steps) == getattr(phase, key)


def test_ranks_with_requests_of_their_own_have_steps_of_their_own(tmp_path: Path) -> None:
    other = TraceBuilder(distributedInfo={"rank": 1, "world_size": 2})
    other.annotation("execute_context_0(0)_generation_7(7)", 0, 100).kernel("k", 10, 50, 40)
    merged = merge_profiles([profile(server(), tmp_path / "0.json"), profile(other, tmp_path / "1.json")])
    first = [(step.number, step.requests, step.ranks) for step in merged.serving_steps if step.number == 0]
    assert sorted(first) == [(0, 2, 1), (0, 7, 1)]


def test_steps_marked_by_the_profiler_come_before_the_servers(tmp_path: Path) -> None:
    found = profile(server().step(1, 0, 9000), tmp_path / "a.json")
    assert [row["number"] for row in report_object(found, by="step")["steps"]] == [1]
    assert len(report_object(found, by="serving")["serving_steps"]) == 5


def test_a_server_is_not_told_to_record_itself_as_a_training_program(tmp_path: Path) -> None:
    found = profile(server(), tmp_path / "a.json")
    assert "the server records them with stacks" in without_findings(found)
    assert "module" not in run_verdict(found).sentence  # a step is none
    columns = {column.key: column for column in thread_columns(found)}
    assert next(columns["role"].value(row) for row in found.threads) == "server"


def test_a_trace_without_such_names_shows_nothing_new(tmp_path: Path) -> None:
    found = profile(TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 20), tmp_path / "a.json")
    assert found.serving == found.serving_steps == []
    assert "serving" not in text_report(found)


def test_ranks_beside_each_other_count_the_steps_and_tell_times_in_all(tmp_path: Path) -> None:
    found = [profile(server(rank), tmp_path / f"{rank}.json") for rank in (0, 1)]
    text = ranks_text(side_by_side([summary_of(one) for one in found]), width=120)
    whole = time_text(found[0].totals.wall_ns)
    assert f"5 steps of a server a rank · {whole} in all" in " ".join(text.split())
