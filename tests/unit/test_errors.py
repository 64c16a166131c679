"""Errors: worded at each edge in its own words for options, and carried from process to process as what they are."""

from __future__ import annotations

import pickle

import pytest

from deepscope import errors
from deepscope.errors import DeepScopeError, MissingExtraError, OptionError, TraceError, TruncatedTraceError, remake


def on_the_command_line(name: str, value: object) -> str:
    return f"--{name} {value}"


@pytest.mark.parametrize(
    ("error", "in_python", "worded"),
    [
        (OptionError("rank", 3, "no such rank"), "rank=3: no such rank", "--rank 3: no such rank"),
        (
            TruncatedTraceError("a.json: ends early", 8),
            "a.json: ends early; read the 8 events before it with partial=True",
            "a.json: ends early; read the 8 events before it with --partial True",
        ),
        (
            TruncatedTraceError("a.json: ends early", 0),
            "a.json: ends early; nothing in it can be read; record it again",
            "a.json: ends early; nothing in it can be read; record it again",
        ),
        (TraceError("a.json: no"), "a.json: no", "a.json: no"),
    ],
)
def test_each_edge_words_the_options_in_a_message(error: DeepScopeError, in_python: str, worded: str) -> None:
    assert str(error) == in_python
    assert error.message(on_the_command_line) == worded


@pytest.mark.parametrize(
    "error",
    [
        OptionError("rank", 3, "no such rank"),
        TruncatedTraceError("a.json: ends early", 8),
        MissingExtraError("click", "cli"),
        TraceError("a.json: no"),
    ],
)
def test_an_error_is_made_again_from_its_name_and_arguments(error: DeepScopeError) -> None:
    for again in (remake(type(error).__name__, list(error.args)), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("kind", "arguments"), [("ValueError", ["no"]), ("remake", ["no"]), ("OptionError", ["no"]), ("Unheard", ["no"])]
)
def test_what_is_no_error_of_this_version_is_told_as_a_trace_error(kind: str, arguments: list[object]) -> None:
    again = remake(kind, arguments)
    assert type(again) is TraceError
    assert str(again) == "no"


def test_every_error_is_public() -> None:
    found = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, DeepScopeError)}
    assert found <= set(errors.__all__)
