"""What a training framework does on its own account, between the user's lines: Lightning's loops, callbacks, logging.

The line that calls `trainer.fit(…)` is open all the while. Work that is launched there belongs to that line. But
Python's time there, and the devices' idle time, is the framework's, and the line has no say in it. Lightning reports
what it does by name, as spans of the trace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to
from deepscope.analysis.array_ops.selection import Mask, distinct, of_kind
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

LIGHTNING = "Lightning"
LOOPS = "loops"
_ACTION = "[pl][profile]"
_DRIVES = re.compile(r"(?:^|[.\]])(?:train_dataloader|val|test|predict|sanity_check)_next$|^run_training_batch$")
"""The line that these run in is one that the framework's loop runs in."""
_NOT_ITS_OWN = re.compile(r"_next$|\.backward$|^backward$")
"""Loading data and the backward pass: the loader's time, and waiting for autograd."""
_CALLBACK = re.compile(r"^\[Callback\](\w+)")
_TORCHS = re.compile(r"^(?:Optimizer\.|enumerate\(DataLoader\)#)")


@dataclass(frozen=True, slots=True)
class FrameworkSpans:
    """Spans directly within runs of the lines that call the framework's loop; arrays of shape (k,)."""

    nodes: Int64
    """The events, ascending."""
    run: Int64
    """The event of the line's run that each lies in."""
    part: Int64
    """What the framework does in it, an index into `parts`; -1 where it is not the framework that works."""
    parts: list[str]
    """`loops`, the first, is also what it does where no span is open."""

    @property
    def hosts(self) -> Int64:
        """The runs of lines that the framework's loop runs in; ascending."""
        return distinct_values(self.run)

    def only(self, chosen: Mask) -> FrameworkSpans:
        """Some of them; `chosen` has shape (k,)."""
        return FrameworkSpans(self.nodes[chosen], self.run[chosen], self.part[chosen], self.parts)


def find_framework(trace: Trace, marks: Mask, parent: Int64) -> FrameworkSpans:
    """The spans of the framework.

    Args:
        trace: any trace; most have none.
        marks: which events stand for lines; shape (n,).
        parent: the event that encloses each one on its thread; shape (n,).
    """
    parts = [LOOPS]
    strings, names = trace.strings, trace.events.name
    of_name = np.full(len(strings) + 1, _NEITHER, np.int64)
    drives = np.zeros(len(strings) + 1, np.bool_)
    annotations = of_kind(trace, Kind.ANNOTATION)
    for index in distinct(names[annotations], len(strings)):
        of_name[index], drives[index] = _understood(strings[index], parts)
    nodes = np.flatnonzero(annotations)
    nodes = nodes[of_name[names[nodes]] != _NEITHER]
    if not drives[names[nodes]].any():
        return FrameworkSpans(nodes[:0], nodes[:0], nodes[:0], parts)
    run = nearest_to(parent[nodes], parent, marks | of_kind(trace, Kind.OPERATOR, Kind.RUNTIME))
    direct = (run >= 0) & marks[run]
    nodes, run = nodes[direct], run[direct]
    hosts = np.zeros(len(names), np.bool_)
    hosts[run[drives[names[nodes]]]] = True
    kept = hosts[run]
    return FrameworkSpans(nodes[kept], run[kept], of_name[names[nodes[kept]]], parts)


_NEITHER = -2


def _understood(name: str, parts: list[str]) -> tuple[int, bool]:
    """The part that a span's name stands for, added to `parts` where it is new, and whether it drives a loop."""
    if not name.startswith(_ACTION):
        return (-1 if _TORCHS.match(name) else _NEITHER), False
    action = name[len(_ACTION) :]
    drives = _DRIVES.search(action) is not None
    if _NOT_ITS_OWN.search(action):
        return -1, drives
    part = _part(action)
    if part not in parts:
        parts.append(part)
    return parts.index(part), drives


def _part(action: str) -> str:
    if found := _CALLBACK.match(action):
        return f"callback {found[1]}"
    if action.startswith("[Logger]"):
        return "logging"
    return "checkpoints" if action.endswith("save_checkpoint") else LOOPS
