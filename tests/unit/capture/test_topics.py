"""Topics: one table for the options, the command's help and the page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deepscope.capture.options import OPTION_NAMES, RecordingOptions, checked_options
from deepscope.capture.topics import PRESETS, TOPICS, markdown
from deepscope.cli.recording_options import given_options
from deepscope.cli.run import run
from deepscope.errors import OptionError
from deepscope.lightning.keywords import choose


def held(options: RecordingOptions) -> set[str]:
    return {name for name, topic in TOPICS.items() if getattr(options, topic.option) == topic.on}


@pytest.mark.parametrize("name", TOPICS)
def test_one_topic_alone_is_on_with_what_it_needs(name: str):
    assert held(RecordingOptions(topics={name})) == {name, *TOPICS[name].with_it}


def test_no_topics_are_the_defaults():
    options = RecordingOptions()
    assert options.topics is None
    assert RecordingOptions(topics="default") == dataclasses.replace(options, topics=frozenset(held(options)))


def test_sets_hold_what_they_say():
    assert held(RecordingOptions(topics="minimal")) == held(RecordingOptions(topics=())) == set()
    assert held(RecordingOptions(topics="everything")) == TOPICS.keys() - {"threads"}
    assert held(RecordingOptions(topics={"default", "memory"})) == held(RecordingOptions()) | {"memory"}
    assert held(RecordingOptions(topics=" lines, shapes,")) == {"lines", "shapes"}


def test_other_options_stay_as_they_are():
    options = RecordingOptions(topics="lines", wait=4, include=["a"], all_threads=False)
    assert (options.wait, options.include, options.all_threads) == (4, ("a",), False)


def test_options_survive_a_copy():
    options = RecordingOptions(topics={"flops", "lines"}, wait=2)
    assert dataclasses.replace(options, wait=3) == RecordingOptions(topics={"flops", "lines"}, wait=3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"topics": "lines", "lines": False}, "lines=False contradicts the topic 'lines'"),
        ({"topics": "libraries", "modules": False}, "modules=False contradicts the topic 'modules'"),
        ({"topics": "lines", "profile_memory": True}, "profile_memory=True asks for 'memory', which is none of them"),
        ({"topics": {"lines"}, "libraries": "hot"}, "libraries='hot' asks for 'libraries'"),
        ({"topics": "line"}, "there is no topic 'line'; there are: lines, modules"),
        ({"topics": 3}, "must be names of topics"),
        ({"topics": [1]}, "must be names of topics"),
    ],
)
def test_a_contradiction_is_told(given: dict[str, Any], words: str):
    for make in (checked_options, lambda options: RecordingOptions(**options)):
        with pytest.raises(OptionError) as caught:
            make(given)
        assert caught.value.option == "topics"
        assert words in str(caught.value)


def test_an_option_at_its_default_contradicts_too_where_it_was_given():
    with pytest.raises(OptionError, match="lines=True asks for 'lines'"):
        checked_options({"topics": "modules", "lines": True})


def test_what_agrees_is_no_contradiction():
    assert checked_options({"topics": "lines,memory", "profile_memory": True, "modules": False}).profile_memory


def test_lightning_and_the_command_take_them():
    assert held(choose(None, None, {"topics": {"shapes"}}).recording) == {"shapes"}
    context = run.make_context("run", ["--topics", "lines,memory", "train.py"])
    options = {name: value for name, value in context.params.items() if name in OPTION_NAMES}
    assert held(checked_options(given_options(options))) == {"lines", "memory"}


def test_the_commands_help_lists_every_topic_in_eighty_columns():
    text = CliRunner().invoke(run, ["--help"], terminal_width=80).output
    listed = text.partition("Topics (--topics)")[2]
    assert [name for name in (*TOPICS, *PRESETS) if f"  {name} " not in listed] == []
    assert max(map(len, listed.splitlines())) <= 80


def test_the_page_has_the_table(repository: Path):
    text = (repository / "docs" / "recording.md").read_text(encoding="utf-8")
    assert "\n".join(markdown()) in text
