"""DS033 to DS044: what was found in steps that were looked at, with the times of those that were recorded."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.records import Finding
from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def recorded(audit: dict[str, Any], **header: Any) -> TraceBuilder:
    """Two steps of a millisecond. Line 10 calls lines 20 and 21, and line 11 differentiates: 240 µs for line 20, two
    products and a threshold, and 60 µs for line 21."""
    builder = TraceBuilder(deepscope={"audit": {"format": 1, "steps": 2, "operators": 9, **audit}, **header})
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 10, "main", at, 400 * US)
        builder.line(FILE, 20, "forward", at + 10 * US, 180 * US)
        builder.op("aten::mm", at + 20 * US, 100 * US, sequence=5)
        builder.op("aten::relu", at + 130 * US, 50 * US, sequence=6)
        builder.line(FILE, 21, "forward", at + 200 * US, 190 * US)
        builder.op("aten::mul", at + 210 * US, 150 * US, sequence=7)
        builder.line(FILE, 11, "main", at + 400 * US, 500 * US)
        builder.backward("MulBackward0", at + 410 * US, 60 * US, 7, tid=MAIN)
        builder.op("aten::mul", at + 411 * US, 58 * US)
        builder.backward("ReluBackward0", at + 480 * US, 40 * US, 6, tid=MAIN)
        builder.op("aten::threshold_backward", at + 481 * US, 38 * US)
        builder.backward("MmBackward0", at + 530 * US, 200 * US, 5, tid=MAIN)
        builder.op("aten::mm", at + 531 * US, 99 * US).op("aten::mm", at + 630 * US, 99 * US)
    return builder


PLACES = [[0, 20, "forward"], [0, 11, "main"], [0, 21, "forward"], [0, 10, "main"], [7, 99, "elsewhere"]]


def gradients(*operators: list[Any], **changes: Any) -> dict[str, Any]:
    row = {"place": 0, "backward": 1, "fate": "no_optimizer", "parameters": 4, "elements": 99, "modules": ["net"]}
    return {"places": PLACES, "gradients": [row | changes | {"operators": list(operators)}]}


def found_in(findings_of: Any, audit: dict[str, Any], code: str = "DS033") -> Finding:
    (found,) = findings_of(recorded(audit), code)
    return found


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


def of_batch(share: float = 1.0, **header: Any) -> TraceBuilder:
    """A frozen encoder's product at line 20, called on the batch."""
    row = {"place": 0, "of_batch": True, "result_bytes": 9000, "stored_bytes": 4096}
    row["operators"] = [[0, "aten::mm", 1, 1, share], [0, "aten::relu", 1, 0]]
    return recorded({"places": PLACES, "same": [row]}, **header)


def test_what_each_epoch_computes_of_the_same_samples_could_be_stored(findings_of):
    (found,) = findings_of(of_batch(), "DS035")
    assert (found.line, found.saving_ns, found.is_measured) == (20, 2 * 100 * US, False)
    assert "depends on the batch and on frozen parameters or constants alone (mm)" in found.message
    assert "4KiB for a batch" in found.remedy.text
    assert findings_of(of_batch(0.9), "DS035") == []  # below a tenth of the wall time


@pytest.mark.parametrize(
    ("settings", "is_named"),
    [
        ({"epochs": 1}, False),
        ({"epochs": 3}, True),
        ({"trainer": {"max_epochs": 1}}, False),
        ({"trainer": {"max_epochs": -1}}, True),
    ],
)
def test_with_one_epoch_nothing_is_computed_anew(findings_of, settings: dict[str, Any], is_named: bool):
    assert bool(findings_of(of_batch(settings=settings), "DS035")) == is_named


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("x = self.images[index]", True),
        ("x = self.rng.permutation(x)", False),
        ("at = random.randrange(len(x))", False),
        ("x = x + np.random.normal(0, 1, x.shape)", False),
        ("x = self.random_crop(x)", False),
        ("x = self.normalize(x)", True),
    ],
)
def test_samples_that_a_line_of_the_loading_changes_at_random_are_not_stored(findings_of, text: str, is_named: bool):
    builder = of_batch()
    for number in range(2):
        at = (number * 1000 + 950) * US
        builder.line(FILE, 30, "__getitem__", at + 1, 10 * US)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 20 * US)
    builder.files[0]["text"] = "\n" * 29 + f"{text}\n"
    assert bool(findings_of(builder, "DS035")) == is_named


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


def sliced(**changes: Any) -> dict[str, Any]:
    row = {"place": 3, "slicing": 3, "times": 16, "dimension": 0, "shape": [16, 8], "module": "Net", "operators": 160}
    return {"places": PLACES, "slices": [row | changes]}


