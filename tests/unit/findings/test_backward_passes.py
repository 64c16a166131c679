"""DS045, backward passes through one graph."""

from __future__ import annotations

import pytest

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


class _Step(TraceBuilder):
    """A step of a millisecond: line 10 runs a trunk of three operators, lines 20 and 21 go back through some of it."""

    def __init__(
        self,
        *,
        lines: tuple[int, int] = (20, 21),
        own: tuple[int, int] = (8, 9),
        between: str = "",
        gathers: tuple[bool, bool] = (True, True),
        grows: tuple[bool, bool] = (False, False),
    ) -> None:
        super().__init__()
        self.step(1, 0, 1000 * US).line(FILE, 10, "main", 0, 90 * US)
        for sequence in range(5, 10):
            self.op("aten::mm", (sequence - 5) * 10 * US + US, 5 * US, sequence=sequence)
        for place, (line, first) in enumerate(zip(lines, own, strict=True)):
            at = (100 + 400 * place) * US
            self.line(FILE, line, "main", at, 390 * US)
            for nth, sequence in enumerate((first, 7, 6, 5)):
                begin = at + (10 + 80 * nth) * US
                self.backward("MmBackward0", begin, 60 * US, sequence, tid=MAIN)
                self.op("aten::mm", begin + US, 50 * US, sequence=20 + sequence if grows[place] else None)
            begin = at + 340 * US
            self.event("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", begin, 20 * US)
            if gathers[place]:
                self.op("torch::autograd::AccumulateGrad", begin + US, 18 * US)
        if between:
            self.annotation(between, 495 * US, 2 * US)


def test_a_pass_through_a_graph_that_another_pass_went_through_is_named_at_its_line(findings_of):
    (found,) = findings_of(_Step(), "DS045")
    assert (found.file, found.line) == (FILE, 21)
    assert found.evidence["repeated_passes"] == 1
    assert found.saving_ns == found.evidence["repeated_ns"] == pytest.approx(3 * 60 * US, abs=10)
    assert "lines 20 and 21 each go through" in found.message
    assert "sum" in found.remedy.text


def test_a_loop_over_losses_is_named_at_its_line(findings_of):
    (found,) = findings_of(_Step(lines=(20, 20)), "DS045")
    assert (found.line, found.evidence["repeated_passes"]) == (20, 1)
    assert "this line" in found.message


@pytest.mark.parametrize("between", ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"])
def test_passes_whose_gradients_are_used_apart_are_not_named(findings_of, between):
    assert findings_of(_Step(between=between), "DS045") == []
    assert findings_of(_Step(between="something else"), "DS045") != []


def test_gradients_of_one_tensor_can_be_asked_for_together(findings_of):
    (found,) = findings_of(_Step(own=(8, 8), gathers=(False, False), grows=(True, True)), "DS045")
    assert found.saving_ns == pytest.approx(4 * 60 * US, abs=10)
    assert "autograd.grad" in found.remedy.text


@pytest.mark.parametrize(
    ("gathers", "grows"),
    [
        ((False, False), (False, False)),  # the gradients of two tensors: a Jacobian, row by row
        ((False, True), (True, False)),  # a penalty on a gradient, and the loss
        ((True, True), (True, False)),
    ],
)
def test_passes_that_one_cannot_replace_are_not_named(findings_of, gathers, grows):
    assert findings_of(_Step(gathers=gathers, grows=grows), "DS045") == []


def test_each_step_has_a_graph_of_its_own(findings_of):
    builder = _Step()
    for event in builder.events:
        if event["name"] == "ProfilerStep#1":
            event["dur"] = 480.0
    builder.step(2, 490 * US, 510 * US)
    assert findings_of(builder, "DS045") == []


def test_little_is_not_worth_a_word(findings_of):
    assert findings_of(_Step().step(2, 2000 * US, 10_000 * US), "DS045") == []
