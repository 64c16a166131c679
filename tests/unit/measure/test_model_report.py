"""Tables of a model's counts, whatever its modules are called."""

from __future__ import annotations

import csv
import io
import json

import pytest

from deepscope.errors import OptionError
from deepscope.measure.counts import ModelCounts, ModuleNumbers, ModuleOperatorNumbers, OperatorNumbers, TotalNumbers
from deepscope.report.terminal import cell_len

NAME = '<img src=x onerror="alert(1)">\x1b[2J'
SUMS = {"calls": 3, "backward_flops": 10**9, "activation_bytes": 2**20, "moved_bytes": 2**21}


def counts(modules: int = 3) -> ModelCounts:
    return ModelCounts(
        model=NAME,
        with_backward=True,
        total=TotalNumbers(parameters=5, trainable_parameters=4, parameter_bytes=20, flops=3 * 10**9, **SUMS),
        by_operator=(OperatorNumbers(operator=f"=cmd::{NAME}", flops=3 * 10**9, **SUMS),),
        by_module=tuple(
            ModuleNumbers(
                path=f"{NAME}.layers.{place}" if place else "",
                class_name=NAME,
                parameters=5,
                self_parameters=2,
                flops=place * 10**6,
                self_flops=0,
                self_activation_bytes=0,
                **SUMS,
            )
            for place in range(modules)
        ),
        by_both=(ModuleOperatorNumbers(path="a" * 200, class_name="C", operator="aten::mm", flops=7, **SUMS),),
        without_formula={NAME: 2},
    )


@pytest.mark.parametrize("by", ["module", "operator", "both"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_fit_their_width_and_obey_no_name(by: str, width: int):
    text = counts().table(by, width=width)
    table = text.split("\n\n")[1].splitlines()
    assert max(map(cell_len, table)) <= width
    assert "\x1b" not in text
    assert r"\x1b" in text


def test_a_limit_keeps_the_rows_with_most_flops_in_their_order():
    text = counts(20).table("module", limit=3)
    shown = [line for line in text.splitlines() if "layers." in line]
    assert [line.split("layers.")[1].split()[0] for line in shown] == ["17", "18", "19"]
    assert "3 of 20 rows shown (-n 0 shows all)" in text


def test_html_holds_no_markup_of_a_name():
    html = counts()._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_json_and_csv_have_all_fields():
    told = json.loads(counts().to_json())
    assert told["total"]["flops"] == 3 * 10**9
    assert [len(told[f"by_{by}"]) for by in ("operator", "module", "both")] == [1, 3, 1]
    rows = list(csv.DictReader(io.StringIO(counts().to_csv("operator"))))
    assert rows[0]["operator"].startswith("'=cmd")
    assert rows[0]["flops"] == "3000000000"
    assert list(csv.DictReader(io.StringIO(counts().to_csv())))[1]["path"].endswith("layers.1")


def test_an_unknown_table_is_refused():
    with pytest.raises(OptionError, match="module, operator, both"):
        counts().table("kernel")


def test_it_prints_itself_in_eighty_columns():
    assert "layers.2" in str(counts())
    table = str(counts()).split("\n\n")[1].splitlines()
    assert max(map(cell_len, table)) <= 80
