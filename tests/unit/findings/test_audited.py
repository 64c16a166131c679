"""DS033, DS036, DS038, DS042 to DS044, and what holds for all findings of an audit."""

from __future__ import annotations

from typing import Any

import pytest

from audited_traces import FILE, PLACES, US, found_in, partly, recorded


def gradients(*operators: list[Any], **changes: Any) -> dict[str, Any]:
    row = {"place": 0, "backward": 1, "fate": "no_optimizer", "parameters": 4, "elements": 99, "modules": ["net"]}
    return {"places": PLACES, "gradients": [row | changes | {"operators": list(operators)}]}


def test_all_backward_work_of_a_line_is_saved_where_all_of_it_is_for_unused_gradients(findings_of):
    found = found_in(findings_of, gradients([0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1], whole=True))
    assert (found.file, found.line) == (FILE, 20)
    assert found.saving_ns == found.evidence["unused_ns"] == 2 * 240 * US
    assert "train.py:11 computes gradients of 4 parameters (net) that no optimizer steps" in found.message
    assert "requires_grad_(False)" in found.remedy.text
    assert "torch.no_grad()" in found.remedy.text


def test_where_half_of_a_lines_products_are_needed_their_half_is_saved(findings_of):
    found = found_in(findings_of, gradients([0, "aten::mm", 2, 1], [0, "aten::threshold_backward", 1, 0]))
    # The products take 198 of the 236 µs in operators; what is between operators is shared out as these are.
    assert found.saving_ns == pytest.approx(2 * 240 * US * 99 / 236, abs=2)


def test_cleared_gradients_ask_for_a_cut_and_clipped_ones_say_so(findings_of):
    whole = found_in(findings_of, gradients([0, "aten::mm", 2, 2], fate="cleared", whole=True, clipped=True))
    assert "cleared before their optimizer steps" in whole.message
    assert ".detach()" in whole.remedy.text
    assert "no_grad" in whole.remedy.text
    shared = found_in(findings_of, gradients([0, "aten::mm", 2, 2], fate="cleared", whole=True, shared=True))
    assert ".detach()" in shared.remedy.text
    assert "no_grad" not in shared.remedy.text
    assert "clips less" in whole.remedy.text
    passed = found_in(findings_of, gradients([0, "aten::mm", 2, 1], fate="cleared"))
    assert "requires_grad_(False)" in passed.remedy.text
    assert ".detach()" not in passed.remedy.text


def test_a_single_step_has_its_part(findings_of):
    audit = gradients([0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1])
    (found,) = findings_of(recorded(audit), "DS033", step=1)
    assert found.saving_ns == 240 * US


@pytest.mark.parametrize(
    "operators",
    [
        [[0, "aten::mm", 2, 0]],
        [[0, "aten::softmax", 2, 2]],  # it did not run in the recorded steps
        [[4, "aten::mm", 2, 2]],  # a place that the trace does not have
        [[77, "aten::mm", 2, 2]],
        [[0, "aten::mm", 0, 9]],
    ],
)
def test_what_the_recorded_steps_do_not_have_promises_nothing(operators: list[Any], findings_of):
    assert findings_of(recorded(gradients(*operators)), "DS033") == []


def test_no_share_is_more_than_the_whole(findings_of):
    found = found_in(findings_of, gradients([0, "aten::mm", 2, 50], [0, "aten::threshold_backward", 1, 1]))
    assert found.saving_ns == 2 * 240 * US


def test_a_later_format_is_not_understood(findings_of):
    audit = gradients([0, "aten::mm", 2, 2]) | {"format": 2}
    assert findings_of(recorded(audit), "DS033") == []


def test_half_of_the_time_of_work_with_64_bits_is_saved_where_it_begins(findings_of):
    work = {"place": 2, "lines": 2, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0]]}
    work["backward"] = [[0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 0]]
    found = found_in(findings_of, {"places": PLACES, "double": [work]}, "DS036")
    backward_us = 240 * 198 / 236
    assert found.evidence["double_ns"] == pytest.approx(2 * (100 + backward_us) * US, abs=2)
    assert found.saving_ns == found.evidence["double_ns"] // 2
    assert (found.line, found.evidence["operators_per_step"]) == (21, 3)
    assert found.message.endswith("begins here and goes on at 1 more line")
    nothing = work | {"operators": [], "backward": []}
    assert findings_of(recorded({"places": PLACES, "double": [nothing]}), "DS036") == []


def test_a_graph_without_a_backward_pass_costs_a_tenth_of_its_work(findings_of):
    row = {"place": 0, "result_bytes": 2**20, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 1]]}
    found = found_in(findings_of, {"places": PLACES, "graphs": [row]}, "DS038")
    assert found.evidence["forward_ns"] == 2 * 150 * US
    assert found.saving_ns == 2 * 15 * US
    assert "up to 1MiB of results" in found.message
    assert findings_of(recorded({"places": PLACES, "graphs": [row | {"operators": []}]}), "DS038") == []


