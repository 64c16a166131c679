"""What owns work: lines, functions and modules; the call tree that leads to lines, and the parts below it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import (
    Either,
    First,
    FirstKnown,
    Largest,
    RankSpread,
    Sum,
    largest_first,
    merged_by,
    record,
    spread_of,
    table,
    to_be_judged,
)
from deepscope.records.numbers import Numbers, Verdict, Why

NO_LINE = "(no user line)"
"""What the work is called that reached no line of the user's."""

LINE_KEY = ("file", "line", "function", "exact")
"""Records of two ranks that agree in these belong to the same line."""


class Top(msgspec.Struct, array_like=True):
    """One of the largest contributors to a line: an operator or a kernel."""

    name: First[str]
    device_ns: Sum
    count: Sum


class Library(msgspec.Struct):
    """Where in an installed package a user line's time goes."""

    module: First[str]
    """The Python module (`transformers.models.gpt2.modeling_gpt2`)."""
    function: First[str]
    operator: First[str]
    device_ns: Sum
    include: First[str]
    """The `include=` pattern that would open it up."""
    include_ns: Sum = 0
    """The line's device time in all that the pattern opens up."""


class Partner(msgspec.Struct):
    """A line that torch.compile fused kernels from together with another one."""

    file: First[str]
    line: First[int]
    shared_ns: Sum
    """The other line's part of the kernels that they share."""


_Tops = Annotated[list[Top], merged_by(table("name", order=largest_first("device_ns"), as_long_as_before=True))]
_LIBRARY_KEY = ("module", "function", "operator", "include")


class Line(Numbers, kw_only=True):
    """One line of user code. `file` is the absolute path as recorded."""

    file: First[str]
    line: First[int]
    function: First[str]
    exact: First[bool]
    """From line scopes. Otherwise `line` is the first line of the function and the numbers are the function's."""
    of_loop: Either = False
    """Not exact: the numbers are those of the loop that begins at `line`."""
    fused: Either = False
    """Not exact: all of its time is parts of kernels that torch.compile fused from this and other lines."""
    in_compiled_region: Either = False
    slowed: Either = False
    """Recording slowed it so much that its Python time is mostly an estimate: nothing is concluded from that."""
    shared_with: Annotated[
        list[Partner], merged_by(table("file", "line", order=largest_first("shared_ns"), as_long_as_before=True))
    ] = []
    """The lines that have the other parts of kernels that were fused, the largest share first."""
    text: FirstKnown[str | None] = None
    """The source line that ran, where the trace carries it."""
    verdict: Annotated[Verdict, merged_by(to_be_judged)] = ""
    """What holds it back; set when a profile is loaded."""
    why: Annotated[Why, merged_by(record)] = msgspec.field(default_factory=Why)
    """`cost_ns` by cause."""
    top_operators: _Tops = []
    top_kernels: _Tops = []
    libraries: Annotated[
        list[Library], merged_by(table(*_LIBRARY_KEY, order=largest_first("device_ns"), as_long_as_before=True))
    ] = []
    spread: Annotated[RankSpread | None, merged_by(spread_of("self_device_ns"))] = None
    """Of `self_device_ns` over the ranks; None for a single rank."""


class Function(Numbers, kw_only=True):
    """One function of user code, all its lines together; `line` is its first."""

    file: First[str]
    line: First[int]
    function: First[str]
    exact: Either = False
    spread: Annotated[RankSpread | None, merged_by(spread_of("self_device_ns"))] = None
    """Of `self_device_ns` over the ranks; None for a single rank."""


class Module(Numbers, kw_only=True, omit_defaults=True):
    """One `nn.Module` by path (`encoder.layers.0.linear1`); without paths by class and torch's number (`Linear_3`)."""

    path: First[str]
    class_name: First[str]
    parent: First[str] = ""
    """Path of the module above it in the tree; "" for none."""
    total_backward_device_ns: Sum = 0
    """Part of `total_device_ns`."""
    total_flops: Sum = 0
    own_parameters: Largest = 0
    """Elements of its own parameters; 0 where the trace does not tell."""
    parameters: Largest = 0
    """The same with those of the modules in it."""


class CallNode(msgspec.Struct, array_like=True):
    """A node of the call tree of user lines."""

    parent: First[int]
    """Index in `Profile.call_tree`; -1 for a root."""
    line: First[int]
    """Index in `Profile.lines`; -1 for "no line"."""
    self_device_ns: Sum
    self_cpu_ns: Sum
    backward_device_ns: Sum = 0


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


class FrameworkPart(msgspec.Struct, kw_only=True):
    """One of the things that a framework does between the user's lines, where a line calls its loop."""

    framework: First[str]
    part: First[str]
    """`loops`, `logging`, `checkpoints`, `callback EarlyStopping`."""
    file: First[str]
    line: First[int]
    """The line that calls the loop; `cost_ns` there is with it."""
    cost_ns: Sum
    """The sum over the parts of a line is its `framework_ns`."""
