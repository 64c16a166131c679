"""DS048, checks of distributions."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
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
