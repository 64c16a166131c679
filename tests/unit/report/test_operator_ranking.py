"""Operators and their kinds over their calls (`--aggregate`), in sums, means and maxima worked out by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis.build import build_profile
from deepscope.errors import OptionError
from deepscope.records import Profile
from deepscope.report.filters import Filters
from deepscope.report.operator_ranking import (
    AGGREGATES,
    ORDERS,
    RankedRow,
    RankingQuery,
    ranking,
    ranking_csv,
    ranking_json,
    ranking_text,
)
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

SMALL, LARGE = [[4, 8], [8, 2]], [[64, 32], [32, 16]]


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    """Two products, one of them large, an addition in a linear layer of its own, and a copy: times in microseconds."""
    us = 1000
    types = {"Input type": ["float", "float"]}
    built = TraceBuilder()
    built.op("aten::linear", 0, 100 * us, dims=LARGE)
    built.op("aten::mm", 10 * us, 50 * us, dims=LARGE, **types).kernel("gemm", 20 * us, 200 * us, 80 * us)
    built.op("aten::add", 70 * us, 20 * us, dims=[[64, 16], [16]]).kernel("add", 75 * us, 280 * us, 10 * us)
    built.op("aten::mm", 110 * us, 30 * us, dims=SMALL, **types).kernel("gemm", 120 * us, 300 * us, 20 * us)
    built.op("aten::copy_", 150 * us, 10 * us, dims=[[4], [4]]).kernel("copy", 155 * us, 330 * us, 1 * us)
    return build_profile(read_trace(built.write(tmp_path / "t.json")), details=("shapes",))


def rows(profile: Profile, **question: Any) -> dict[str, RankedRow]:
    return {row.name: row for row in ranking(profile, RankingQuery(**question)).rows}


def test_sums_stand_by_self_device_time(profile: Profile) -> None:
    found = ranking(profile, RankingQuery()).rows
    assert [row.name for row in found] == ["aten::mm", "aten::add", "aten::copy_", "aten::linear"]
    product = found[0]
    assert (product.calls, product.self_device_ns, product.self_cpu_ns) == (2, 100_000, 80_000)
    assert product.flops == 2 * 64 * 32 * 16 + 2 * 4 * 8 * 2
    assert product.moved_bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16) + 4 * (4 * 8 + 8 * 2 + 4 * 2)
    assert product.flops_per_s == pytest.approx(product.flops / 100e-6)
    assert product.in_shapes == LARGE
    assert product.out_shapes == [[64, 16]]
    assert product.shapes == 2
    assert product.type == "matmul"
    assert [row.cumulative_share for row in found] == pytest.approx([100 / 111, 110 / 111, 1, 1])
    linear = found[-1]
    assert (linear.self_device_ns, linear.total_device_ns, linear.total_cpu_ns) == (0, 90_000, 100_000)


def test_means_and_maxima_are_of_single_calls(profile: Profile) -> None:
    mean, largest = (rows(profile, aggregate=one)["aten::mm"] for one in ("mean", "max"))
    assert (mean.self_device_ns, mean.self_cpu_ns, mean.calls) == (50_000, 40_000, 2)
    assert (largest.self_device_ns, largest.self_cpu_ns, largest.flops) == (80_000, 50_000, 2 * 64 * 32 * 16)
    assert mean.share == largest.share == pytest.approx(100 / 111)


def test_a_type_has_each_nanosecond_of_its_total_once(profile: Profile) -> None:
    found = rows(profile, by="type")
    matmul = found["matmul"]
    assert (matmul.calls, matmul.operators) == (3, 2)
    assert (matmul.self_device_ns, matmul.total_device_ns) == (100_000, 110_000)
    assert matmul.total_cpu_ns == 130_000
    assert matmul.in_shapes is None
    assert set(found) == {"matmul", "elementwise", "copy"}
    assert sum(row.share for row in found.values()) == pytest.approx(1)


def test_calls_are_a_key_like_any_other(profile: Profile) -> None:
    assert next(iter(rows(profile, sort="calls"))) == "aten::mm"
    assert next(iter(rows(profile, by="type", sort="calls"))) == "matmul"


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_is_from_large_to_small(profile: Profile, order: str) -> None:
    values = [getattr(row, ORDERS[order]) for row in rows(profile, sort=order).values()]
    assert values == sorted(values, reverse=order != "name")


def test_rows_are_chosen_by_type_name_and_time(profile: Profile) -> None:
    assert set(rows(profile, filters=Filters(include=("matmul",)))) == {"aten::mm", "aten::linear"}
    assert set(rows(profile, filters=Filters(min_ns=10_000))) == {"aten::mm", "aten::add"}
    assert set(rows(profile, sort="cpu", filters=Filters(min_ns=25_000))) == {"aten::mm", "aten::linear"}
    assert set(rows(profile, filters=Filters(include=("add", "copy_"), exclude=("aten::copy_",)))) == {"aten::add"}
    assert set(rows(profile, by="type", filters=Filters(exclude=("matmul",)))) == {"elementwise", "copy"}


def test_a_wrong_word_names_those_there_are() -> None:
    with pytest.raises(
        OptionError, match="no such key for the table by operator with --aggregate; there are: self, to"
    ):
        RankingQuery(sort="size").check()


@pytest.mark.parametrize("by", ["operator", "type"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_text_json_and_csv_have_the_same_rows(profile: Profile, by: Any, aggregate: Any) -> None:
    question = RankingQuery(by=by, aggregate=aggregate)
    found = ranking(profile, question)
    text = ranking_text(profile, found, question, limit=2, width=160)
    report = json.loads(ranking_json(profile, found, question, limit=2))
    table = list(csv.DictReader(io.StringIO(ranking_csv(found, limit=2))))
    names = [row.name for row in found.rows[:2]]
    assert [row["name"] for row in report["rows"]] == [row["name"] for row in table] == names
    assert all(name in text for name in names)
    assert f"2 of {len(found.rows)} rows shown (-n 0 shows all)" in text
    assert report["of"] == len(found.rows)
    narrow = ranking_text(profile, found, question, limit=0, width=60).partition("\n\n")[2]
    assert all(len(line) <= 60 for line in narrow.splitlines())


def test_every_key_of_a_row_is_documented(repository: Path) -> None:
    text = (repository / "docs" / "report.md").read_text(encoding="utf-8").partition("## Operators over their calls")[2]
    assert [name for name in RankedRow.__struct_fields__ if f"`{name}`" not in text] == []


def test_a_trace_without_operators_has_no_rows_and_says_so(tmp_path: Path) -> None:
    profile = build_profile(read_trace(TraceBuilder().write(tmp_path / "empty.json")), details=("shapes",))
    found = ranking(profile, RankingQuery())
    assert found.rows == []
    assert "no operators in this trace" in ranking_text(profile, found, RankingQuery(), limit=5, width=80)
