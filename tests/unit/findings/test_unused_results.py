"""DS037, results that nobody uses."""

from __future__ import annotations

import pytest

from audited_traces import PLACES, US, found_in, partly, recorded
from trace_builder import MAIN


def test_results_that_nobody_uses_save_their_part_of_the_lines_work(findings_of):
    row = {"place": 0, "whole": True, "result_bytes": 64}
    row["operators"] = [[0, "aten::mm", 1, 1], [0, "aten::relu", 2, 1]]
    found = found_in(findings_of, {"places": PLACES, "results": [row]}, "DS037")
    assert found.saving_ns == found.evidence["unused_ns"] == 2 * (100 + 25) * US
    assert found.message == "nothing that is computed here is used in the steps that were looked at: mm, relu"
    part = row | {"whole": False, "module": "MultiheadAttention"}
    said = found_in(findings_of, {"places": PLACES, "results": [part]}, "DS037")
    assert said.message.startswith("some of what is computed here is not used")
    assert "`need_weights=False`" in said.remedy.text
    little = row | {"operators": [[0, "aten::mm", 10, 1]]}
    assert findings_of(recorded({"places": PLACES, "results": [little]}), "DS037") == []


def test_what_a_trainer_computes_for_nobody_cannot_be_left_out(findings_of):
    row = {"place": 0, "whole": False, "result_bytes": 64, "operators": [[0, "aten::mm", 1, 1]]}
    builder = recorded({"places": PLACES, "results": [row]})
    for number in range(2):
        builder.annotation("Optimizer.step#AdamW.step", (number * 1000 + 12) * US, 5 * US)
    assert findings_of(builder, "DS037") == []
    builder = recorded({"places": PLACES, "results": [row | {"module": "Net"}]})
    for number in range(2):
        builder.annotation("Optimizer.step#AdamW.step", (number * 1000 + 12) * US, 5 * US)
    assert len(findings_of(builder, "DS037")) == 1


def test_of_a_result_that_is_partly_read_the_other_rows_are_saved_in_both_passes(findings_of):
    found = found_in(findings_of, partly(), "DS037")
    # Of five operators 5 µs each are their calls', and autograd's own 2 and 4 µs as well.
    assert found.evidence["work_ns"] == 2 * (100 + 234 - 4 * 5) * US + 2 * 2 * US
    assert found.saving_ns == found.evidence["work_ns"] * 3 // 4
    assert found.message == "only 192 of 768 positions that are computed here are read later: mm"
    assert "first before train.py:21: `head(x[:, -1])`" in found.remedy.text
    assert "before train.py" not in found_in(findings_of, partly(first=0), "DS037").remedy.text


def test_a_loop_that_reads_numbers_one_by_one_calls_as_many_operators_for_fewer_rows(findings_of):
    builder = recorded(partly(backward=[[2, "aten::select_backward", 90, 90], [0, "aten::mm", 2, 2]]))
    without = recorded(partly(backward=[[0, "aten::mm", 2, 2]]))
    for number in range(2):
        for turn in range(9):
            at = (number * 1000 + 810 + 9 * turn) * US
            builder.backward("SelectBackward0", at, 8 * US, 7, tid=MAIN).op("aten::select_backward", at + US, 5 * US)
    ((one,), (other,)) = findings_of(builder, "DS037"), findings_of(without, "DS037")
    assert one.saving_ns == other.saving_ns


def test_positions_that_a_loss_leaves_out_are_named_by_their_label(findings_of):
    remedy = found_in(findings_of, partly(ignored=-100), "DS037").remedy.text
    assert remedy.endswith(
        "first before train.py:21: `keep = labels != -100`, then `head(hidden[keep])` for the loss of `labels[keep]`."
    )
    some = found_in(findings_of, partly(ignored=0, whole=False, operators=[[0, "aten::mm", 2, 1]]), "DS037").remedy.text
    assert some.startswith("The loss leaves targets of 0 out.")
    assert "`logits_to_keep` in transformers" in some


def test_where_only_some_calls_compute_too_much_a_finding_is_worth_more_and_says_so(findings_of):
    some = partly(whole=False, operators=[[0, "aten::mm", 2, 1]])
    found = found_in(findings_of, some, "DS037")
    assert found.message.startswith("in 1 of 2 operators here only 192 of 768 positions")
    assert "`logits_to_keep` in transformers" in found.remedy.text
    # 28.5 of 1,000 µs in a step.
    assert found_in(findings_of, partly(read_rows=768 * 7 // 10, backward=[]), "DS037").saving_ns == pytest.approx(
        57 * US, rel=0.01
    )
    assert findings_of(recorded(partly(read_rows=768 * 7 // 10, backward=[], whole=False)), "DS037") == []


def test_more_rows_read_than_there_are_save_nothing(findings_of):
    assert findings_of(recorded(partly(read_rows=800)), "DS037") == []


def test_positions_that_are_padding_and_not_read_are_claimed_once(findings_of):
    row = {"place": 0, "rows": 8, "length": 100, "positions": 800, "padded": 600, "longest": 30}
    row |= {"operators": [[0, "aten::mm", 1, 1]], "backward": [[0, "aten::mm", 2, 2]]}
    alone = found_in(findings_of, partly(), "DS037")
    found = found_in(findings_of, partly() | {"padding": [row]}, "DS037")
    assert found.saving_ns == pytest.approx(0.3 * alone.saving_ns, abs=2)


def test_derivatives_that_nobody_uses_save_their_backward_work(findings_of):
    row = {"place": 0, "derivatives": 5, "all_derivatives": 9, "backward": [[0, "aten::mm", 2, 1, 0.5]]}
    found = found_in(findings_of, {"places": PLACES, "results": [row]}, "DS037")
    assert found.saving_ns == pytest.approx(2 * 240 * US / 2, rel=0.01)
    assert found.message.startswith("5 of 9 derivatives that are taken here are not used")
    assert "torch.autograd.grad" in found.remedy.text


def test_what_is_read_as_numbers_is_a_bound_and_a_loop_over_them_is_claimed_once(findings_of):
    row = {"place": 0, "whole": True, "is_number": True, "operators": [[0, "aten::mm", 1, 1]]}
    found = found_in(findings_of, {"places": PLACES, "results": [row]}, "DS037")
    assert "is read as numbers" in found.message
    assert "every N steps" in found.remedy.text
    assert not found.is_measured


def test_a_last_state_that_a_layer_returns_unasked_is_no_mistake(findings_of):
    row = {"place": 0, "module": "GRU", "operators": [[0, "aten::mm", 1, 1]]}
    assert findings_of(recorded({"places": PLACES, "results": [row]}), "DS037") == []
    assert found_in(findings_of, {"places": PLACES, "results": [row | {"whole": True}]}, "DS037")
