"""What a trace says is set already, so that no rule recommends it (docs/trace-format.md, `settings`)."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.trace.format.settings import LoaderSettings, Settings
from deepscope.trace.model import Trace

_NOTHING = Settings()
_FAR = 1 << 53
"""Greater numbers are none that a recorder told."""


def _of(trace: Trace) -> Settings:
    return trace.header.settings or _NOTHING


def _loaders(trace: Trace) -> Sequence[LoaderSettings]:
    return _of(trace).loaders


def loader_workers(trace: Trace) -> int | None:
    """How many workers the program's data loaders have; None where that is not known, or differs."""
    counts = {loader.num_workers for loader in _loaders(trace)}
    return counts.pop() if len(counts) == 1 else None


def keeps_workers(trace: Trace) -> bool:
    """Whether all data loaders with worker processes keep them from one epoch to the next."""
    with_workers = [loader for loader in _loaders(trace) if loader.num_workers]
    return bool(with_workers) and all(loader.persistent_workers for loader in with_workers)


def pins_memory(trace: Trace) -> bool:
    """Whether all data loaders give out batches in pinned memory."""
    loaders = _loaders(trace)
    return bool(loaders) and all(loader.pin_memory for loader in loaders)


def frameworks(trace: Trace) -> list[str]:
    """The objects that train in the process, by library and class: `lightning.Trainer`, `transformers.Trainer`, …"""
    settings = _of(trace)
    return (["lightning.Trainer"] if settings.trainer else []) + settings.frameworks


def has_faster_products(trace: Trace) -> bool:
    """Whether products of float32 may be computed with TF32 or less."""
    return _of(trace).matmul_precision in {"high", "medium"}


def product_type(trace: Trace) -> str:
    """The type that autocast gives to products, "" where it is not on."""
    return _of(trace).autocast


def sanity_check(trace: Trace) -> tuple[int, int]:
    """How long Lightning's sanity check took before this run of fit, in ns, and how many batches the run is to have.

    0 each where it is not known.
    """
    numbers = (_of(trace).trainer.get(name) for name in ("sanity_check_ns", "planned_batches"))
    check_ns, batches = (one if type(one) is int and 0 < one < _FAR else 0 for one in numbers)
    return check_ns, batches


def tries_algorithms(trace: Trace) -> bool | None:
    """Whether convolutions try out which algorithm is the fastest (`cudnn.benchmark`); None where it is not known."""
    return _of(trace).cudnn_benchmark


def is_fused(trace: Trace) -> bool:
    """Whether all optimizers update their parameters with fused kernels."""
    optimizers = _of(trace).optimizers
    return bool(optimizers) and all(optimizer.fused for optimizer in optimizers)
