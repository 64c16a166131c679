"""DS007, many tiny operators on the CPU."""

from __future__ import annotations

import pytest

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def loop(count: int, *, each: int = 2, python: int = 3, name: str = "aten::item", **header: object) -> TraceBuilder:
    """Steps in which line 5 runs `count` times, each an operator of `each` µs and `python` µs around it; then line 6
    multiplies for 1,000 µs."""
    builder = TraceBuilder(**header)
    length = (count * (each + python) + 1000) * US
    for number in range(2):
        at = number * length
        builder.step(number, at, length)
        for row in range(count):
            start = at + row * (each + python) * US
            builder.line(FILE, 5, "main", start, (each + python) * US).op(name, start + US, each * US)
        builder.line(FILE, 6, "main", at + length - 1000 * US, 1000 * US)
        builder.op("aten::mm", at + length - 990 * US, 980 * US)
    return builder


def test_a_loop_over_scalars_is_found_with_its_overhead(findings_of):
    (found,) = findings_of(loop(400), "DS007")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {
        "line_cpu_ns": 2 * 400 * 5 * US, "operators": 800, "operators_per_step": 400.0, "operator_median_us": 2.0,
    }  # fmt: skip
    assert found.saving_ns == 2 * 399 * 5 * US


def test_what_a_loop_computes_again_is_claimed_once(findings_of):
    same = [{"place": 0, "again": True, "operators": [[0, "aten::item", 400, 300]]}]
    audit = {"format": 1, "steps": 2, "operators": 1, "places": [[0, 5, "main"]], "same": same}
    builder = loop(400, deepscope={"audit": audit})
    ((again,), (many,)) = (findings_of(builder, code) for code in ("DS035", "DS007"))
    assert again.saving_ns == 2 * 400 * 2 * US * 3 // 4
    assert many.saving_ns == pytest.approx(2 * 400 * 5 * US - again.saving_ns, rel=0.01)


def test_a_loop_over_classes_that_could_be_counted_at_once_is_claimed_once(findings_of):
    row = {"place": 0, "kind": "classes", "name": "aten::eq", "shape": [400], "times": 1, "needed": 0.25}
    row |= {"operators": [[0, "aten::item", 400, 400]]}
    audit = {"format": 1, "steps": 2, "operators": 1, "places": [[0, 5, "main"]], "cheaper": [row]}
    builder = loop(400, deepscope={"audit": audit})
    ((at_once,), (many,)) = (findings_of(builder, code) for code in ("DS047", "DS007"))
    assert at_once.saving_ns == 2 * 400 * 2 * US * 3 // 4
    assert many.saving_ns == pytest.approx(2 * 400 * 5 * US - at_once.saving_ns, rel=0.01)


def test_a_loop_over_parameters_wants_to_run_seldom(findings_of):
    builder = loop(400)
    for text, words in (
        ("for name, p in model.named_parameters():", "every N steps"),
        ("for g in enumerate(self.net.parameters()):", "every N steps"),
        ("online, target = a.state_dict(), b.state_dict(); for name in target:", "every N steps"),
        ("for name in names:", "whole tensor"),
    ):
        before, _, last = text.rpartition("; ")
        builder.files[0]["text"] = "\n" * 2 + before + "\n" + last + "\n    total += p.grad.norm().item()\n"
        (found,) = findings_of(builder, "DS007")
        assert words in found.remedy.text


def test_a_loop_over_parameters_need_not_be_as_long_as_others(findings_of):
    builder = loop(60)
    builder.files[0]["text"] = "\n" * 3 + "for p in model.parameters():\n    total += p.grad.norm().item()\n"
    (found,) = findings_of(builder, "DS007")
    assert (found.line, found.saving_ns) == (5, 2 * 59 * 5 * US)
    builder.files[0]["text"] = "\n" * 3 + "for p in names:\n    total += p.grad.norm().item()\n"
    assert findings_of(builder, "DS007") == []


