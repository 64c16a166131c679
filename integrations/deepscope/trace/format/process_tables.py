"""Tables of the `deepscope` object beside its lines: what was set, what was compiled, and who held memory."""

from __future__ import annotations

from typing import Annotated

import msgspec

from deepscope.trace.format.tolerant import Count, Moment


class LoaderSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a `DataLoader` of the process is set."""

    num_workers: Count = 0
    batch_size: Count = 0
    """0 where a sampler makes the batches."""
    pin_memory: bool = False
    persistent_workers: bool = False
    prefetch_factor: Count = 0
    """Batches that each worker makes ahead; 0 without workers."""
    dataset: str = ""
    """Module and class of the data set."""


class OptimizerSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an optimizer of the process is set, by its first group of parameters."""

    name: str = ""
    """Its class."""
    foreach: bool | None = None
    """None for torch's own choice; so are the next two."""
    fused: bool | None = None
    capturable: bool | None = None
    parameters: Count = 0


class ParallelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a `DistributedDataParallel` of the process is set."""

    find_unused_parameters: bool = False
    static_graph: bool = False
    gradient_as_bucket_view: bool = False
    bucket_bytes: Count = 0


class ProcessSettings(msgspec.Struct, omit_defaults=True):
    """What is set in the process, so that no advice recommends what is so already."""

    autocast: str = ""
    """The type (`bfloat16`) that the first module of the window ran its products in; "" outside autocast."""
    matmul_precision: str = ""
    """`highest`, `high` or `medium`: `torch.get_float32_matmul_precision()`."""
    cudnn_tf32: bool | None = None
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    """Whether torch is to use deterministic algorithms alone."""
    anomaly: bool | None = None
    """Whether autograd looks for anomalies, which costs time at every operator."""
    threads: Count = 0
    """On which an operator of the CPU may run."""
    loaders: list[LoaderSettings] = []
    optimizers: list[OptimizerSettings] = []
    parallel: list[ParallelSettings] = []
    frameworks: list[str] = []
    """What trains in the process beside Lightning's Trainer, by library and class: `transformers.Trainer`."""
    epochs: Count = 0
    """That transformers' Trainer is to run; 0 where that is not known."""
    trainer: dict[str, bool | int | float | str] = {}
    """Options of Lightning's Trainer by name; of fit also `first_batch`, the number of the step with which recording
    began or went on, `global_step`, what loggers counted then, `sanity_check_ns`, how long the sanity check before it
    took, and `planned_batches`, how many the run is to have (0 each where there was none, or it is not certain)."""


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
