"""What stands below a line: the modules, library lines, operators and kernels that its work ran in."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from deepscope.records.merging import First, Sum

_NUMBERED = re.compile(r"(?<![^.])\d+(?![^.])")
"""A component of a module's path that is a number: the 3 of `encoder.layers.3.mlp`."""

PartKind = Literal["module", "library", "operator", "kernel", "other"]


def without_numbers(path: str) -> str:
    """A module's path with `*` for each component that is a number."""
    return _NUMBERED.sub("*", path)


class PartKey(msgspec.Struct, array_like=True, frozen=True):
    """What a part is: many parts are of one place."""

    kind: First[PartKind]
    name: First[str]
    """A module's dotted path (its class where the trace has no paths), a library function's name, an operator's or a
    kernel's own name; "" for other."""
    file: First[str] = ""
    """Of a module the file that defines its class, of a library line its file; "" where none is known."""
    line: First[int] = 0
    """1-based; 0 where none is known. Of a module the first line of its `forward`."""

    @property
    def alike(self) -> PartKey:
        """The place of all modules whose paths differ in numbers alone (`encoder.layers.*.mlp`); any other as it is."""
        return msgspec.structs.replace(self, name=without_numbers(self.name)) if self.kind == "module" else self


class Part(msgspec.Struct, array_like=True):
    """A node of the trees below the nodes of the call tree."""

    call: First[int]
    """Index in `Profile.call_tree` of the node whose work it is a part of."""
    parent: First[int]
    """Index in `Profile.parts`; -1 where it stands directly below the call tree's node."""
    place: First[int]
    """Index in `Profile.places`."""
    self_device_ns: Sum = 0
    """In no part below it. The parts of a node of the call tree that has any sum to its `self_device_ns`."""
    backward_device_ns: Sum = 0
    """Part of `self_device_ns`."""
    calls: Sum = 0
    """Runs in which work was done, each in one call path; of a kernel its launches, of other the sum over what it
    stands for."""
