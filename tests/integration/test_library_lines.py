"""Lines of hot libraries, recorded into a trace: what the trace tells of them, and that the user's numbers stay."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

import deepscope
from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from hot_library import HotLibrary, hot_library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[HotLibrary]:
    with hot_library(tmp_path, "hotlibtrace") as found:
        yield found


def record(library: HotLibrary, folder: Path, **options: Any) -> list[Path]:
    model = library.blocks.Stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(2, 8, requires_grad=True)
    chosen = {"libraries": "hot", "max_slowdown": float("inf"), "wait": 0, "warmup": 1, "active": 8, **options}
    with deepscope.profile(folder, root=library.root, **chosen) as prof:
        for _ in range(20):
            library.train.step(model, optimizer, x)
            prof.step()
    return sorted(folder.glob("*.pt.trace.json*"), key=lambda path: path.stat().st_mtime)


def without_library_lines(trace: Trace) -> Trace:
    keep = ~trace.library_lines
    columns = {name: getattr(trace.events, name)[keep] for name in trace.events.__slots__}
    return replace(trace, events=replace(trace.events, **columns))


def test_the_trace_tells_of_library_lines_and_no_number_of_the_users_changes(library: HotLibrary, tmp_path: Path):
    (path,) = record(library, tmp_path / "runs")
    trace = read_trace(path)
    header = trace.header
    assert header.configuration is not None
    assert header.configuration.libraries == "hot"
    assert header.lines.libraries == ["torch.optim", library.name]
    assert not header.lines.libraries_ended
    assert header.lines.library_entries >= trace.library_lines.sum() > 100
    assert trace.user_lines.sum() > 0
    told = {file.path: file for file in header.texts()}
    blocks = told[library.file("blocks")]
    assert (blocks.text, blocks.sha256) == (None, hashlib.sha256(Path(blocks.path).read_bytes()).hexdigest())
    assert told[str(library.root / f"train_{library.name}.py")].text

    header.lines.cost_ns = 0.0  # what recording them cost comes off the lines that called them
    found, bare = (msgspec.to_builtins(build_profile(one)) for one in (trace, without_library_lines(trace)))
    below = {"parts", "places", "library_lines"}  # what stands below the lines is what library lines are for
    assert {key for key in found if found[key] != bare[key]} == below
    listed = {(line["file"], line["line"]) for line in found["library_lines"]}
    assert (library.file("helpers"), library.line_of("helpers", "return y.tanh()")) in listed
    assert all(str(library.installed) not in line["file"] for line in found["lines"])


def test_each_operator_of_a_librarys_function_has_its_line_above_it_backward_too(library: HotLibrary, tmp_path: Path):
    (path,) = record(library, tmp_path / "runs")
    trace = read_trace(path)
    calls, events = attribute(trace).calls, trace.events

    def line_above(event: int) -> int:
        while event >= 0 and not trace.library_lines[event]:
            event = int(calls.up[event])
        return trace.scopes[events.scope[event]].line if event >= 0 else 0

    names = [trace.strings[name] for name in events.name]
    statement = library.line_of("helpers", "return y.tanh()")
    for name in ("aten::tanh", "aten::tanh_backward"):
        rows = [row for row, one in enumerate(names) if one == name and events.kind[row] == Kind.OPERATOR]
        assert len(rows) == 8 * 4
        assert sum(line_above(row) == statement for row in rows) >= len(rows) - 1, name


def test_stacks_of_operators_name_the_users_lines_alone(library: HotLibrary, tmp_path: Path):
    (path,) = record(library, tmp_path / "runs")
    document = json.loads(gzip.decompress(path.read_bytes()))
    stacks = {event["args"]["Call stack"] for event in document["traceEvents"] if "Call stack" in event.get("args", {})}
    assert stacks
    assert not any(str(library.installed) in stack for stack in stacks)


def test_the_second_window_knows_the_package_from_its_start(library: HotLibrary, tmp_path: Path):
    first, second = record(library, tmp_path / "runs", active=4, repeat=2)
    statement = library.line_of("blocks", "x = block(x)")

    def runs(path: Path) -> int:
        trace = read_trace(path)
        lines = [(scope.line, scope.library) for scope in trace.scopes]
        return sum(lines[one] == (statement, True) for one in trace.events.scope[trace.library_lines].tolist())

    assert runs(first) >= 4 * 3
    assert runs(second) == 4 * 4
    assert read_trace(second).header.lines.libraries == ["torch.optim", library.name]


def test_without_the_option_nothing_of_a_library_is_recorded(library: HotLibrary, tmp_path: Path):
    (path,) = record(library, tmp_path / "runs", libraries="off")
    trace = read_trace(path)
    assert not trace.library_lines.any()
    assert trace.header.lines.libraries == []
    assert trace.header.lines.library_entries == 0
