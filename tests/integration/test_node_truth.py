"""Backward work stands at the line that made its node, as autograd itself tells it; that of forks where they began."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepscope.trace.kinds import Kind
from line_truth import TARGETS, load_target
from node_truth import attributed, compare_nodes

PROGRAMS = ["expressions", "modules", "control", "autograd_functions", "scripted"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_node_stands_at_the_line_that_made_it(name: str, tmp_path: Path) -> None:
    nodes = compare_nodes(name, tmp_path)
    both = nodes.read.keys() & nodes.kept.keys()
    assert {node: nodes.read[node] for node in both} == {node: nodes.kept[node] for node in both}
    assert len(both) >= 10


def test_graphs_of_torchscript_run_backward_as_one_node(tmp_path: Path) -> None:
    """Else the target would no longer show what it is there for."""
    kinds = {kind.rpartition("::")[2] for kind, _ in compare_nodes("scripted", tmp_path).read}
    assert "DifferentiableGraphBackward" in kinds


def test_forked_work_stands_at_the_line_that_forked_it(tmp_path: Path) -> None:
    target = load_target("forked")
    found = attributed(tmp_path, target.main, all_threads=True)
    source = (TARGETS / "forked.py").read_text().splitlines()
    fork = next(number for number, text in enumerate(source, 1) if text.endswith("# fork"))
    events, strings = found.trace.events, found.trace.strings
    lines: dict[str, set[int | None]] = {}
    for event in (events.kind == Kind.OPERATOR).nonzero()[0].tolist():
        location = int(found.owners.location[event])
        line = found.scopes.locations[location].line if location >= 0 else None
        lines.setdefault(strings[events.name[event]], set()).add(line)
    forward = ("<forked function>", "aten::lgamma", "aten::exp2", "aten::expm1", "aten::log1p")
    backward = ("LgammaBackward0", "Exp2Backward0", "Expm1Backward0", "Log1PBackward0", "aten::digamma")
    assert {name: lines[name] for name in (*forward, *backward)} == {name: {fork} for name in (*forward, *backward)}
