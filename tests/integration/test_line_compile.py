"""Line scopes beside `torch.compile`: nothing is compiled anew for them, and compiled code claims no line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.capture.lines import UserCode
from deepscope.trace.kinds import Kind
from line_truth import TARGETS, Recording, load_target, recording
from node_truth import attributed

# Compiling needs a Python that dynamo knows; aot_eager goes through all of it but the code generator.
pytestmark = [
    pytest.mark.skipif(not torch._dynamo.is_dynamo_supported(), reason="this torch cannot compile on this Python"),
    pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning"),
    # dynamo itself looks, where it goes on after a graph break
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
]


@pytest.fixture(params=["eager", "aot_eager"])
def compiled(request: pytest.FixtureRequest) -> Any:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    target = load_target("compiled")
    net = torch.compile(target.Net(), backend=request.param)
    function = torch.compile(target.broken, backend=request.param)
    x = torch.randn(2, 4)
    yield lambda: target.step(net, function, x)
    torch._dynamo.reset()


def counts() -> dict[str, dict[str, int]]:
    from torch._dynamo.utils import counters

    return {name: dict(counters[name]) for name in ("stats", "frames", "graph_break")}


def record(folder: Path, code: Any, times: int = 2) -> Recording:
    with recording(folder, UserCode.find(root=TARGETS)) as done:
        for _ in range(times):
            code()
    return done[0]


def line_of(mark: str, target: str = "compiled") -> int:
    lines = (TARGETS / f"{target}.py").read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


def test_a_window_compiles_nothing_anew(compiled: Any, tmp_path: Path) -> None:
    compiled()
    compiled()
    before = counts()
    assert before["frames"]["ok"] >= 3
    for _ in range(2):
        record(tmp_path, compiled)
    compiled()
    assert counts() == before


def test_what_is_compiled_within_a_window_serves_after_it(compiled: Any, tmp_path: Path) -> None:
    record(tmp_path, compiled)
    before = counts()
    compiled()
    record(tmp_path, compiled)
    assert counts() == before


def test_a_window_compiles_only_the_users_code(compiled: Any, tmp_path: Path) -> None:
    """While eager parts of a compiled function run, dynamo looks at the hooks, too."""
    record(tmp_path, compiled)
    inside = counts()["frames"]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled()
    compiled()
    assert counts()["frames"] == inside


def test_compiled_operators_stand_at_the_line_that_called_compiled_code(compiled: Any, tmp_path: Path) -> None:
    compiled()
    found = record(tmp_path, compiled)

    def lines(name: str) -> set[int]:
        return {span.lines[0][1] for span in found.spans if span.name == name}

    forward = [span.lines[0][1] for span in found.spans if span.name == "aten::sin"]
    assert line_of("net") in forward
    assert lines("aten::exp") == {line_of("function")}
    assert lines("aten::floor") == {line_of("eager")}
    assert found.record.account.warnings == []
    source = (TARGETS / "compiled.py").read_text().splitlines()
    definitions = {number for number, text in enumerate(source, 1) if "def " in text}
    assert not definitions & {row.line for row in found.record.scopes if row.kind == 0}


@pytest.fixture(scope="module", params=["eager", "aot_eager"])
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attribution]:
    """A step of the target `graph_breaks`, as DeepScope reads it."""
    torch._dynamo.reset()
    target = load_target("graph_breaks")
    net, function = (torch.compile(one, backend=request.param) for one in (target.Net(), target.function))
    for _ in range(2):
        target.step(net, function, torch.randn(2, 4))
    yield attributed(tmp_path_factory.mktemp("broken"), lambda: target.step(net, function, torch.randn(2, 4)))
    torch._dynamo.reset()


def test_what_is_compiled_after_a_graph_break_stands_at_the_call_of_the_compiled_function(broken: Attribution) -> None:
    lines: dict[str, set[int]] = {}
    for event in (broken.trace.events.kind == Kind.OPERATOR).nonzero()[0].tolist():
        line = broken.scopes.locations[broken.owners.location[event]].line
        lines.setdefault(broken.trace.strings[broken.trace.events.name[event]], set()).add(line)

    def at(mark: str) -> set[int]:
        return {line_of(mark, "graph_breaks")}

    assert lines["aten::linear" if "aten::linear" in lines else "aten::addmm"] == at("net")
    assert {name: lines[f"aten::{name}"] for name in ("tan", "atan")} == {"tan": at("net"), "atan": at("net")}
    assert lines["aten::exp2"] == at("function")
    assert lines["aten::erf"] == at("erf")
    # A function that a compiled one calls, and that was compiled by itself, is called from there.
    assert "aten::sinh" in lines
    assert at("helper") <= lines["aten::sinh"] <= at("helper") | at("function")


@pytest.mark.skipif(
    torch.__version__ < (2, 3),
    reason=f"torch {torch.__version__} cannot tell the line of a jump in what it compiles",
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_decision_that_breaks_the_graph_stands_at_its_line(backend: str, tmp_path: Path) -> None:
    torch._dynamo.reset()
    deciding = torch.compile(load_target("graph_breaks").deciding, backend=backend)
    x = torch.full((2, 4), 0.5)  # its `while` goes round three times
    deciding(x)
    found = record(tmp_path, lambda: deciding(x), times=1)
    lines = [span.lines[0][1] for span in found.spans if span.name == "aten::_local_scalar_dense" and span.lines]
    marks = ["if", "while", "while", "while", "if again", "item"]
    assert lines == [line_of(mark, "graph_breaks") for mark in marks]
    torch._dynamo.reset()


def test_the_time_after_a_graph_break_is_the_callers_too(broken: Attribution) -> None:
    profile = build_profile(broken.trace)
    by_line = {line.line: line for line in profile.lines}
    disabled, broke = (by_line[line_of(mark, "graph_breaks")] for mark in ("disabled", "break"))
    assert [top.name for line in (disabled, broke) for top in line.top_operators] == []
    assert disabled.total_device_ns > disabled.self_device_ns
    assert broke.total_device_ns == broke.self_device_ns
    assert {line.function for line in profile.lines if "resume" in line.function} == set()
    names = {line.function: set() for line in profile.lines}
    for function in profile.functions:
        names[function.function].add(function.line)
    assert {name for name, starts in names.items() if len(starts) > 1} == set()
