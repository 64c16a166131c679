"""DS034, called for one slice after the other."""

from __future__ import annotations

import pytest

from audited_traces import FILE, PLACES, US, found_in, recorded, sliced
from trace_builder import MAIN, TraceBuilder


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
