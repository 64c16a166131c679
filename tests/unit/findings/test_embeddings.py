"""DS040 and DS041: gradients of whole tables, and padded batches."""

from __future__ import annotations

from typing import Any

import pytest

from audited_traces import FILE, PLACES, US, found_in, recorded
from trace_builder import TraceBuilder


def stepped() -> TraceBuilder:
    """The same steps, in each of which SGD takes 50 µs."""
    builder = recorded(tables())
    for number in range(2):
        at = number * 1000 * US
        builder.line(FILE, 12, "main", at + 920 * US, 70 * US)
        builder.annotation("Optimizer.step#SGD.step", at + 930 * US, 55 * US)
        builder.op("aten::_foreach_add_", at + 932 * US, 50 * US)
    return builder


def tables(**changes: Any) -> dict[str, Any]:
    row = {"place": 0, "rows": 1000, "used_rows": 250, "elements": 800, "optimizer": "SGD", "stepped_elements": 1000}
    row |= {"operators": [[0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1]]}
    return {"places": PLACES, "tables": [row | changes]}


def test_of_a_table_the_part_that_was_not_looked_up_is_saved_in_its_gradient_and_in_its_optimizer(findings_of):
    (found,) = findings_of(stepped(), "DS040")
    assert found.evidence["gradient_ns"] == 2 * 240 * US
    assert found.evidence["optimizer_ns"] == 2 * 40 * US, "the table has 800 of the 1,000 elements that SGD steps"
    assert found.saving_ns == 0.75 * 2 * (240 + 40) * US
    assert found.line == 20
    (alone,) = findings_of(recorded(tables(optimizer="Adam")), "DS040")
    assert alone.saving_ns == 2 * (240 * US - 170_000 - 6 * 200), "less what sparse gradients of 200 elements take"


def test_tables_of_one_line_are_one_finding(findings_of):
    row = tables(used_rows=100)["tables"][0]
    (one,) = findings_of(recorded(tables(used_rows=100)), "DS040")
    (both,) = findings_of(recorded({"places": PLACES, "tables": [row, row]}), "DS040")
    assert both.saving_ns == 2 * one.saving_ns
    assert both.evidence["rows"] == 2 * one.evidence["rows"]
    assert both.message.startswith("of 2 tables with 2,000 rows a step looks 200 up here")


def test_what_becomes_of_the_results_is_told(findings_of):
    same = found_in(findings_of, tables(keeps_rows=True), "DS040")
    assert "the results are the same" in same.remedy.text
    other = found_in(findings_of, tables(optimizer="Adam", clipped=True), "DS040")
    assert "losses differ" in other.remedy.text
    assert "`clip_grad_norm_`" in other.remedy.text


@pytest.mark.parametrize("changes", [{"used_rows": 1000}, {"used_rows": 0}, {"used_rows": 980}, {"operators": []}])
def test_a_table_that_is_looked_up_as_a_whole_is_well_as_it_is(changes: dict[str, Any], findings_of):
    assert findings_of(recorded(tables(**changes)), "DS040") == []


@pytest.mark.parametrize(("longest", "is_measured"), [(30, True), (97, False)])
def test_padding_costs_its_part_of_the_work_on_all_positions(findings_of, longest: int, is_measured: bool):
    row = {"place": 0, "rows": 8, "length": 100, "positions": 800, "padded": 600, "longest": longest}
    row |= {"operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 1]]}
    row |= {"backward": [[0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1]]}
    found = found_in(findings_of, {"places": PLACES, "padding": [row]}, "DS041")
    assert found.evidence["work_ns"] == 2 * (150 + 240) * US
    assert found.saving_ns == int((0.7 if is_measured else 0.75) * 2 * 390 * US)  # behind the longest, or all
    assert found.is_measured is is_measured
    assert ("own longest sample" in found.remedy.text) is is_measured
    assert "75% of the positions" in found.message
    for little in ({"padded": 150}, {"padded": 0}, {"operators": [], "backward": []}):
        assert findings_of(recorded({"places": PLACES, "padding": [row | little]}), "DS041") == []
