"""What is said of rows."""

import json

import pytest

from deepscope.quantities import TIMES
from deepscope.records.findings import Try
from deepscope.trials.rendering import sentence, tries_json, tries_text, verified_markdown


def row(verdict, speedup=1.25, low=1.2, high=1.3, **fields):
    plain = {"finding": "", "remedy": "compile: model.compile()", "losses": "identical"}
    return Try(
        **{**plain, **fields},
        before_ns=10e6,
        after_ns=10e6 / speedup,
        speedup=speedup,
        interval=(low, high),
        verdict=verdict,
    )


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (row("faster"), "faster by 20% (17 to 23%), losses identical: 10ms → 8ms a step"),
        (row("slower", 0.5, 0.4, 0.6), "slower by 100%, losses identical: 10ms → 20ms a step"),
        (row("no gain", 1.0, 0.98, 1.02), f"no gain: 1.00 {TIMES} (0.98 to 1.02), losses identical"),
        (row("inconclusive", 1.0, 0.5, 2.0), f"inconclusive: 1.00 {TIMES} (0.50 to 2.00), losses identical"),
        (row("results differ", losses="different"), "RESULTS DIFFER: this is not the same training; 10ms → 8ms a step"),
        (Try(finding="", remedy="a: b", verdict="failed", reason="boom"), "failed"),
    ],
)
def test_a_verdict_is_said_with_its_figures(one, said):
    assert sentence(one) == said


def test_the_best_stands_first_and_what_does_not_apply_last():
    idle = Try(finding="", remedy="prefetch", verdict="not applicable", reason="the loader has no workers")
    text = tries_text(
        [idle, row("no gain", 1.0, 0.9, 1.01, remedy="one-thread: x"), row("faster")], width=200, color=False
    )
    titles = [line.split("  ")[0] for line in text.splitlines() if not line.startswith(" ")]
    assert titles == ["compile", "one-thread", "not applicable"]
    assert "write model.compile()" in text
    assert "prefetch: the loader has no workers" in text


def test_the_options_of_a_search_are_listed():
    text = tries_text([row("faster")], width=200, color=False, options=["a", "b"])
    assert text.splitlines()[-2:] == ["          + a", "          + b"]


def test_markdown_interprets_nothing_of_the_program():
    one = Try(finding="", remedy="", verdict="failed", reason="<img src=x> [a](command:b)")
    text = verified_markdown(one, "train.py `x` | <b>", "HEAD", "")
    assert text.splitlines()[0] == "### DeepScope: failed"
    assert "the folder as it is" in text
    assert "<img" not in text.replace("\\<", "")
    assert "[a]" not in text.replace("\\[", "")


def test_the_json_has_the_documented_keys_and_null_for_what_is_unknown():
    (one,) = json.loads(tries_json([Try(finding="DS001", remedy="", verdict="not applicable", reason="r")]))["tries"]
    assert one == {
        "finding": "DS001", "remedy": "", "before_ns": None, "after_ns": None, "speedup": None, "interval": None,
        "verdict": "not applicable", "reason": "r", "losses": "not comparable",
    }  # fmt: skip
