"""What torch.compile told of its graphs, in the `deepscope` object of a trace."""

from __future__ import annotations

from typing import Annotated

import msgspec

from deepscope.trace.format.tolerant import Count


class SourcePlace(msgspec.Struct, array_like=True, frozen=True):
    """A line in a stack that compiled code was made from."""

    file: Count
    """Index into `Header.files`."""
    line: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    function: str
    caller: int = -1
    """Index into `CompiledCode.places` of the line that called this one; -1 for none within the graph."""
    library: bool = False
    """Not the user's code."""
    first_line: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0
    """Of the function; 0 where not known."""


class CompiledKernel(msgspec.Struct, array_like=True, frozen=True):
    """One call of a kernel in a compiled graph."""

    name: str
    """Inductor's: `triton_poi_fused_add_0`, `cpp_fused_add_0`, `extern_kernels.addmm`."""
    sources: list[tuple[Count, Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]]] = []
    """Index into `CompiledCode.places`, and how many nodes of the graph the kernel has from there."""


class CompiledGraph(msgspec.Struct, frozen=True):
    """A graph that torch.compile made code of; its calls are the events `## Call CompiledFxGraph KEY ##`."""

    key: str = ""
    kernels: list[CompiledKernel | None] = []
    """In the order of their calls."""


class GraphBreak(msgspec.Struct, array_like=True, frozen=True):
    """A place at which dynamo could not go on with a graph."""

    place: Count
    """Index into `CompiledCode.places`."""
    reason: str = ""


class Recompilation(msgspec.Struct, array_like=True, frozen=True):
    """A function that was compiled though it had been compiled before."""

    place: Count
    """Index into `CompiledCode.places`: its first line."""
    reason: str = ""
    duration_ns: Count = 0
    earlier: bool = False
    """Before the window."""


class CapturedGraph(msgspec.Struct, frozen=True):
    """A CUDA graph that was captured under DeepScope's eyes."""

    graph: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0
    """The upper half of `graph node id` in the arguments of the work that its replays do."""
    nodes: list[tuple[Annotated[int, msgspec.Meta(ge=0, lt=2**32)], Count]] = []
    """Lower halves of these ids, and where the nodes were captured (indexes into `CompiledCode.places`)."""


class CompiledCode(msgspec.Struct):
    """What torch.compile tells of the graphs that ran in the window."""

    graphs: list[CompiledGraph] = []
    """Those that ran and know their lines; one that was compiled without is not here."""
    places: list[SourcePlace | None] = []
    breaks: list[GraphBreak] = []
    """Those that dynamo met before the window ended."""
    recompilations: list[Recompilation] = []
    """Those of the process up to the window's end, as far as dynamo keeps them."""
    captures: list[CapturedGraph] = []
    """Of CUDA graphs, whether or not the window replays them."""
