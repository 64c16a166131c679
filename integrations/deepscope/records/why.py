"""What holds a line back: its cost divided among causes, and the figures beside them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import First, FirstKnown, Sum, merged_by, table

Verdict = Literal[
    "",
    "compute-bound",
    "memory-bound",
    "launch-bound",
    "host-bound",
    "waiting",
    "data",
    "waiting for a core",
    "slowed by recording",
    "communication",
    "mixed",
]
"""What holds a line back; "" where the trace does not tell (docs/numbers.md)."""


class Rate(msgspec.Struct, array_like=True):
    """Work of one type of floats and one intensity, whose operations and bytes are known."""

    dtype: First[str]
    """`float32`, `tf32`, `bfloat16`, `float16`, `float8`, `float64`; "" for what counts no operations."""
    intensity: First[int]
    """Operations a byte, as the power of two below; 0 for what counts no operations."""
    device_ns: Sum
    flops: Sum
    moved_bytes: Sum
    """The least: each input read once, each result written once."""


class Why(msgspec.Struct, kw_only=True):
    """A cost (`cost_ns` of a line) divided among its causes: the times but `occupied_ns` and `delay_ns` sum to it."""

    rates: Annotated[list[Rate], merged_by(table("dtype", "intensity"))] = []
    """Work that a roof tells of: its operations and bytes are known."""
    short_ns: Sum = 0
    """In kernels too short to fill the device; where the CPU is the device, in operators that are all dispatch."""
    communication_ns: Sum = 0
    """In collectives that no other kernel hides."""
    copies_ns: Sum = 0
    """In copies between host and device that no kernel hides."""
    hidden_ns: Sum = 0
    """In collectives and copies that other kernels hide: it holds nothing back."""
    unknown_ns: Sum = 0
    """In other work: its bytes are not known."""
    waiting_ns: Sum = 0
    """The device idle while the CPU waited for it; where the CPU is the device, Python blocked."""
    data_ns: Sum = 0
    """The device idle while data was loaded or copied to it; where the CPU is the device, waiting for the loader."""
    core_wait_ns: Sum = 0
    """Where the CPU is the device: Python able to run, without a core."""
    launch_ns: Sum = 0
    """The device idle while operators and the runtime launched work."""
    host_ns: Sum = 0
    """The device idle while the CPU did anything else; where the CPU is the device, Python running."""
    kernels: Sum = 0
    """Pieces of device work whose launch is known; of them are the next two."""
    delay_ns: Sum = 0
    """From the start of the launching call to the start on the device."""
    queued: Sum = 0
    """Work of the same device that was launched before, and not finished, at the launch."""
    occupied_ns: Sum = 0
    """Time in kernels times the estimated share of the warps that the device can hold."""
    occupancy_known_ns: Sum = 0
    """Time in kernels of which that share is known."""


class Peaks(msgspec.Struct, kw_only=True):
    """The best that a device can do: operations a second by type of floats, and bytes a second."""

    name: First[str]
    flops_per_s: FirstKnown[dict[str, float]]
    memory_bytes_per_s: First[float]
    source: First[str]
    """Where that is stated; "given" for what a user gave."""


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