def test_a_penalty_on_weights_counts_with_its_backward_pass_and_is_weight_decay(findings_of):
    builder = TraceBuilder().step(1, 0, 3000 * US)
    for number in range(60):
        builder.line(FILE, 5, "main", number * 5 * US, 5 * US)
        builder.op("aten::norm", number * 5 * US + US, 2 * US, sequence=number)
    builder.line(FILE, 6, "main", 1000 * US, 2000 * US)
    for number in range(60):
        builder.backward("NormBackward0", (1100 + 10 * number) * US, 4 * US, number, tid=MAIN)
    builder.files[0]["text"] = "\n" * 3 + "for p in model.parameters():\n    l2 = l2 + p.norm()\nloss.backward()\n"
    (found,) = findings_of(builder, "DS007")
    assert "weight_decay" in found.remedy.text
    assert found.saving_ns == (60 * (5 + 4) * US) * 59 // 60


def test_a_loop_with_gradients_counts_with_its_backward_pass(findings_of):
    builder = TraceBuilder().step(1, 0, 9000 * US)
    for number in range(400):
        builder.line(FILE, 5, "main", number * 5 * US, 5 * US)
        builder.op("aten::mul", number * 5 * US + US, 2 * US, sequence=number)
    builder.line(FILE, 6, "main", 3000 * US, 5000 * US)
    for number in range(400):
        builder.backward("MulBackward0", (3100 + 5 * number) * US, 4 * US, number, tid=MAIN)
    (found,) = findings_of(builder, "DS007")
    assert found.saving_ns == (400 * (5 + 4) * US) * 399 // 400


@pytest.mark.parametrize(
    ("body", "is_in_turn"),
    [
        ("h = cell(x[t], h)", True),
        ("state[layer] = cell(x[t], state[layer])", True),
        ("out, h = step(x[t], h)", True),
        ("score[t] = best(score[t - 1])", True),
        ("total += f(x[t])", False),
        ("total = total + f(x[t])", False),
        ("y[t] = f(x[t], y[t])", False),
        ("rows.append(f(x[t]))", False),
    ],
)
def test_a_loop_in_which_each_turn_needs_the_one_before_it_promises_a_bound(body: str, is_in_turn: bool, findings_of):
    builder = loop(400)
    builder.files[0]["text"] = f"\n\n\nfor t in range(400):\n    {body}\n"
    (found,) = findings_of(builder, "DS007")
    assert found.remedy.text.startswith("Each turn needs the one before it." if is_in_turn else "Do it on the whole")
    assert found.is_measured != is_in_turn


def test_lines_that_run_once_for_each_of_many_backward_passes_want_larger_batches(findings_of):
    def steps(passes: int) -> TraceBuilder:
        builder = TraceBuilder()
        each = 120 * US
        for number in range(2):
            at = number * passes * each
            builder.step(number, at, passes * each)
            for row in range(passes):
                start = at + row * each
                builder.line(FILE, 5, "main", start, 100 * US)
                for op in range(10):
                    builder.op("aten::mul", start + op * 10 * US, 5 * US)
                builder.line(FILE, 6, "main", start + 100 * US, 20 * US)
        builder.files[0]["text"] = "\n" * 4 + "loss = model(x)\nloss.backward()\n"
        return builder

    (found,) = findings_of(steps(32), "DS007")
    assert (found.line, found.evidence["backward_passes_per_step"]) == (5, 32)
    assert "larger batches" in found.remedy.text
    assert found.saving_ns == 2 * 31 * 100 * US
    assert findings_of(steps(3), "DS007") == []


def test_few_operators_or_long_ones_are_not_found(findings_of):
    assert findings_of(loop(50), "DS007") == []
    assert findings_of(loop(400, each=20), "DS007") == []