def test_a_loop_saves_what_its_lines_take_less_one_call(findings_of):
    found = found_in(findings_of, sliced(), "DS034")
    # Line 10 and all below it, 400 µs a step, and the backward work of what it calls; ten operators take 100 µs.
    assert found.evidence["loop_ns"] == 2 * (400 + 60 + 40 + 200) * US
    assert found.saving_ns == 2 * 600 * US
    assert (found.line, found.evidence["calls_per_step"]) == (10, 16)


def test_what_has_no_gradient_may_be_a_matter_of_the_data(findings_of):
    with_gradient = found_in(findings_of, sliced(module=""), "DS034")
    assert "in the data set" not in with_gradient.remedy.text
    builder = TraceBuilder(deepscope={"audit": {"format": 1, "steps": 2, "operators": 9, **sliced(module="")}})
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 10, "main", at, 700 * US).op("aten::mm", at + US, 600 * US)
    (found,) = findings_of(builder, "DS034")
    assert found.remedy.text.endswith("made once, in the data set.")


def test_operators_that_do_much_for_each_element_take_as_long_for_all_slices(findings_of):
    builder = recorded(sliced())
    for number in range(2):
        builder.line(FILE, 10, "main", (number * 1000 + 900) * US, 90 * US)
        builder.op("aten::sort", (number * 1000 + 905) * US, 80 * US).op(
            "aten::sum", (number * 1000 + 986) * US, 3 * US
        )
    (found,) = findings_of(builder, "DS034")
    assert found.saving_ns == 2 * (700 + 90 - 100) * US  # of one call
    builder = recorded(sliced(operators=16))
    for number in range(2):
        builder.line(FILE, 10, "main", (number * 1000 + 900) * US, 90 * US)
        builder.op("aten::sort", (number * 1000 + 902) * US, 86 * US)
    (found,) = findings_of(builder, "DS034")
    assert found.saving_ns == 2 * (700 + 90 - (86 - 10)) * US


def test_loops_over_two_tensors_in_each_other_are_one_call_together_if_their_line_runs_so_often(findings_of):
    def saving(runs: int) -> int:
        audit = sliced(operators=1600)
        audit["slices"].append(audit["slices"][0] | {"times": 5, "dimension": 1})
        builder = recorded(audit)
        for number in range(2):
            for turn in range(runs):
                builder.line(FILE, 10, "main", (number * 1000 + 930) * US + turn * 10, 5)
        return max(one.saving_ns for one in findings_of(builder, "DS034"))

    # 1,600 operators of 80 calls would be 20, of 16 calls 100, which take 10 µs each.
    assert saving(79) > 2 * 400 * US
    with pytest.raises(ValueError, match="empty"):
        saving(20)


def test_a_loop_that_another_one_calls_is_a_part_of_it_and_promised_once(findings_of):
    audit = sliced()
    audit["slices"].append(audit["slices"][0] | {"place": 0, "slicing": 0, "times": 64, "operators": 64, "module": ""})
    (found,) = findings_of(recorded(audit), "DS034")
    assert found.line == 10
    (alone,) = findings_of(recorded({"places": PLACES, "slices": audit["slices"][1:]}), "DS034")
    assert (alone.line, alone.remedy.text[:25]) == (20, "Do it on whole tensors: o")


def test_what_a_loop_over_slices_computes_again_is_claimed_by_the_loop(findings_of):
    again = {"places": PLACES, "same": [{"place": 0, "again": True, "operators": [[0, "aten::mm", 1, 1]]}]}
    assert found_in(findings_of, again, "DS035").line == 20
    assert findings_of(recorded(sliced() | again), "DS035") == []


def test_modules_that_are_chosen_by_index_are_each_to_be_called_once(findings_of):
    text = "\n" * 9 + "outputs.append(self.experts[choice](token))\n"
    builder = recorded(sliced(module=""))
    builder.files[0]["text"] = text
    (found,) = findings_of(builder, "DS034")
    assert "Call each module once" in found.remedy.text
    assert "module" not in found.evidence


def test_windows_are_taken_in_one_view(findings_of):
    found = found_in(findings_of, sliced(length=3, dimension=1), "DS034")
    assert "`x.unfold(1, 3, step)`" in found.remedy.text
    assert "for a window of 3 of a tensor of shape [16, 8] in dimension 1" in found.message


