"""The line that a scope gives an operator is the line that an independent witness saw it run on, for every operator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from line_truth import TARGETS, WITNESS, Recording, Span, load_target, run_target

PROGRAMS = ["expressions", "modules", "autograd_functions", "suspended", "control", "threads"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_operator_stands_in_the_line_that_the_witness_saw(name: str, tmp_path: Path) -> None:
    found = run_target(name, tmp_path, with_witness=True)
    file = str(TARGETS / f"{name}.py")
    wrong = [
        (span.name, span.lines[:1], [child.name for child in span.children])
        for span in found.witnessed
        if span.lines[:1] != ([(file, line)] if (line := int(span.name[len(WITNESS) :])) else [])
    ]
    assert wrong == []
    assert len(found.witnessed) >= 10
    assert found.record.account["warnings"] == []


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "threads"])
def test_the_witness_changes_no_line(name: str, tmp_path: Path) -> None:
    def outermost(found: Recording) -> list[tuple[str, tuple[str, int]]]:
        return [(span.name, span.lines[0]) for span in found.operators if span.lines]

    alone = outermost(run_target(name, tmp_path, with_witness=False))
    watched = outermost(run_target(name, tmp_path, with_witness=True))
    # A dispatch mode makes autograd keep a few operators apart that torch runs at one go (aten::to of a scalar).
    common = {entry for entry in alone if entry in set(watched)}
    assert [entry for entry in alone if entry in common] == [entry for entry in watched if entry in common]
    assert len(common) >= 0.9 * len(set(alone))


@pytest.mark.parametrize("name", ["expressions", "modules", "control"])
def test_backward_nodes_join_to_the_line_that_made_them(name: str, tmp_path: Path) -> None:
    """Anomaly mode keeps the traceback of the line that made each node; the trace must say the same by its numbers."""
    nodes = nodes_by_anomaly(name)
    found = run_target(name, tmp_path, with_witness=False)
    main = found.spans[0].thread
    forward = [span for span in found.spans if span.thread == main and span.args.get("Fwd thread id") == 0]
    backward = [
        span
        for span in found.spans
        if span.name.startswith("autograd::engine::evaluate_function: ") and "Accumulate" not in span.name
    ]
    assert len(backward) >= 5
    unexpected = []
    for span in backward:
        partner = partner_of(span, forward)
        kind = span.name.rpartition(": ")[2]
        if partner is None or (kind, partner.lines[0][1]) not in nodes:
            unexpected.append((span.name, partner.lines[:1] if partner else None))
    assert unexpected == []
    seen = {(span.name.rpartition(": ")[2], p.lines[0][1]) for span in backward if (p := partner_of(span, forward))}
    assert seen == nodes


def partner_of(backward: Span, forward: list[Span]) -> Span | None:
    """The latest-started forward operator before it with the largest number up to its own."""
    # With a hook on its output the node's own span, within the first, carries the number.
    numbers = [
        span.args["Sequence number"] for span in (backward, *backward.children) if "Sequence number" in span.args
    ]
    number = numbers[0]
    before = [
        span for span in forward if span.start_ns < backward.start_ns and span.args.get("Sequence number", -1) <= number
    ]
    return max(before, key=lambda span: (span.args.get("Sequence number", -1), span.start_ns), default=None)


def nodes_by_anomaly(name: str) -> set[tuple[str, int]]:
    """Kind and line of each node that a target's backward passes run, from the traceback of its making."""
    module = load_target(name)
    nodes: set[tuple[str, int]] = set()

    def collect(root: torch.Tensor, *_args: object, **_kwargs: object) -> None:
        todo, done = [root.grad_fn], set()
        while todo:
            node = todo.pop()
            if node is None or node in done:
                continue
            done.add(node)
            todo += [following for following, _ in node.next_functions]
            lines = re.findall(
                rf'File "{re.escape(str(module.__file__))}", line (\d+)', "".join(node.metadata.get("traceback_", []))
            )
            if lines and "Accumulate" not in node.name():
                nodes.add((node.name(), int(lines[-1])))
        original(root)

    original = torch.Tensor.backward
    # The setting behind detect_anomaly(), which itself warns that it is slow.
    with torch.autograd.set_detect_anomaly(True, check_nan=False), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "backward", collect)
        module.main()
    return nodes