def test_waiting_for_a_core_makes_a_loop_no_smaller(findings_of):
    busy = loop(400).step(2, 6_000 * US, 260_000 * US)
    assert findings_of(busy, "DS007") == [], "4 of 266 ms"
    busy.metadata["deepscope"] = {"machine": {"cores": 2, "core_wait_ratio": 0.5}}
    assert len(findings_of(busy, "DS007")) == 1


def test_an_optimizers_own_loop_is_not_found(findings_of):
    builder = loop(400, name="aten::add_")
    for number in range(2):
        builder.annotation("Optimizer.step#SGD.step", number * 3000 * US, 2000 * US)
    assert findings_of(builder, "DS007") == []


def test_what_a_loader_starts_on_the_line_that_asks_it_is_the_loaders(findings_of):
    """`for batch in loader: net(batch)` in one line; a data set's own line is a loop of the user's."""
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    alone = loop(400)
    below = TraceBuilder().step(0, 0, 4000 * US).line(FILE, 3, "main", 0, 3000 * US).annotation(name, US, 2900 * US)
    for number in range(2):
        alone.annotation(name, number * 3000 * US, 2000 * US)
    for start in range(10 * US, 2010 * US, 5 * US):
        below.line(FILE, 5, "__getitem__", start, 5 * US).op("aten::item", start + US, 2 * US)
    assert findings_of(alone, "DS007") == []
    assert [found.line for found in findings_of(below, "DS007")] == [5]


def test_with_a_device_its_kernels_are_what_counts(findings_of):
    assert findings_of(loop(400).kernel("gemm", 10, 100 * US, 5 * US), "DS007") == []


def at_once(text: str, *, module: bool = False) -> TraceBuilder:
    """One run of line 5, with that text, starts 400 operators, within one module or not."""
    builder = TraceBuilder().line(FILE, 5, "main", 0, 3000 * US)
    builder.files[0]["text"] = "\n" * 4 + text
    if module:
        builder.module("TransformerEncoder", "net", 0, 2900 * US)
    for row in range(400):
        builder.op("aten::add", row * 5 * US, 2 * US)
    return builder


def test_what_a_library_does_for_one_call_is_no_loop_of_the_line(findings_of):
    assert findings_of(at_once("y = net(x)", module=True), "DS007") == []
    assert findings_of(at_once("y = parameters_to_vector(x)  # for all of them"), "DS007") == []
    assert findings_of(at_once("y = [net(one) for one in few]", module=True), "DS007") == []


def test_a_comprehension_is_a_loop_that_one_run_of_a_line_holds(findings_of):
    for text in ("y = [one.item() for one in x]", "y = sum(one.item() for one in x)", "for one in x: y += one.item()"):
        assert [found.line for found in findings_of(at_once(text), "DS007")] == [5]


def test_a_line_that_calls_a_module_again_and_again_is_a_loop(findings_of):
    builder = TraceBuilder()
    for start in range(0, 300 * 10 * US, 10 * US):
        builder.line(FILE, 5, "main", start, 10 * US).module("LSTMCell", "cell", start, 9 * US)
        builder.op("aten::mm", start + US, 2 * US).op("aten::add", start + 4 * US, 2 * US)
    (found,) = findings_of(builder, "DS007")
    assert (found.evidence["operators"], found.saving_ns) == (600, 299 * 10 * US)


def test_neither_a_long_operator_nor_other_python_on_the_line_can_be_saved(findings_of):
    builder = loop(400).line(FILE, 5, "main", 10_000 * US, 9000 * US).op("aten::mm", 10_001 * US, 4000 * US)
    (found,) = findings_of(builder.step(2, 10_000 * US, 9000 * US), "DS007")
    operators, python = 800 * 2 * US + 10 * US, 800 * 3 * US + 5000 * US
    assert found.saving_ns == operators + python - (operators + python) * 3 // 801
    assert found.evidence["line_cpu_ns"] == 800 * 5 * US + 9000 * US