def test_what_one_call_would_compute_is_taken_off(findings_of):
    # 8 MFLOP take 100 µs at 80 GFLOP/s; a third of a megabyte that is written takes 100 µs, with what it entails.
    found = found_in(findings_of, sliced(flops=8_000_000, result_bytes=1_000_000 // 3), "DS034")
    assert found.saving_ns == pytest.approx(2 * 400 * US, rel=1e-3)


def test_no_loop_saves_more_than_all_calls_but_one(findings_of):
    found = found_in(findings_of, sliced(times=2, operators=0), "DS034")
    assert found.saving_ns == 2 * 350 * US


def test_a_cell_has_its_layer_and_any_other_chain_no_remedy(findings_of):
    found = found_in(findings_of, sliced(is_chain=True, module="GRUCell", dimension=1), "DS034")
    assert "`nn.GRU(…, batch_first=True)`" in found.remedy.text
    assert findings_of(recorded(sliced(is_chain=True, module="Net")), "DS034") == []


@pytest.mark.parametrize(("calls", "is_found"), [(16, True), (13, True), (8, False)])
def test_a_chain_that_gives_a_recurrent_layer_one_step_a_call_may_give_it_all(calls: int, is_found: bool, findings_of):
    builder = recorded(sliced(is_chain=True, module="Decoder", dimension=1))
    for number in range(2):
        for turn in range(calls):
            builder.module("GRU", "decoder.gru", (number * 1000 + 392) * US + turn * 400, 300)
    found = findings_of(builder, "DS034")
    assert [(one.line, one.saving_ns, one.is_measured) for one in found] == [(10, 2 * 600 * US, False)] * is_found
    assert all(one.remedy.text.startswith("`nn.GRU` goes through all steps in one call") for one in found)


@pytest.mark.parametrize("nodes", [16, 0])
def test_gradients_of_one_output_after_the_other_save_what_their_nodes_cost_by_being_many(nodes: int, findings_of):
    builder = recorded(sliced(module=""))
    builder.files[0]["text"] = "\n" * 9 + "row = torch.autograd.grad(y[:, k].sum(), x, create_graph=True)[0]\n"
    for number in range(2):
        for turn in range(nodes):
            builder.backward("TanhBackward0", (number * 1000 + 392) * US + turn * 400, 300, 100 + turn, tid=MAIN)
    found = findings_of(builder, "DS034")
    assert [(one.line, one.saving_ns) for one in found] == [(10, 2 * 16 * 2 * 10 * US * 15 // 16)] * bool(nodes)
    assert all("is_grads_batched=True" in one.remedy.text for one in found)


def test_work_that_is_the_same_is_saved_at_its_line(findings_of):
    same = [{"place": 0, "result_bytes": 64, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0]]}]
    found = found_in(findings_of, {"places": PLACES, "same": same}, "DS035")
    assert found.saving_ns == 2 * 100 * US
    assert found.message.endswith(": mm")


def building(texts: dict[int, str], **changes: Any) -> TraceBuilder:
    """Two steps of a millisecond: line 10 takes 600 µs, of which lines 20 and 21 of a function 200 and 300 µs; then
    line 11 multiplies for 300 µs."""
    row = {"place": 1, "result_bytes": 64, "built": [1], "callers": [0], "whole": True, "operators": []} | changes
    places = [[0, 10, "main"], [0, 21, "build"]]
    audit = {"format": 1, "steps": 2, "operators": 9, "places": places, "same": [row]}
    builder = TraceBuilder(deepscope={"audit": audit})
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 10, "main", at, 600 * US)
        builder.line(FILE, 20, "build", at + 50 * US, 200 * US)
        builder.line(FILE, 21, "build", at + 260 * US, 300 * US)
        builder.line(FILE, 11, "main", at + 620 * US, 310 * US).op("aten::mm", at + 625 * US, 300 * US)
    lines = ["def first():", *("    pass" for _ in range(25))]
    for number, text in texts.items():
        lines[number - 1 : number] = [text]
    builder.files[0]["text"] = "\n".join(lines)
    return builder


RETURNED = {9: "def main():", 10: "    m = build(3)", 19: "def build(n):", 20: "    rows = list(range(n))"}
RETURNED[21] = "    return torch.tensor(rows).float()"


@pytest.mark.parametrize(
    ("texts", "changes", "saved_us"),
    [
        ({}, {}, 600),  # the call, with all of the function
        ({}, {"callers": []}, 500),  # the function; what else its caller does is not known
        ({10: "    m = x + build(3).exp()"}, {}, 600),
        ({10: "    m = simulate(build(3))"}, {}, 500),
        ({10: "    m, y = build(3), simulate()"}, {}, 500),
        ({}, {"callers": [], "whole": False}, 300),  # the line that makes the tensor
        ({21: "    return torch.tensor(rows), n"}, {}, 300),
        ({21: "    m = torch.from_numpy(rows)", 22: "    return m"}, {}, 600),
        ({21: "    m = torch.from_numpy(rows)", 22: "    return m.to(n), rows"}, {}, 300),
        ({21: "    m = torch.from_numpy(rows)", 22: "    return Batch(rows, m)"}, {}, 300),
        ({21: "    yield torch.tensor(rows)"}, {}, 300),
        ({21: "    m = torch.tensor(rows), simulate()", 22: "    return m"}, {}, 0),
        ({21: "    return Batch(simulate(n), torch.tensor(rows))"}, {}, 0),
    ],
)
def test_with_a_tensor_that_is_the_same_goes_the_python_that_makes_it(
    texts: dict[int, str], changes: dict[str, Any], saved_us: int, findings_of
):
    found = findings_of(building(RETURNED | texts, **changes), "DS035")
    assert [one.saving_ns for one in found] == [2 * saved_us * US] * (saved_us > 0)
    for one in found:
        assert one.line == 21
        assert one.message == "each step makes the same here, of numbers of Python's that do not change"
    claimed = {one.line for one in findings_of(building(RETURNED | texts, **changes), "DS013")}
    assert 21 not in claimed if saved_us else 21 in claimed


def test_without_the_text_no_python_goes_with_it(findings_of):
    builder = building(RETURNED)
    builder.files[0]["text"] = ""
    assert findings_of(builder, "DS035") == []


def test_work_that_a_step_does_again_saves_its_part_of_the_backward_pass_too(findings_of):
    row = {"place": 0, "again": True, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0]]}
    alone = found_in(findings_of, {"places": PLACES, "same": [row]}, "DS035")
    found = found_in(findings_of, {"places": PLACES, "same": [row | {"backward": [[0, "aten::mm", 2, 2]]}]}, "DS035")
    # Two thirds of the forward work, and of 240 us of backward work.
    assert (alone.saving_ns, found.saving_ns) == (2 * 100 * US, 2 * (100 + 160) * US)
    assert "has computed before" in found.message
    assert "parametrize.cached()" in found.remedy.text