def test_pairs_that_are_read_in_part_and_summed_up_are_claimed_once(findings_of):
    pairs = {"place": 0, "name": "aten::sub", "reduction": "aten::sum", "shape": [64, 64], "given_elements": 64}
    pairs |= {"reduced_elements": 64, "result_bytes": 64, "operators": [[0, "aten::mm", 1, 1]]}
    assert len(findings_of(recorded({"places": PLACES, "broadcasts": [pairs]}), "DS043")) == 1
    assert findings_of(recorded(partly() | {"broadcasts": [pairs]}), "DS043") == []


def test_graphs_that_are_kept_promise_no_time(findings_of):
    found = found_in(
        findings_of, {"places": PLACES, "kept": [{"place": 0, "results": 1, "name": "aten::add"}]}, "DS042"
    )
    assert (found.line, found.saving_ns, found.severity) == (20, 0, "info")
    assert found.message.startswith("what is computed here is kept beyond the step")
    many = found_in(findings_of, {"places": PLACES, "kept": [{"place": 0, "results": 1200}]}, "DS042")
    assert many.message.startswith("1,200 results of this line are kept")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("sub", "torch.cdist"), ("mul", "einsum"), ("eq", "isin"), ("lt", "searchsorted"), ("add", "pieces")],
)
def test_work_on_a_large_tensor_is_saved_and_has_a_remedy_by_its_operator(findings_of, name: str, remedy: str):
    row = {"place": 0, "name": f"aten::{name}", "reduction": "aten::sum", "shape": [4, 5, 6], "result_bytes": 2048}
    row |= {"operators": [[0, "aten::mm", 1, 1]], "backward": [[0, "aten::mm", 2, 2]]}
    found = found_in(findings_of, {"places": PLACES, "broadcasts": [row]}, "DS043")
    backward_us = 240 * 198 / 198
    assert found.saving_ns == pytest.approx(2 * (150 + backward_us) * US, rel=0.4)
    assert found.message == f"{name} broadcasts to a tensor of [4, 5, 6], 2KiB, which sum makes small again"
    assert remedy in found.remedy.text
    part = found_in(findings_of, {"places": PLACES, "broadcasts": [row | {"reduced_elements": 30}]}, "DS043")
    assert part.saving_ns == pytest.approx(0.75 * found.saving_ns, rel=1e-3)


def test_a_one_hot_tensor_that_is_multiplied_is_a_look_up(findings_of):
    row = {"place": 0, "name": "aten::scatter_", "reduction": "aten::mm", "shape": [4, 5, 6], "given_elements": 20}
    row |= {"operators": [[0, "aten::mm", 1, 1]]}
    found = found_in(findings_of, {"places": PLACES, "broadcasts": [row]}, "DS043")
    assert found.message == "a tensor of [4, 5, 6], 0B, has a one for each of 20 numbers, for mm"
    assert "`F.embedding(ids, matrix)`" in found.remedy.text


@pytest.mark.parametrize(
    ("changes", "said", "remedy"),
    [
        ({"need": "none"}, "a copy is made here (clone of [4, 5], 2KiB a step) and only read", "`.detach()`"),
        ({"need": "layout", "reader": "aten::mm"}, "for a layout that mm does not need", "`.contiguous()`"),
        (
            {"need": "layout", "reader": "aten::_scaled_dot_product_flash_attention"},
            "for a layout that scaled_dot_product_attention does not need",
            "`.contiguous()`",
        ),
        ({"need": "layout", "name": "aten::repeat", "reader": "aten::add"}, "(repeat of [4, 5]", "broadcasting"),
        ({"need": "once", "name": "aten::_to_copy", "times": 1200}, "1,200 copies are made here (to of [4, 5]", "once"),
        ({"need": "none", "name": "aten::copy_"}, "a copy is made here (deepcopy, 2KiB a step)", "`.detach()`"),
    ],
)
def test_a_needless_copy_saves_its_time_and_says_what_to_read(
    findings_of, changes: dict[str, Any], said: str, remedy: str
):
    row = {"place": 0, "name": "aten::clone", "shape": [4, 5], "times": 1, "result_bytes": 2048}
    row |= {"operators": [[0, "aten::mm", 1, 0], [0, "aten::relu", 2, 1]], **changes}
    found = found_in(findings_of, {"places": PLACES, "copies": [row]}, "DS044")
    assert found.saving_ns == found.evidence["copying_ns"] == 2 * 25 * US
    assert said in found.message
    assert remedy in found.remedy.text
    little = row | {"operators": [[0, "aten::mm", 1, 0]]}
    assert findings_of(recorded({"places": PLACES, "copies": [little]}), "DS044") == []
