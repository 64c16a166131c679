"""The living objects of some classes, since torch keeps no list of them; and how loaders and optimizers are set."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import torch
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from deepscope.trace.format.process_tables import LoaderSettings, OptimizerSettings, ParallelSettings, ProcessSettings


def live_objects(kinds: Sequence[type]) -> list[list[Any]]:
    """The living objects of each class and those derived from it, as the garbage collector knows them.

    It takes some 30 ms in a program of a million objects.
    """
    classes = [(one, place) for place, kind in enumerate(kinds) for one in _with_derived(kind)]
    place_of = {id(one): place for one, place in classes}  # a metaclass of the user's may not let a class be hashed
    found: list[list[Any]] = [[] for _ in kinds]
    # By class, since asking a dead weak reference for anything raises.
    for one in [one for one in gc.get_objects() if id(type(one)) in place_of]:
        found[place_of[id(type(one))]].append(one)
    return found


def _with_derived(kind: type) -> list[type]:
    found: dict[int, type] = {}
    left = [kind]
    while left:
        one = left.pop()
        if id(one) not in found:
            found[id(one)] = one
            left += type.__subclasses__(one)
    return list(found.values())


_MOST = 16
"""So many objects of a kind are told."""

Record = TypeVar("Record", bound=msgspec.Struct)


class LivingObjects:
    """The objects whose settings are told, held weakly, and torch's profilers: one scan of all objects finds them."""

    def __init__(self) -> None:
        parallel = getattr(sys.modules.get("torch.nn.parallel.distributed"), "DistributedDataParallel", None)
        known = _frameworks()
        kinds = [DataLoader, Optimizer, *known.values(), torch.autograd.profiler.profile]
        found = live_objects([*kinds, *([parallel] if parallel else [])])
        self._loaders, self._optimizers = map(_weakly, found[:2])
        self.frameworks = [name for name, objects in zip(known, found[2:], strict=False) if objects]
        self.epochs = _epochs(found[2 + list(known).index(_TRANSFORMERS)] if _TRANSFORMERS in known else [])
        self.profilers: list[Any] = found[len(kinds) - 1]
        """Held for good: forget them soon."""
        self._parallel = _weakly([one for kind in found[len(kinds) :] for one in kind])

    @property
    def loaders(self) -> list[Any]:
        """Those that still live."""
        return _alive(self._loaders)

    @property
    def optimizers(self) -> list[Any]:
        """Those that still live."""
        return _alive(self._optimizers)

    @property
    def parallel(self) -> list[Any]:
        """Data-parallel modules that still live."""
        return _alive(self._parallel)


def _weakly(objects: list[Any]) -> list[Callable[[], Any]]:
    found: list[Callable[[], Any]] = []
    for one in objects:
        with suppress(TypeError):  # a class of the user's with slots
            found.append(weakref.ref(one))
    return found


def _alive(references: list[Callable[[], Any]]) -> list[Any]:
    return [one for reference in references if (one := reference()) is not None]


def settings(
    *, autocast: str = "", trainer: Mapping[str, Any] | None = None, objects: LivingObjects | None = None
) -> ProcessSettings:
    """What is set now; what cannot be asked is left out, and nothing is raised.

    Args:
        autocast: the type in which modules ran, if that is known.
        trainer: options of Lightning's Trainer; only numbers and words of them are kept.
        objects: what lived in the window's warm-up; all objects are looked through where it had none.
    """
    found = ProcessSettings(autocast=autocast, trainer=_plain(trainer or {}))
    for name, ask in _FLAGS.items():
        with suppress(Exception):
            setattr(found, name, ask())
    objects = objects or LivingObjects()
    found.frameworks = objects.frameworks
    found.epochs = objects.epochs
    found.loaders = _describe_all(objects.loaders, _loader)
    found.optimizers = _describe_all(objects.optimizers, _optimizer)
    found.parallel = _describe_all(objects.parallel, _parallel)
    return found


_LONGEST = 200
"""Characters of a name."""
_FLAGS: dict[str, Callable[[], Any]] = {
    "matmul_precision": torch.get_float32_matmul_precision,
    "cudnn_tf32": lambda: bool(torch.backends.cudnn.allow_tf32),
    "cudnn_benchmark": lambda: bool(torch.backends.cudnn.benchmark),
    "deterministic": torch.are_deterministic_algorithms_enabled,
    "anomaly": torch.is_anomaly_enabled,
    "threads": torch.get_num_threads,
}


_TRANSFORMERS = "transformers.Trainer"
_FRAMEWORKS = {
    _TRANSFORMERS: ("transformers.trainer", "Trainer"),
    "accelerate.Accelerator": ("accelerate.accelerator", "Accelerator"),
    "lightning.Fabric": ("lightning.fabric.fabric", "Fabric"),
}
"""Where the classes are defined."""


def _frameworks() -> dict[str, type]:
    """The classes whose objects train, of the libraries that are imported."""
    found = {name: getattr(sys.modules.get(module), kind, None) for name, (module, kind) in _FRAMEWORKS.items()}
    return {name: kind for name, kind in found.items() if isinstance(kind, type)}


def _epochs(trainers: list[Any]) -> int:
    """The most that one of transformers' Trainers is to run; 0 where that is not known."""
    with suppress(Exception):
        return max([0, *(int(one.state.num_train_epochs) for one in trainers)])
    return 0


def _plain(options: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    return {name: value for name, value in options.items() if isinstance(value, (bool, int, float, str))}


def _describe_all(objects: list[Any], tell: Callable[[Any], Record]) -> list[Record]:
    """Each different setting once."""
    records: list[Record] = []
    for one in objects:
        with suppress(Exception):
            record = tell(one)
            if record not in records and len(records) < _MOST:
                records.append(record)
    return records


def _loader(loader: Any) -> LoaderSettings:
    dataset = type(loader.dataset)
    return LoaderSettings(
        num_workers=int(loader.num_workers),
        batch_size=int(loader.batch_size or 0),
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        prefetch_factor=int(loader.prefetch_factor or 0) if loader.num_workers else 0,
        dataset=f"{dataset.__module__}.{dataset.__qualname__}"[:_LONGEST],
    )


def _optimizer(optimizer: Any) -> OptimizerSettings:
    group = optimizer.param_groups[0]
    return OptimizerSettings(
        name=type(optimizer).__name__,
        foreach=_flag(group.get("foreach")),
        fused=_flag(group.get("fused")),
        capturable=_flag(group.get("capturable")),
        parameters=sum(len(one["params"]) for one in optimizer.param_groups),
    )


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _parallel(module: Any) -> ParallelSettings:
    return ParallelSettings(
        find_unused_parameters=bool(module.find_unused_parameters),
        static_graph=bool(module.static_graph),
        gradient_as_bucket_view=bool(module.gradient_as_bucket_view),
        bucket_bytes=int(module.bucket_bytes_cap),
    )
