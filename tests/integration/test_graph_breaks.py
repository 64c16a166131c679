"""DS020 names the lines at which dynamo breaks graphs, and the functions that it compiles again in a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import deepscope
from deepscope.records import Finding
from line_truth import TARGETS, load_target

pytestmark = [
    pytest.mark.skipif(not torch._dynamo.is_dynamo_supported(), reason="this torch cannot compile on this Python"),
    pytest.mark.skipif(torch.__version__ < (2, 9), reason=f"torch {torch.__version__} cannot say why it recompiles"),
]
SOURCE = (TARGETS / "fused.py").read_text().splitlines()


@pytest.fixture
def broken() -> Iterator[Any]:
    torch._dynamo.reset()
    yield torch.compile(load_target("fused").broken, backend="eager", dynamic=False)
    torch._dynamo.reset()


def recorded(folder: Path, function: Any, *inputs: torch.Tensor, **options: Any) -> list[Finding]:
    with deepscope.profile(folder, root=TARGETS, **options) as recording:
        for x in inputs:
            function(x)
    assert recording.profile is not None
    return [one for one in recording.profile.findings if one.code == "DS020" and one.file.endswith("fused.py")]


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SOURCE, 1) if line.strip() == text)


def test_a_break_is_named_though_it_was_compiled_before_the_window(broken: Any, tmp_path: Path) -> None:
    x = torch.randn(4)
    broken(x)
    (found,) = recorded(tmp_path, broken, x, x, x)
    assert (found.line, found.function) == (line_of("torch._dynamo.graph_break()"), "broken")
    assert found.evidence["graph_breaks"] == 1
    assert "graph_break" in str(found.evidence["reason"])
    assert "recompilations" not in found.evidence
    assert found.doc == "docs/findings/DS020.md"


def test_a_recompilation_in_the_window_is_named_at_the_function_with_its_time(broken: Any, tmp_path: Path) -> None:
    broken(torch.randn(4))
    found = recorded(tmp_path, broken, torch.randn(5), torch.randn(4))
    again = {one.line: one for one in found if "recompilations" in one.evidence}
    first = again[line_of("def broken(x):")]
    assert first.evidence["recompilations"] == 1
    assert 0 < first.evidence["compiling_ns"] <= first.saving_ns
    assert "size" in str(first.evidence["recompiled_because"])


def test_a_function_that_was_compiled_again_and_again_before_the_window_is_named_without_a_saving(
    broken: Any, tmp_path: Path
) -> None:
    for size in (4, 5, 6):
        broken(torch.randn(size))
    found = recorded(tmp_path, broken, torch.randn(4))
    again = {one.line: one for one in found if "earlier_recompilations" in one.evidence}
    first = again[line_of("def broken(x):")]
    assert first.evidence["earlier_recompilations"] >= 2, "what follows the break was, too"
    assert first.evidence["earlier_compiling_ns"] > 0
    assert "size" in str(first.evidence["recompiled_because"])
    assert "recompilations" not in first.evidence
    assert first.saving_ns < first.evidence["earlier_compiling_ns"]
    assert "mark_dynamic" in first.remedy.text


def test_without_it_nothing_is_told_of_compiled_code(broken: Any, tmp_path: Path) -> None:
    assert recorded(tmp_path, broken, torch.randn(4), compiled_lines=False) == []
