"""The first page of a trace whose lines do not divide the time: what modules, operators and kernels cost."""

from pathlib import Path
from typing import Any

import pytest

from asking import Asking
from trace_builder import TraceBuilder

MS = 1_000_000


def recorded(*lines: tuple[int, int, int]) -> TraceBuilder:
    """Kernels `gemm` (30 ms) of `aten::mm` and `relu` (10 ms) of `aten::relu`, and lines from start to end."""
    trace = TraceBuilder().step(1, 0, 100 * MS)
    for line, start, end in lines:
        trace.line("/w/train.py", line, "main", start, end - start)
    trace.module("Linear", "net.first", 10 * MS, 10 * MS).op("aten::mm", 11 * MS, 2 * MS)
    trace.kernel("gemm", 12 * MS, 20 * MS, 30 * MS)
    trace.module("ReLU", "net.act", 30 * MS, 10 * MS).op("aten::relu", 31 * MS, 2 * MS)
    return trace.kernel("relu", 32 * MS, 60 * MS, 10 * MS)


def first_page(trace: TraceBuilder, folder: Path) -> Any:
    ask = Asking(trace.write(folder / "a.pt.trace.json"))
    try:
        return ask("overview")
    finally:
        ask.close()


def shown(page: Any) -> dict[str, list[tuple[str, int, float]]]:
    return {
        one["page"]: [(row["label"], row["timeNs"], row["timeNs"] / one["wholeNs"]) for row in one["rows"]]
        for one in page["work"]
    }


def test_without_lines_the_dearest_work_stands_there(tmp_path: Path) -> None:
    page = first_page(recorded(), tmp_path)
    assert page["lines"] == []
    assert shown(page) == {
        "modules": [("net.first (Linear)", 30 * MS, 0.75), ("net.act (ReLU)", 10 * MS, 0.25)],
        "operators": [("aten::mm", 30 * MS, 0.75), ("aten::relu", 10 * MS, 0.25)],
        "kernels": [("gemm", 30 * MS, 0.75), ("relu", 10 * MS, 0.25)],
    }
    assert "the module with most of the work is net.first (75.0 %)" in page["sentence"]


@pytest.mark.parametrize(
    ("lines", "is_shown"),
    [
        (((7, 0, 100 * MS),), True),  # `main()` calls the whole
        (((7, 0, 25 * MS), (8, 25 * MS, 100 * MS)), False),  # two lines share it
    ],
)
def test_beside_one_line_that_calls_the_whole_they_stand_too(tmp_path: Path, lines: Any, is_shown: bool) -> None:
    page = first_page(recorded(*lines), tmp_path)
    shares = [line["share"] for line in page["lines"]]
    assert (max(shares) > 0.7) == is_shown
    assert bool(page["work"]) == is_shown


def test_each_row_leads_to_its_row_in_the_table_of_its_page(tmp_path: Path) -> None:
    ask = Asking(recorded().write(tmp_path / "a.pt.trace.json"))
    try:
        for one in ask("overview")["work"]:
            keys = ask(one["page"], **({"folded": "true"} if one["page"] == "modules" else {}))["table"]["keys"]
            assert {row["key"] for row in one["rows"]} <= set(keys)
    finally:
        ask.close()