def called(count: int = 300, *, text: str = "", name: str = "box_iou") -> TraceBuilder:
    """A step in which line 5 calls a function so often, whose lines 11 to 16 each run an operator of 2 µs."""
    builder = TraceBuilder().step(0, 0, (count * 40 + 1000) * US)
    builder.line(FILE, 4, "main", 0, count * 40 * US)
    for turn in range(count):
        at = turn * 40 * US
        builder.line(FILE, 5, "matched", at, 39 * US)
        for row in range(6):
            start = at + (2 + 6 * row) * US
            builder.line(FILE, 11 + row, name, start, 5 * US).op("aten::max", start + US, 2 * US)
    if text:
        builder.files[0]["text"] = text
    return builder


def test_the_lines_of_a_function_that_is_called_again_and_again_are_one_finding_where_it_is_called(findings_of):
    (found,) = findings_of(called(), "DS007")
    assert (found.file, found.line, found.function) == (FILE, 5, "matched")
    assert found.evidence["calls"] == "box_iou 300 times a step"
    assert "calls box_iou 300 times a step" in found.message
    assert found.evidence["operators"] == 1800
    assert found.saving_ns == 6 * 299 * 5 * US


def test_a_function_that_is_called_elsewhere_too_is_named_where_it_is_called_most(findings_of):
    """As a policy is, in a rollout and, between two of them, for the loss."""
    builder = TraceBuilder().step(0, 0, 9000 * US)
    for turn in range(601):
        at, line = turn * 10 * US, 9 if turn == 300 else 5
        builder.line(FILE, line, "main", at, 9 * US)
        builder.line(FILE, 20, "policy", at + US, 7 * US).op("aten::addmm", at + 2 * US, 3 * US)
    text = ["for t in range(600):", "    action = policy(state)", "    state, reward = env.step(action)"]
    builder.files[0]["text"] = "\n" * 3 + "\n".join(text) + "\n\n\nloss = policy(states)\n"
    (found,) = findings_of(builder, "DS007")
    assert (found.line, found.evidence["calls"]) == (5, "policy 601 times a step")
    assert found.remedy.text.startswith("Each turn needs the one before it.")


def test_samples_that_are_taken_one_by_one_are_to_be_taken_by_whole_batches(findings_of):
    (found,) = findings_of(called(name="Pictures.__getitem__"), "DS007")
    assert "data[rows]" in found.remedy.text


def test_a_function_that_is_called_less_often_than_it_starts_operators_is_named_where_it_is_called(findings_of):
    """One that is called 100 times: each of its lines starts three operators."""
    builder = TraceBuilder().step(0, 0, 9000 * US).line(FILE, 4, "main", 0, 8000 * US)
    for turn in range(100):
        at = turn * 80 * US
        builder.line(FILE, 5, "matched", at, 79 * US)
        for row in range(6):
            start = at + (2 + 12 * row) * US
            builder.line(FILE, 11 + row, "box_iou", start, 11 * US)
            for number in range(3):
                builder.op("aten::max", start + (1 + 3 * number) * US, 2 * US)
    (found,) = findings_of(builder, "DS007")
    assert (found.line, found.evidence["calls"]) == (5, "box_iou 100 times a step")


def test_the_lines_of_one_loop_are_one_finding_at_the_dearest(findings_of):
    builder = TraceBuilder().step(0, 0, 9000 * US)
    for turn in range(300):
        for line, length in ((5, 6), (6, 9), (7, 5)):
            at = (turn * 25 + {5: 0, 6: 7, 7: 17}[line]) * US
            builder.line(FILE, line, "main", at, length * US).op("aten::add", at + US, 2 * US)
    builder.files[0]["text"] = "\n\n\nfor i in range(300):\n    a = x[i]\n    b = a + 1\n    c = b + a\n"
    (found,) = findings_of(builder, "DS007")
    assert (found.line, found.evidence["operators"]) == (6, 900)
