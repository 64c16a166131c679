"""A trace is parsed once: everything that is asked of it afterwards comes from what was kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from deepscope.analysis.build import profile_of
from deepscope.dashboard.background import NotYetError
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from deepscope.processes import end_all
from deepscope.records import View
from deepscope.store import single_trace
from deepscope.store.files import single_file
from deepscope.store.single_trace import collect_parsed, keep_parsed, open_attribution
from recorded_traces import each_trace

T = TypeVar("T")
PATIENCE_S = 120


@pytest.mark.parametrize("path", each_trace())
def test_the_profile_of_what_was_kept_is_that_of_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = single_file(str(path))
    assert file is not None
    with collect_parsed() as parsed:
        made = open_attribution(file, workers=0)
    (one,) = parsed
    keep_parsed(one)
    monkeypatch.setattr("deepscope.trace.read.read_trace", None)
    kept = open_attribution(file)
    assert kept is not made
    views = [View(), View(details=("shapes", "stacks")), View(phase="forward")]
    views += [View(step=number) for number in made.training.steps.number[:1].tolist()]
    for view in views:
        first, again = profile_of(made, view), profile_of(kept, view)
        assert msgspec.msgpack.encode(first) == msgspec.msgpack.encode(again)


def test_what_is_kept_of_another_version_of_the_file_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    file = single_file(str(path))
    assert file is not None
    with collect_parsed() as parsed:
        open_attribution(file)
    keep_parsed(parsed[0])
    path.write_text('{"traceEvents": []}')
    changed = single_file(str(path))
    assert changed is not None
    assert len(open_attribution(changed).trace.events) == 0
    with collect_parsed() as parsed:
        assert len(open_attribution(file, cache=False).trace.events) == 0
    assert len(parsed) == 1


def answered(question: Callable[[], T]) -> T:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return question()
        except NotYetError:
            assert time.monotonic() < end
            time.sleep(0.02)


def until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often a trace was parsed, in this process or in one that it starts."""
    log = tmp_path / "parses"
    log.touch()
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'deepscope.worker' in sys.orig_argv:\n"
        "    import deepscope.trace.read as read\n"
        "    real = read.read_trace\n"
        "    def counted(*given, **named):\n"
        f"        open({str(log)!r}, 'a').write('x')\n"
        "        return real(*given, **named)\n"
        "    read.read_trace = counted\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])]))
    real = single_trace.save_columns
    monkeypatch.setattr(single_trace, "save_columns", real)
    end_all()
    return lambda: len(log.read_text())


def test_a_servers_questions_parse_a_trace_once(counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(one for one in each_trace_path() if "grafted-device" in one.name)
    file = single_file(str(path))
    assert file is not None
    monkeypatch.setattr("deepscope.trace.read.read_trace", None)  # nothing is parsed here
    library = Library([str(path)])
    try:
        whole = answered(lambda: library.profile(Choice()))
        assert counted() == 1
        until(lambda: single_trace.has_columns("attribution", file, partial=False))
        step = whole.steps[0].number
        for choice in (Choice(step=step), Choice(phase="forward")):
            answered(lambda choice=choice: library.profile(choice))  # type: ignore[misc]
        answered(lambda: library.profile(Choice(), ("shapes", "stacks")))
        answered(lambda: library.ranks(Choice()))
        assert answered(lambda: library.timeline(Choice())).head().slices > 0
        answered(lambda: library.moments(Choice()))
        assert counted() == 1
    finally:
        library.close()
        end_all()


def each_trace_path() -> list[Path]:
    return [one.values[0] if hasattr(one, "values") else one for one in each_trace()]  # type: ignore[misc]
