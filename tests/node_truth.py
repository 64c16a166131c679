"""Runs a target program under DeepScope beside autograd's own account of the line that made each node.

Anomaly mode keeps the Python traceback of each node's making, and of a node made while another ran, that node. Both
accounts name a node by its sequence number, so that the one can be held against the other, node by node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import deepscope
from deepscope.analysis.ownership.attribution import Attribution, attribute
from deepscope.trace.joins.backward import backward_partners
from deepscope.trace.read import read_trace
from line_truth import TARGETS, load_target

__all__ = ["Nodes", "attributed", "compare_nodes"]

ENGINE = "autograd::engine::evaluate_function: "


@dataclass
class Nodes:
    """Lines by (node's name, sequence number): as DeepScope reads them from the trace, and as autograd kept them."""

    read: dict[tuple[str, int], int | None]
    kept: dict[tuple[str, int], int]


def attributed(folder: Path, code: Any, **options: Any) -> Attribution:
    """What DeepScope makes of a recording of `code()`."""
    with deepscope.profile(folder, root=TARGETS, active=1, **options) as prof:
        code()
        prof.step()
    (path,) = folder.rglob("*.pt.trace.json*")
    return attribute(read_trace(path))


def compare_nodes(name: str, folder: Path) -> Nodes:
    """The nodes of all backward passes of a target."""
    module = load_target(name)
    with collected(str(module.__file__)) as kept:
        found = attributed(folder, module.main)
    return Nodes(dict(read_nodes(found)), kept)


def read_nodes(found: Attribution) -> Iterator[tuple[tuple[str, int], int | None]]:
    trace = found.trace
    for root in backward_partners(trace)[0].tolist():
        number = int(trace.events.sequence[root])
        if number >= 0:
            location = int(found.owners.location[root])
            line = found.scopes.locations[location].line if location >= 0 else None
            yield (trace.strings[trace.events.name[root]].removeprefix(ENGINE), number), line


@contextmanager
def collected(file: str) -> Iterator[dict[tuple[str, int], int]]:
    """While open, the nodes of each graph that a backward pass is about to run are noted with their lines."""
    kept: dict[tuple[str, int], int] = {}
    run = torch.autograd.graph._engine_run_backward

    def collect(roots: Any, *arguments: Any, **options: Any) -> Any:
        todo, done = [root.grad_fn for root in roots], set()
        while todo:
            node = todo.pop()
            if node is None or node in done:
                continue
            done.add(node)
            todo += [following for following, _ in node.next_functions]
            if "AccumulateGrad" not in node.name():
                kept[node.name(), node._sequence_nr()] = _line_of(node, file)
        return run(roots, *arguments, **options)

    # The setting behind detect_anomaly(), which itself warns that it is slow.
    with torch.autograd.set_detect_anomaly(True, check_nan=False), pytest.MonkeyPatch.context() as patch:
        for user in (torch.autograd, torch.autograd.graph):
            patch.setattr(user, "_engine_run_backward", collect)
        yield kept


def _line_of(node: Any, file: str) -> int:
    """The line of the target that made a node; of one that the engine made, that of the node which it ran."""
    while True:
        *_, (line, rest) = re.findall(
            rf'File "{re.escape(file)}", line (\d+)(?s:(.*?))(?=File "{re.escape(file)}"|\Z)',
            "".join(node.metadata["traceback_"]),
        )
        maker = node.metadata.get("parent_")
        if maker is None or "in _engine_run_backward" not in rest:
            return int(line)
        node = maker
