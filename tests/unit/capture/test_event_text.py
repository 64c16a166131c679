"""Events as text: quotes in names are escaped in both layouts of an export, and a run has its own times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepscope.capture.saving.event_text import escape_names, scope_event

HEAD = '{"traceEvents": [\n  {\n    "name": "process_name", "ph": "M", "ts": 1, "pid": 1, "tid": 0,\n    "args": {\n'
LAYOUTS = (
    '    "ph": "X", "cat": "user_annotation", "name": "NAME", "pid": 1, "tid": 1,\n    "ts": 1, "dur": 2\n',
    '    "ph": "X",\n    "cat": "user_annotation",\n    "name": "NAME",\n    "pid": 1,\n    "ts": 1\n',
)


def export(layout: str, name: str) -> str:
    return HEAD + '      "name": "python"\n    }\n  },\n  {\n' + layout.replace("NAME", name) + "  }\n]}\n"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ['say "hi"', '"', '",'])
def test_quotes_are_escaped(tmp_path: Path, layout: str, name: str) -> None:
    path = tmp_path / "raw"
    path.write_text(export(layout, name))
    assert escape_names(path) == 1
    assert [event["name"] for event in json.loads(path.read_text())["traceEvents"]] == ["process_name", name]
    assert [file.name for file in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sound_export_stays_as_it_is(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "raw"
    path.write_text(text := export(layout, "plain, name"))
    assert escape_names(path) == 0
    assert path.read_text() == text


def test_the_event_keeps_its_place_and_tells_the_runs_times() -> None:
    text = scope_event(
        b'{"ph":"X","name":"@dl:3:20250","pid":1,"tid":"x","ts":150.25,"dur":3}',
        b'{"ph":"X","cat":"python_line","name":"a.py(1): f","pid":',
        b',"args":{"scope":3}}',
        times_ns=(4_711_130_000_007, 20_250),
    )
    event = json.loads(text)
    assert (event["pid"], event["tid"], event["args"]) == (1, "x", {"scope": 3})
    assert b'"ts":4711130000.007,"dur":20.250' in text