def test_a_step_that_was_held_up_saves_no_more_than_two_usual_ones(findings_of):
    same = [{"place": 0, "result_bytes": 64, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0]]}]
    builder = recorded({"places": PLACES, "same": same})
    builder.step(2, 2000 * US, 5000 * US).line(FILE, 20, "forward", 2000 * US, 4800 * US)
    builder.op("aten::mm", 2001 * US, 4000 * US).op("aten::relu", 6100 * US, 50 * US)
    (found,) = findings_of(builder, "DS035")
    line, products, others = 4 * 150, 4 * 100, 3 * 50
    assert found.saving_ns == int(line * US * products / (products + others))


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


def partly(**changes: Any) -> dict[str, Any]:
    row = {"place": 0, "first": 2, "rows": 768, "read_rows": 192, "whole": True, "result_bytes": 64}
    row["operators"] = [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0], [2, "aten::mul", 1, 0]]
    row["backward"] = [[0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1]]
    return {"places": PLACES, "partly_read": [row | changes]}


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


def test_more_rows_read_than_there_are_save_nothing(findings_of):
    assert findings_of(recorded(partly(read_rows=800)), "DS037") == []


def test_a_graph_without_a_backward_pass_costs_a_tenth_of_its_work(findings_of):
    row = {"place": 0, "result_bytes": 2**20, "operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 1]]}
    found = found_in(findings_of, {"places": PLACES, "graphs": [row]}, "DS038")
    assert found.evidence["forward_ns"] == 2 * 150 * US
    assert found.saving_ns == 2 * 15 * US
    assert "up to 1MiB of results" in found.message
    assert findings_of(recorded({"places": PLACES, "graphs": [row | {"operators": []}]}), "DS038") == []


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


def test_positions_that_are_padding_and_not_read_are_claimed_once(findings_of):
    row = {"place": 0, "rows": 8, "length": 100, "positions": 800, "padded": 600, "longest": 30}
    row |= {"operators": [[0, "aten::mm", 1, 1]], "backward": [[0, "aten::mm", 2, 2]]}
    alone = found_in(findings_of, partly(), "DS037")
    found = found_in(findings_of, partly() | {"padding": [row]}, "DS037")
    assert found.saving_ns == pytest.approx(0.3 * alone.saving_ns, abs=2)


def test_pairs_that_are_read_in_part_and_summed_up_are_claimed_once(findings_of):
    pairs = {"place": 0, "name": "aten::sub", "reduction": "aten::sum", "shape": [64, 64], "given_elements": 64}
    pairs |= {"reduced_elements": 64, "result_bytes": 64, "operators": [[0, "aten::mm", 1, 1]]}
    assert len(findings_of(recorded({"places": PLACES, "broadcasts": [pairs]}), "DS043")) == 1
    assert findings_of(recorded(partly() | {"broadcasts": [pairs]}), "DS043") == []


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
