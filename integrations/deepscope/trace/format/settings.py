"""What was set in the process, in the `deepscope` object of a trace."""

from __future__ import annotations

import msgspec

from deepscope.trace.format.tolerant import Count


class LoaderSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a `DataLoader` of the process is set."""

    num_workers: Count = 0
    batch_size: Count = 0
    """0 where a sampler makes the batches."""
    pin_memory: bool = False
    persistent_workers: bool = False
    prefetch_factor: Count = 0
    """Batches that each worker makes ahead; 0 without workers."""


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
    trainer: dict[str, bool | int | float | str] = {}
    """Options of Lightning's Trainer by name; of fit also `first_batch`, the number of the step with which recording
    began or went on, `global_step`, what loggers counted then, `sanity_check_ns`, how long the sanity check before it
    took, and `planned_batches`, how many the run is to have (0 each where there was none, or it is not certain)."""
