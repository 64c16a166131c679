"""What is seen of a program while it runs unchanged: what remedies need to know before they are tried."""

from __future__ import annotations

import msgspec

TRAINERS = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")
"""The modules that define Lightning's Trainer, under both of its names."""


class LoaderFacts(msgspec.Struct, kw_only=True):
    """A `DataLoader` that the program has iterated over."""

    dataset: str
    """The class's name."""
    workers: int
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: int | None
    is_iterable: bool
    """Whether its dataset is an `IterableDataset`."""
    is_sharded: bool
    """Whether an iterable dataset asks which worker it is in."""
    start_method: str
    """Of worker processes: `fork`, `spawn` or `forkserver`."""
    unpicklable: str = ""
    """Why the dataset or its functions cannot be sent to a worker that is not forked."""
    device: str = "cpu"
    """Of the tensors in its first batch as the dataset gives them: `cuda`."""
    iterators: int = 0
    """How often it was iterated over anew."""
    batches: int = 0


class OptimizerFacts(msgspec.Struct, kw_only=True):
    """An optimizer that has stepped."""

    kind: str
    device: str
    """Of its first parameter."""
    parameters: int
    takes_fused: bool
    takes_foreach: bool
    fused: bool
    foreach: bool | None
    """None where torch chooses: loops on the CPU, foreach on CUDA."""


class ModuleFacts(msgspec.Struct, kw_only=True):
    """A module with parameters that the program itself calls while it trains."""

    kind: str
    device: str
    has_convolutions: bool
    """2-D ones, for which channels_last is made."""
    is_channels_last: bool
    is_compiled: bool
    under_autocast: bool
    dtype: str
    """Of its first parameter: `float32`."""


class TrainerFacts(msgspec.Struct, kw_only=True):
    """A Lightning Trainer."""

    log_every_n_steps: int
    has_logger: bool
    check_val_every_n_epoch: int | None
    val_check_interval: float
    validations: int
    """How many there were until the last step, without the sanity check."""


class DistributedFacts(msgspec.Struct, kw_only=True):
    """A `DistributedDataParallel`."""

    static_graph: bool
    bucket_cap_mb: float | None
    ranks: int


class ProgramFacts(msgspec.Struct, kw_only=True):
    """All that is seen of a program in one run."""

    cores: int = 1
    threads: int = 1
    has_cuda: bool = False
    """Whether the program uses a CUDA device."""
    has_tf32: bool = False
    """Whether that device multiplies float32 in TF32 where it is allowed to."""
    matmul_precision: str = "highest"
    cudnn_benchmark: bool = False
    is_deterministic: bool = False
    has_anomaly_detection: bool = False
    zeroes_in_place: bool = False
    """Whether a `zero_grad(set_to_none=False)` was called."""
    is_guarded: bool = True
    """Whether the program's file has `if __name__ == "__main__":`."""
    loaders: list[LoaderFacts] = []
    optimizers: list[OptimizerFacts] = []
    modules: list[ModuleFacts] = []
    trainer: TrainerFacts | None = None
    distributed: DistributedFacts | None = None
