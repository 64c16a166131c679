"""What owns work: lines, functions and modules, and the paths of calls that lead to lines."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Annotated

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
from deepscope.records.numbers import Numbers
from deepscope.records.why import Verdict, Why

_INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")

NO_LINE = "(no user line)"
"""What the work is called that reached no line of the user's."""


def short_path(path: str, root: str = "") -> str:
    """A path relative to the recorded project root, else to the current folder, else to the installed packages."""
    if root and (inner := path_below(path, root)):
        return inner
    with suppress(OSError):  # the current folder may have been removed
        # Compared as text, with the trace's own separators.
        if inner := path_below(path, os.getcwd()):  # noqa: PTH109
            return inner
    return installed_path(path)


def installed_path(path: str) -> str:
    """The path from the installed packages on; as it is where it lies elsewhere."""
    return _INSTALLED.sub("", path)


def base_name(path: str) -> str:
    """The last part of a path of any system: `train.py`."""
    return path.replace("\\", "/").rpartition("/")[2]


def short_place(file: str, line: int, root: str = "") -> str:
    """`train.py:46`: a line, with its file as `short_path` has it."""
    return f"{short_path(file, root)}:{line}"


def path_below(path: str, root: str) -> str:
    """The path from a folder on; "" where it does not lie in it. Compared as text, on any system."""
    root = root.rstrip("/\\")
    if path.startswith(root) and path[len(root) : len(root) + 1] in {"/", "\\"}:
        return path[len(root) + 1 :]
    return ""


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
