"""DS001, device synchronisation in the hot loop."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
TEXT = "for batch in loader:\n    loss = net(batch)\n    total += loss.item()\n"


def steps(read: int, *, count: int = 4, text: str | None = None) -> TraceBuilder:
    """Steps of 1,000 µs: 700 µs of kernel launched at line 2 in the first 50 µs, then line 3 for the rest.

    In the first `read` steps line 3 reads a value: it waits from 100 µs to 720 µs, the kernel's end at 700 µs, a copy
    from 705 µs to 710 µs; the next kernel starts at 1,010 µs.
    """
    builder = TraceBuilder()
    for number in range(count):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, 100 * US)
        builder.line(FILE, 3, "main", at + 100 * US, 900 * US)
        builder.kernel("gemm", at + 5 * US, at + 10 * US, 690 * US)
        if number < read:
            builder.op("aten::item", at + 100 * US, 625 * US)
            builder.op("aten::_local_scalar_dense", at + 100 * US, 620 * US)
            builder.memcpy("DtoH", 4, at + 101 * US, at + 705 * US, 5 * US, launch_duration=3 * US)
            builder.runtime("cudaStreamSynchronize", at + 105 * US, 614 * US)
    builder.files[0]["text"] = text or TEXT
    return builder


def test_a_value_read_in_each_step_is_found_with_its_waiting_and_what_it_costs(findings_of):
    (found,) = findings_of(steps(4), "DS001")
    assert (found.file, found.line, found.function) == (FILE, 3, "main")
    assert ".item()" in found.message
    # After each wait the device is idle from 710 µs to 1,010 µs; before the last step's end, to 1,000 µs.
    idle = 3 * 300 * US + 290 * US
    assert found.evidence == {
        "wait_ns": 4 * 620 * US,
        "waits": 4,
        "waits_per_step": 1.0,
        "device_idle_after_ns": idle,
    }
    assert found.saving_ns == idle
    assert found.severity == "warning"
    assert found.doc == "docs/findings/DS001.md"


def test_the_sum_of_values_can_stay_on_the_device_by_an_edit(findings_of):
    (found,) = findings_of(steps(4), "DS001")
    assert [(edit.line, edit.old, edit.new) for edit in found.remedy.edits] == [(3, ".item()", ".detach()")]


def test_what_is_read_where_a_distribution_is_made_are_answers_of_its_checks(findings_of):
    (found,) = findings_of(steps(4, text="\n\npolicy = Normal(mean, std)\n"), "DS001")
    assert "set_default_validate_args(False)" in found.remedy.text


@pytest.mark.parametrize(
    "line",
    [
        "    print(loss.item())",
        "    total += round(loss.item(), 3)",
        "    total = loss.item()",
        "    f(x.item(), y.item())",
    ],
)
def test_where_a_number_may_be_needed_nothing_is_edited(findings_of, line):
    (found,) = findings_of(steps(4, text=f"a\nb\n{line}\n"), "DS001")
    assert found.remedy.edits == []


def test_a_value_read_in_one_step_of_four_is_not_in_the_hot_loop(findings_of):
    assert findings_of(steps(1), "DS001") == []


def test_without_a_wait_there_is_nothing_to_find(findings_of):
    assert findings_of(steps(0), "DS001") == []


def test_a_single_step_of_a_trace_has_its_own_figures(findings_of):
    (found,) = findings_of(steps(4), "DS001", step=1)
    assert (found.evidence["waits"], found.evidence["wait_ns"], found.saving_ns) == (1, 620 * US, 290 * US)


def test_a_saving_is_no_greater_than_the_wait(findings_of):
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 3, "main", at, 1000 * US)
        builder.kernel("k", at + 5 * US, at + 10 * US, 90 * US).op("aten::item", at + 50 * US, 60 * US)
        builder.op("aten::_local_scalar_dense", at + 50 * US, 60 * US)
    (found,) = findings_of(builder, "DS001")
    assert found.saving_ns == 3 * 60 * US


@pytest.mark.parametrize(
    ("operators", "words"),
    [
        (("aten::index", "aten::nonzero"), "boolean indexing"),
        (("aten::to", "aten::_to_copy", "aten::copy_"), ".cpu()"),
        ((), "torch.cuda.synchronize()"),
        (("my::operator",), "an operator on this line"),
    ],
)
def test_what_waits_is_named(findings_of, operators, words):
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 3, "main", at, 1000 * US)
        builder.kernel("k", at + 5 * US, at + 10 * US, 590 * US)
        for depth, name in enumerate(operators):
            builder.op(name, at + (20 + depth) * US, (600 - 2 * depth) * US)
        waiting = 550 * US if "aten::copy_" in operators else 0  # as into memory that is not pinned
        name = f"Memcpy DtoH (Device -> {'Pageable' if waiting else 'Pinned'})"
        builder.kernel(name, at + 40 * US, at + 600 * US, 5 * US, category="gpu_memcpy", launch_duration=waiting)
        builder.runtime("cudaStreamSynchronize", at + 40 * US + waiting, 570 * US - waiting)
    (found,) = findings_of(builder, "DS001")
    assert words in found.message
    assert found.evidence["wait_ns"] == 3 * 570 * US


def test_waits_of_other_threads_do_not_hold_up_the_training(findings_of):
    builder = steps(0)
    for number in range(4):
        builder.runtime("cudaStreamSynchronize", number * 1000 * US + 100 * US, 600 * US, tid=900)
    assert findings_of(builder, "DS001") == []


def test_on_the_cpu_nothing_waits_for_a_device(findings_of):
    builder = TraceBuilder()
    for number in range(3):
        builder.step(number, number * 1000, 1000).line(FILE, 3, "main", number * 1000, 1000)
        builder.op("aten::_local_scalar_dense", number * 1000 + 10, 900)
    assert findings_of(builder, "DS001") == []
