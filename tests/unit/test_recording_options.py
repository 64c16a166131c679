"""The options of a recording: one set, by the same names wherever they are given."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import click
import pytest

from deepscope.capture.options import BUILT_IN_CODE, OPTION_NAMES, OPTIONS, OptionKeywords, RecordingOptions, markdown
from deepscope.cli.recording_options import SETTINGS, given_options
from deepscope.cli.run import run
from deepscope.errors import OptionError
from deepscope.lightning.keywords import LightningKeywords


def test_the_keywords_are_the_fields_with_their_types() -> None:
    assert get_type_hints(OptionKeywords) == get_type_hints(RecordingOptions)
    assert get_type_hints(OptionKeywords).items() <= get_type_hints(LightningKeywords).items()


def test_the_command_or_the_project_has_every_option_that_can_be_written_as_a_word() -> None:
    named = {parameter.name for parameter in run.params if isinstance(parameter, click.Option)}
    assert BUILT_IN_CODE < OPTION_NAMES
    assert OPTION_NAMES - named - SETTINGS.keys() == BUILT_IN_CODE


def test_the_commands_help_and_defaults_are_those_that_are_declared() -> None:
    shared = [
        parameter for parameter in run.params if isinstance(parameter, click.Option) and parameter.name in OPTIONS
    ]
    assert {parameter.name for parameter in shared} == {
        "topics", "wait", "warmup", "active", "time", "after", "ranks", "audit",
    }  # fmt: skip
    for parameter in shared:
        declared = OPTIONS[parameter.name]
        assert (parameter.help or "").startswith(declared.metadata["what"])
        is_told = declared.default is not None and declared.default is not False
        assert is_told == ("[default: " in (parameter.help or ""))
        assert not is_told or f"[default: {declared.default}]" in (parameter.help or "")


def test_the_page_has_the_table(repository: Path) -> None:
    text = (repository / "docs" / "recording.md").read_text(encoding="utf-8")
    assert "\n".join(markdown()) in text


def test_what_the_command_was_not_given_is_left_to_the_recordings_own_defaults() -> None:
    context = run.make_context("run", ["--active", "2", "--rank", "3", "--rank", "8-9", "--after", "2m", "train.py"])
    options = {name: value for name, value in context.params.items() if name in OPTION_NAMES}
    given = given_options(options)
    assert given == {"active": 2, "ranks": ("3", "8-9"), "after": 120}
    assert {field.name for field in fields(RecordingOptions)} > given.keys()
    chosen = RecordingOptions(active=2, ranks=("3", "8-9"))
    assert (chosen.active, chosen.ranks, chosen.wait) == (2, {3, 8, 9}, 1)


def test_no_number_is_no_limit_of_the_slowdown() -> None:
    with pytest.raises(OptionError, match="max_slowdown=nan"):
        RecordingOptions(max_slowdown=float("nan"))


def test_a_value_that_cannot_be_used_is_worded_for_the_command() -> None:
    with pytest.raises(OptionError) as caught:
        RecordingOptions(max_slowdown=0.5)
    assert caught.value.message(lambda name, value: f"--{name.replace('_', '-')} {value}").startswith(
        "--max-slowdown 0.5: "
    )
