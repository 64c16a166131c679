"""What a run is asked to do, and what it answers: files between this process and the one that runs the program.

They are msgpack, which has NaN and infinity, too.
"""

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
    checks_distributions: bool = False
    """Whether a distribution was made whose arguments torch checked."""
    zeroes_in_place: bool = False
    """Whether a `zero_grad(set_to_none=False)` was called."""
    is_guarded: bool = True
    """Whether the program's file has `if __name__ == "__main__":`."""
    loaders: list[LoaderFacts] = []
    optimizers: list[OptimizerFacts] = []
    modules: list[ModuleFacts] = []
    trainer: TrainerFacts | None = None
    distributed: DistributedFacts | None = None


STANDS_FOR = "DEEPSCOPE_TRIAL_SOURCE"
"""In the environment of a run: the folder that its scratch folder stands for."""

Settings = dict[str, int | float | str]
"""What a remedy sets: `{"num_workers": 2}`."""


class Change(msgspec.Struct, frozen=True):
    """A remedy with what it sets on this program."""

    remedy: str
    settings: Settings


class Request(msgspec.Struct, kw_only=True):
    """One run of a program."""

    target: str
    """The program's file, or with `is_module` its module."""
    arguments: list[str]
    is_module: bool
    answer: str
    """The file that the answer is written to."""
    folder: str
    """The run's scratch folder."""
    changes: list[Change] = []
    warmup: int
    """Steps that are made before any is timed."""
    steps: int
    """Steps after these; then the program is ended."""
    seconds: float | None = None
    """Timed steps end earlier after so long, but not before a few were made."""
    rounding: float = 0.0
    """After each step parameters are changed by this share of themselves, up or down at random; 0: not at all."""


class Answer(msgspec.Struct, kw_only=True):
    """What became of a run."""

    steps: int = 0
    """That the program made."""
    marks: list[tuple[int, int]] = []
    """Steps that were done, and the host's clock then in nanoseconds, the device being done with them."""
    losses: list[float] = []
    """The roots of all backward passes in order, NaN among them."""
    random_state: str = ""
    """A digest of torch's, NumPy's and Python's random numbers at the end."""
    samples: list[list[int]] = []
    """Of each loader in order a hash of each batch's indices, of its first iterator."""
    facts: ProgramFacts
    applied: list[str] = []
    """Names of the remedies that found what they change."""
    refused: dict[str, str] = {}
    """Names of remedies with the reason why they cannot be applied here."""
    written: list[str] = []
    """Files outside the scratch folder that Python opened for writing."""
    outside: list[str] = []
    """Modules of the program that were not imported from the scratch folder but from the folder that it stands for."""
    error: str = ""
    """How the program failed; "" where it did not."""
