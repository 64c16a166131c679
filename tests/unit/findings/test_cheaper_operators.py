"""DS047, a cheaper operator would do."""

from __future__ import annotations

from typing import Any

import pytest

from audited_traces import PLACES, found_in


def cheaper(kind: str, **changes: Any) -> dict[str, Any]:
    row = {"place": 0, "kind": kind, "name": "aten::mm", "shape": [8, 4], "times": 1, "needed": 0.25}
    row["operators"], row["backward"] = [[0, "aten::mm", 1, 1]], [[0, "aten::mm", 2, 2]]
    return {"places": PLACES, "cheaper": [row | changes]}


@pytest.mark.parametrize(
    ("kind", "message", "remedy"),
    [
        ("diagonal_matrices", "operators for full matrices go through diagonal ones ([8, 4])", "Independent(Normal"),
        ("classes", "a tensor ([8, 4]) is compared with one number after the other", "torch.bincount"),
        ("softmax_before", "a softmax normalises once more what is normalised here ([8, 4])", "`log_softmax(x / t)`"),
        ("softmax_again", "log_softmax of what are logarithms of probabilities already ([8, 4])", "`F.nll_loss"),
        ("log_softmax", "log_softmax is written out: 1 operators go through [8, 4]", "`torch.log_softmax(x, -1)`"),
    ],
)
def test_a_cheaper_operator_is_named_and_saves_the_rest_in_both_passes(
    findings_of, kind: str, message: str, remedy: str
):
    found = found_in(findings_of, cheaper(kind), "DS047")
    assert found.message.startswith(message)
    assert "train.py" not in found.message
    assert remedy in found.remedy.text
    assert found.saving_ns == found.evidence["work_ns"] * 3 // 4


def test_other_lines_that_make_diagonal_matrices_are_named_beside_the_first(findings_of):
    found = found_in(findings_of, cheaper("diagonal_matrices", others=[2]), "DS047")
    assert found.message.endswith("([8, 4]), as at train.py:21")


def test_a_layer_for_rows_that_repeat_saves_what_is_not_left(findings_of):
    row = {"place": 0, "kind": "repeated_rows", "name": "aten::addmm", "shape": [24000, 64], "times": 3, "needed": 0.25}
    row |= {"different": 1200, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0]]}
    row |= {"backward": [[0, "aten::mm", 2, 2]]}
    found = found_in(findings_of, {"places": PLACES, "cheaper": [row]}, "DS047")
    assert found.message == (
        "3 times a step a linear layer is applied to 24,000 rows that were gathered or expanded from 1,200"
    )
    assert found.saving_ns == pytest.approx(0.75 * found.evidence["work_ns"], abs=2)
    assert "F.linear(h, w1, layer.bias)[i]" in found.remedy.text
