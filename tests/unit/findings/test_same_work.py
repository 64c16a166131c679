"""DS035, the same work over and over."""

from __future__ import annotations

from typing import Any

import pytest

from audited_traces import FILE, PLACES, US, found_in, recorded, sliced
from trace_builder import TraceBuilder


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


def test_what_a_loop_over_slices_computes_again_is_claimed_by_the_loop(findings_of):
    again = {"places": PLACES, "same": [{"place": 0, "again": True, "operators": [[0, "aten::mm", 1, 1]]}]}
    assert found_in(findings_of, again, "DS035").line == 20
    assert findings_of(recorded(sliced() | again), "DS035") == []


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
