"""Line scopes beside `torch.compile`: nothing is compiled anew for them, and compiled code claims no line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from deepscope.capture.lines import UserCode
from line_truth import TARGETS, Recording, load_target, recording

# Compiling needs a Python that dynamo knows; aot_eager goes through all of it but the code generator.
pytestmark = [
    pytest.mark.skipif(not torch._dynamo.is_dynamo_supported(), reason="this torch cannot compile on this Python"),
    pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning"),
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


def line_of(mark: str) -> int:
    lines = (TARGETS / "compiled.py").read_text().splitlines()
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
    assert lines("aten::tan") == {line_of("break")}
    assert lines("aten::floor") == {line_of("eager")}
    assert found.record.account["warnings"] == []
    source = (TARGETS / "compiled.py").read_text().splitlines()
    definitions = {number for number, text in enumerate(source, 1) if "def " in text}
    assert not definitions & {row.line for row in found.record.scopes if row.kind == 0}
