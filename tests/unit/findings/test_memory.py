"""DS030, activations that fill the memory, and DS031, gradients held during the forward pass."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import TraceBuilder

PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS = range(5)
MB = 1 << 20


def survey(at: int, occasion: str, *held: tuple[int, int]) -> dict[str, Any]:
    return {"at_ns": at, "occasion": occasion, "held": [[kind, 1, 0, address, 1] for kind, address in held]}


def activations(capacity: int | None) -> TraceBuilder:
    """Line 10 allocates 60 MB that are kept, line 11 30 MB that are not."""
    builder = TraceBuilder().kernel("k", 10, 1000, 1)
    builder.line("/p/a.py", 10, "f", 0, 100).line("/p/a.py", 11, "f", 100, 100)
    builder.memory(10, 60 * MB, address=1, total=70 * MB).memory(110, 30 * MB, address=2, total=100 * MB)
    builder.memory(150, -30 * MB, address=2, total=70 * MB).memory(160, -60 * MB, address=1, total=10 * MB)
    builder.metadata["deepscope"] = {
        "format": 2, "memory": {"surveys": [survey(120, "backward", (ACTIVATIONS, 1))]},
    }  # fmt: skip
    if capacity is not None:
        builder.metadata["deviceProperties"] = [{"id": 0, "name": "gpu", "totalGlobalMem": capacity}]
    return builder


def test_the_line_whose_activations_fill_a_device_is_named_with_what_the_peak_would_be(findings_of):
    (found,) = findings_of(activations(capacity=110 * MB), "DS030")
    assert (found.line, found.severity, found.saving_ns) == (10, "warning", 0)
    assert found.evidence == {
        "activations_of_peak_bytes": 60 * MB,
        "peak_bytes": 100 * MB,
        "saving_of_peak_bytes": 60 * MB,
    }


@pytest.mark.parametrize("capacity", [None, 1000 * MB])
def test_memory_that_is_not_short_needs_no_checkpoints(capacity, findings_of):
    assert findings_of(activations(capacity), "DS030") == []


def test_a_failed_allocation_says_that_memory_is_short(findings_of):
    builder = activations(None)
    builder.metadata["deepscope"]["memory"]["failure"] = {"at_ns": 140, "error": "OutOfMemoryError"}
    assert [one.line for one in findings_of(builder, "DS030")] == [10]


def steps(*, zero_at: tuple[int, ...] = (), backward_at: tuple[int, ...] = (600,), keeps: bool = False) -> TraceBuilder:
    """A step of the optimizer at 100, a forward pass from 200 on, a backward pass from 600 to 900.

    Two gradients of 20 MB each; the peak is 60 MB of activations at the end of the forward pass.
    """
    builder = TraceBuilder().kernel("k", 10, 1000, 1)
    builder.line("/p/a.py", 10, "f", 0, 190).line("/p/a.py", 20, "f", 200, 380).line("/p/a.py", 30, "f", 580, 400)
    builder.memory(20, 20 * MB, address=1).memory(30, 20 * MB, address=2)
    surveys = [survey(40, "gradients", (GRADIENTS, 1), (GRADIENTS, 2)), survey(100, "optimizer")]
    for address in (3, 4, 5):
        builder.memory(200 + 100 * address - 200, 20 * MB, address=address)
    for at in zero_at:
        builder.memory(at, -20 * MB, address=1).memory(at + 1, -20 * MB, address=2)
    line = 30 if zero_at and zero_at[0] > 500 else 10
    builder.event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 585 if line == 30 else 110, 5)
    surveys += [survey(at, "backward", *((ACTIVATIONS, address) for address in (3, 4, 5))) for at in backward_at]
    surveys += [survey(at + 30, "gradients") for at in backward_at[:-1]]
    for number, address in enumerate((5, 4, 3)):
        builder.memory(620 + 100 * number, -20 * MB, address=address)
        if not keeps and number < 2:
            builder.memory(610 + 100 * number, 20 * MB, address=11 + number)
    surveys.append(survey(900, "gradients"))
    builder.metadata["deepscope"] = {"format": 2, "memory": {"surveys": surveys}}
    return builder


def test_gradients_that_are_set_to_none_only_before_the_backward_pass_are_named_there(findings_of):
    (found,) = findings_of(steps(zero_at=(590,)), "DS031")
    assert (found.line, found.severity, found.saving_ns) == (30, "hint", 0)
    # Without them the peak is in the backward pass: three activations and the first new gradient.
    assert found.evidence == {
        "gradients_of_peak_bytes": 40 * MB,
        "peak_bytes": 100 * MB,
        "saving_of_peak_bytes": 20 * MB,
    }


def test_gradients_that_are_set_to_zero_stay_and_are_named(findings_of):
    builder = steps(keeps=True)
    builder.files[0]["text"] = "\n" * 9 + "optimizer.zero_grad(set_to_none=False)\n"
    (found,) = findings_of(builder, "DS031")
    assert found.line == 10
    assert found.evidence["gradients_of_peak_bytes"] == 40 * MB
    assert 20 * MB < found.evidence["saving_of_peak_bytes"] <= 40 * MB
    assert [(edit.line, edit.old, edit.new) for edit in found.remedy.edits] == [
        (10, "set_to_none=False", "set_to_none=True")
    ]


def test_gradients_that_go_right_behind_the_step_are_well_kept(findings_of):
    assert findings_of(steps(zero_at=(110,)), "DS031") == []


def test_gradients_of_an_accumulation_are_of_use_from_its_first_backward_pass_on(findings_of):
    assert findings_of(steps(zero_at=(950,), backward_at=(150, 600)), "DS031") == []
