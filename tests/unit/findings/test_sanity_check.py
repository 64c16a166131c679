"""DS025, the sanity check in a short run."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
MS = 1_000_000


def fit(trainer: dict[str, Any], steps: dict[str, Any] | None = None) -> TraceBuilder:
    """Two steps of 10 ms within `trainer.fit`, line 9."""
    steps = {"plain_steps": {"steps": 5, "wall": {"mean_ns": 10 * MS}}} if steps is None else steps
    builder = TraceBuilder(deepscope={"settings": {"trainer": trainer}, **steps})
    builder.line(FILE, 9, "main", 0, 30 * MS)
    for number in range(2):
        at = (1 + 10 * number) * MS
        builder.step(number, at, 10 * MS).annotation("[pl][profile]run_training_batch", at + MS, 8 * MS)
        builder.op("aten::mm", at + 2 * MS, 5 * MS)
    return builder


CHECKED = {"sanity_check_ns": 150 * MS, "planned_batches": 60, "num_sanity_val_steps": 2}


def test_a_check_that_takes_a_part_of_the_run_is_told_at_the_line_of_fit(findings_of):
    (found,) = findings_of(fit(CHECKED), "DS025")
    assert (found.file, found.line) == (FILE, 9)
    assert found.evidence == {
        "sanity_check_ns": 150 * MS,
        "training_ns": 600 * MS,
        "training_steps": 60,
        "sanity_check_ratio": 0.2,
    }
    assert "15 of the run's 60 training steps" in found.message
    assert "num_sanity_val_steps=0" in found.remedy.text
    assert found.severity == "info"


def test_it_promises_no_time_of_the_window(findings_of):
    assert findings_of(fit(CHECKED), "DS025")[0].saving_ns == 0


def test_the_recorded_steps_tell_how_long_steps_take_where_no_plain_ones_do(findings_of):
    (found,) = findings_of(fit(CHECKED, {"recorded_steps": {"steps": 2, "wall": {"mean_ns": 20 * MS}}}), "DS025")
    assert found.evidence["training_ns"] == 1200 * MS
    assert found.severity == "hint"


@pytest.mark.parametrize(
    "trainer",
    [
        {},
        CHECKED | {"planned_batches": 600},
        CHECKED | {"planned_batches": 0},
        CHECKED | {"sanity_check_ns": 0},
        CHECKED | {"sanity_check_ns": True},
        CHECKED | {"sanity_check_ns": "long"},
        CHECKED | {"sanity_check_ns": -1},
        CHECKED | {"sanity_check_ns": 1e300},
        CHECKED | {"planned_batches": 1 << 60},
    ],
)
def test_in_a_long_run_or_one_of_unknown_length_it_does_not_matter(findings_of, trainer):
    assert findings_of(fit(trainer), "DS025") == []


def test_without_known_steps_nothing_is_compared(findings_of):
    assert findings_of(fit(CHECKED, {}), "DS025") == []


def test_a_single_step_is_no_run(findings_of):
    assert findings_of(fit(CHECKED), "DS025", step=1) == []
