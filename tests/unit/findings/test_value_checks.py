"""DS022 and DS048: anomaly detection left on, and checks of distributions."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def checked(
    *, stack: int = 50, item: int = 20, hook: bool = False, header: dict[str, Any] | None = None
) -> TraceBuilder:
    """A step of 2,000 µs: a view whose stack takes `stack` µs, a product, and their nodes, each searched for 60 µs."""
    builder = TraceBuilder(deepscope=header or {}).step(1, 0, 2000 * US).line(FILE, 5, "main", 0, 900 * US)
    builder.op("aten::t", 0, (stack + 3) * US, sequence=1).op("aten::mm", 100 * US, 700 * US, sequence=2)
    builder.line(FILE, 6, "main", 900 * US, 1000 * US)
    for sequence, node, start in ((2, "MmBackward0", 910), (1, "TBackward0", 1210)):
        builder.op(
            f"autograd::engine::evaluate_function: {node}", start * US, 250 * US, sequence=sequence, fwd_thread=1
        )
        builder.op(node, (start + 1) * US, 100 * US, sequence=sequence, fwd_thread=1)
        names = ("aten::item",) if hook else ("aten::isnan", "aten::_is_any_true", "aten::item")
        for row, name in enumerate(names):
            builder.op(name, (start + 110 + 25 * row) * US, (item if row == 2 else 20) * US, tid=MAIN)
    return builder


def test_checks_and_stacks_are_summed_and_stand_at_no_line_that_only_pays_for_them(findings_of):
    (found,) = findings_of(checked(), "DS022")
    assert (found.file, found.line, found.function) == ("", 0, "")
    assert found.evidence == {"checks": 2, "checking_ns": 120 * US, "stacks": 2, "stacks_ns": 100 * US}
    assert found.saving_ns == 220 * US
    assert "set_detect_anomaly" in found.remedy.text


def test_the_finding_stands_at_the_switch_where_the_text_has_one(findings_of):
    text = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n\nloss = model(x)\nloss.backward()\n"
    built = checked()
    built.metadata["deepscope"] |= {"files": [{"path": FILE, "text": text}]}
    (found,) = findings_of(built, "DS022")
    assert (found.file, found.line) == (FILE, 3)


def test_views_without_a_stack_promise_the_checks_alone(findings_of):
    (found,) = findings_of(checked(stack=0), "DS022")
    assert found.saving_ns == 120 * US


def test_a_value_that_a_hook_reads_is_no_check(findings_of):
    assert findings_of(checked(hook=True), "DS022") == []


def test_a_check_of_the_user_s_own_is_no_anomaly_detection(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 900 * US)
    builder.op("aten::isnan", 10 * US, 300 * US).op("aten::any", 320 * US, 300 * US).op(
        "aten::item", 630 * US, 100 * US
    )
    assert findings_of(builder, "DS022") == []


def test_lightning_has_an_option_of_its_own(findings_of):
    (found,) = findings_of(checked(header={"settings": {"trainer": {"detect_anomaly": True}}}), "DS022")
    assert "detect_anomaly=False" in found.remedy.text


def test_with_a_device_the_wait_is_this_rule_s_and_not_a_synchronisation_of_the_line(findings_of):
    builder = checked(item=80)
    for start in (910, 1210):
        builder.kernel("isnan", (start + 112) * US, (start + 115) * US, 50 * US)
        builder.op("aten::_local_scalar_dense", (start + 161) * US, 78 * US)
        builder.runtime("cudaStreamSynchronize", (start + 162) * US, 76 * US)
        builder.kernel("next", (start + 240) * US, (start + 245) * US, 20 * US)
    builder.step(2, 2000 * US, 10 * US)
    (found,) = findings_of(builder, "DS022")
    assert found.saving_ns == found.evidence["device_idle_after_ns"] > 0
    assert findings_of(builder, "DS001") == []


MAKES = "policy = Independent(Normal(mean, std), 1)"


def playing(text: str = MAKES, *, is_checked: bool = True, turns: int = 5) -> TraceBuilder:
    """Steps of 1,000 µs: line 5 runs several turns of 60 µs, 30 of them in two operators that check, and one."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US)
        for turn in range(turns):
            start = at + 70 * turn * US
            builder.line(FILE, 5, "play", start, 60 * US).op("aten::softplus", start, 20 * US)
            builder.op("aten::gt" if is_checked else "aten::add", start + 22 * US, 10 * US)
            if is_checked:
                builder.op("aten::is_nonzero", start + 34 * US, 20 * US)
        builder.line(FILE, 6, "main", at + 600 * US, 310 * US).op("aten::mm", at + 605 * US, 300 * US)
    builder.files[0]["text"] = "\n" * 4 + text + "\n"
    return builder


@pytest.mark.parametrize(
    "text",
    [
        MAKES,
        "action = torch.distributions.Categorical(logits=logits).sample()",
        "symbol = OneHotCategoricalStraightThrough(logits=logits)",
        "chance = policy.log_prob(action)",
    ],
)
def test_what_checks_is_saved_with_its_part_of_pythons_time(text: str, findings_of):
    (found,) = findings_of(playing(text), "DS048")
    python_ns = 2 * 5 * 10 * US * 2 // 3  # two of the three operators check
    assert (found.line, found.saving_ns) == (5, pytest.approx(2 * 5 * 30 * US + python_ns, abs=10 * US))
    assert found.is_measured
    assert "set_default_validate_args(False)" in found.remedy.text


def test_such_a_line_is_no_line_of_python_besides(findings_of):
    assert findings_of(playing(), "DS013") == []


@pytest.mark.parametrize(
    "builder",
    [
        playing("policy = self.normal(mean, std)"),
        playing(is_checked=False),
        playing(turns=5).kernel("gemm", 10 * US, 20 * US, 500 * US),
    ],
)
def test_nothing_is_saved_where_nothing_checks(builder: TraceBuilder, findings_of):
    assert findings_of(builder, "DS048") == []


def test_little_is_not_named(findings_of):
    assert findings_of(playing(turns=0), "DS048") == []
