"""Who held memory, in the `deepscope` object of a trace."""

from __future__ import annotations

from typing import Annotated

import msgspec

from deepscope.trace.format.tolerant import Count, Moment

HELD_KINDS = ("parameters", "gradients", "optimizer", "inputs", "activations")
"""What a survey of the memory tells apart; of a storage that is several, the first counts."""

ELSEWHERE = len(HELD_KINDS)
"""The kind of a living tensor of the CPU that none of these holds, as the window begins: it counts as live."""


class Held(msgspec.Struct, array_like=True, frozen=True):
    """A storage that a survey of the memory found, and what holds it."""

    kind: Annotated[int, msgspec.Meta(ge=0, le=ELSEWHERE)]
    """Index into `HELD_KINDS`, or `ELSEWHERE`."""
    device_type: Annotated[int, msgspec.Meta(ge=-1, lt=2**15)]
    """torch's DeviceType."""
    device_id: Annotated[int, msgspec.Meta(ge=-1, lt=2**15)]
    address: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)] = 0


class Survey(msgspec.Struct, frozen=True):
    """What was found to hold memory at one moment."""

    at_ns: Moment
    """On the trace's clock; while a trace is being made, the number of the span that marks the moment."""
    occasion: str
    """`begin` and `end` of the window, `step`, `backward` before and `gradients` after a backward pass, `optimizer`
    after its step, `inputs` as a module is called or a loader hands out a batch, `failure` as an exception passes."""
    held: list[Held] = []


class Release(msgspec.Struct, array_like=True, frozen=True):
    """The end of a storage that the survey at the window's beginning had found; the CPU's allocator tells of none."""

    at_ns: Moment
    """As in `Survey`."""
    device_type: Annotated[int, msgspec.Meta(ge=-1, lt=2**15)]
    device_id: Annotated[int, msgspec.Meta(ge=-1, lt=2**15)]
    address: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class OutOfMemory(msgspec.Struct, frozen=True):
    """An allocation that failed, and with it the run."""

    at_ns: Moment
    """When the exception reached the recorder; as in `Survey`."""
    error: str = ""
    """The exception's class."""
    message: str = ""
    """The first line of what it says."""
    on_cpu: bool = False
    """Whether it was the CPU's memory."""


class MemoryAccount(msgspec.Struct):
    """Who held memory in a window, told by identity: by the addresses of what models, optimizers and autograd hold."""

    surveys: list[Survey] = []
    releases: list[Release] = []
    failure: OutOfMemory | None = None
    cost_ns: Count = 0
    """What the surveys took."""
    warnings: list[str] = []
