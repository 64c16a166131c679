"""Facts of a program, gathered while it runs: its settings, data loaders, optimizers, modules and Trainer."""

from __future__ import annotations

import ast
import functools
import inspect
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import torch
from torch.utils.data import IterableDataset, dataloader

from deepscope.processes import cores
from deepscope.trials.child.hooks import ImportActions, OutermostModules, is_compiled
from deepscope.trials.child.steps import StepClock
from deepscope.trials.messages import (
    TRAINERS,
    DistributedFacts,
    LoaderFacts,
    ModuleFacts,
    OptimizerFacts,
    ProgramFacts,
    TrainerFacts,
)

_DEPTH = 3
"""Of nested lists and dicts in which tensors are looked for."""
_EVALUATION = ("lightning.pytorch.loops.evaluation_loop", "pytorch_lightning.loops.evaluation_loop")


class FactCollector:
    """What a run shows of its program; `collected` sums it up."""

    def __init__(self, *, modules: OutermostModules, clock: StepClock) -> None:
        self.loaders = Loaders()
        self._modules, self._clock = modules, clock
        self._zeroes_in_place = False
        self._has_anomaly_detection = self._checks_distributions = False
        self._trainer: Any = None
        self._validations = 0
        self._distributed: DistributedFacts | None = None
        self._early: dict[int, ModuleFacts] = {}

    def start(self, imports: ImportActions) -> None:
        """Wrap what tells of itself nowhere else."""
        self.loaders.start()
        for kind in (torch.optim.Optimizer, torch.nn.Module):
            kind.zero_grad = self._watched(kind.zero_grad)
        for name in TRAINERS:
            imports.when_imported(name, self._watch_trainer)
        for name in _EVALUATION:
            imports.when_imported(name, self._watch_evaluation)
        self._watch_distributions()
        self._watch_distributed()

    def at_backward(self) -> None:
        """Before the first backward pass."""
        self._has_anomaly_detection = torch.is_anomaly_enabled()
        self._early = {id(one): _module_facts(one, self._modules) for one in self._modules.found}

    def _watched(self, zero: Any) -> Any:
        @functools.wraps(zero)
        def watched(self_: Any, set_to_none: bool = True) -> None:
            self._zeroes_in_place |= not set_to_none
            zero(self_, set_to_none=set_to_none)

        return watched

    def _watch_trainer(self, module: ModuleType) -> None:
        def keep(trainer: Any, *_: Any, **__: Any) -> None:
            self._trainer = trainer

        _call_after_init(module.Trainer, keep)

    def _watch_evaluation(self, module: ModuleType) -> None:
        loop = module._EvaluationLoop
        run = loop.run

        @functools.wraps(run)
        def counted(loop_: Any, *arguments: Any, **keywords: Any) -> Any:
            self._validations += loop_.trainer.state.fn == "fit" and not loop_.trainer.sanity_checking
            return run(loop_, *arguments, **keywords)

        loop.run = counted

    def _watch_distributions(self) -> None:
        def look(distribution: Any, *_: Any, **__: Any) -> None:
            self._checks_distributions |= bool(distribution._validate_args)

        _call_after_init(torch.distributions.Distribution, look)

    def _watch_distributed(self) -> None:
        kind: Any = torch.nn.parallel.DistributedDataParallel
        signature = inspect.signature(kind.__init__)

        def keep(*arguments: Any, **keywords: Any) -> None:
            given = signature.bind(*arguments, **keywords).arguments
            self._distributed = DistributedFacts(
                static_graph=bool(given.get("static_graph")),
                bucket_cap_mb=given.get("bucket_cap_mb"),
                ranks=torch.distributed.get_world_size(),
            )

        _call_after_init(kind, keep)

    def collected(self, program: Path | None) -> ProgramFacts:
        """All of it, at the end of the run."""
        has_cuda = torch.cuda.is_initialized()
        cudnn = torch.backends.cudnn
        return ProgramFacts(
            cores=cores(),
            threads=torch.get_num_threads(),
            has_cuda=has_cuda,
            has_tf32=has_cuda and torch.version.hip is None and torch.cuda.get_device_capability()[0] >= 8,
            matmul_precision=torch.get_float32_matmul_precision(),
            cudnn_benchmark=bool(cudnn.benchmark),
            is_deterministic=torch.are_deterministic_algorithms_enabled() or bool(has_cuda and cudnn.deterministic),
            has_anomaly_detection=self._has_anomaly_detection,
            checks_distributions=self._checks_distributions,
            zeroes_in_place=self._zeroes_in_place,
            is_guarded=program is None or _is_guarded(program),
            loaders=self.loaders.facts(),
            optimizers=[_optimizer_facts(one) for one in self._clock.optimizers],
            modules=[self._early.get(id(one)) or _module_facts(one, self._modules) for one in self._modules.found],
            trainer=None if self._trainer is None else self._trainer_facts(),
            distributed=self._distributed,
        )

    def _trainer_facts(self) -> TrainerFacts:
        trainer = self._trainer
        return TrainerFacts(
            log_every_n_steps=trainer.log_every_n_steps,
            has_logger=bool(trainer.loggers),
            check_val_every_n_epoch=trainer.check_val_every_n_epoch,
            val_check_interval=trainer.val_check_interval,
            validations=self._validations,
        )


def _call_after_init(kind: Any, action: Callable[..., None]) -> None:
    """Have it called with what a class's constructor was called with, `self` first, once that has returned."""
    begin = kind.__init__

    @functools.wraps(begin)
    def begun(*arguments: Any, **keywords: Any) -> None:
        begin(*arguments, **keywords)
        action(*arguments, **keywords)

    kind.__init__ = begun


def _optimizer_facts(optimizer: Any) -> OptimizerFacts:
    groups = optimizer.param_groups
    options = inspect.signature(type(optimizer).__init__).parameters
    first = next((one for group in groups for one in group["params"]), None)
    return OptimizerFacts(
        kind=type(optimizer).__name__,
        device="cpu" if first is None else first.device.type,
        parameters=sum(len(group["params"]) for group in groups),
        takes_fused="fused" in options or "fused" in groups[0],
        takes_foreach="foreach" in options or "foreach" in groups[0],
        fused=any(bool(group.get("fused")) for group in groups),
        foreach=groups[0].get("foreach"),
    )


def _module_facts(module: Any, modules: OutermostModules) -> ModuleFacts:
    first = next(module.parameters())
    kernels = [one.weight for one in module.modules() if isinstance(one, (torch.nn.Conv2d, torch.nn.ConvTranspose2d))]
    large = [one for one in kernels if one.shape[1] > 1 and one.shape[2] * one.shape[3] > 1]  # else both at once
    return ModuleFacts(
        kind=type(module).__name__,
        device=first.device.type,
        has_convolutions=bool(kernels),
        is_channels_last=bool(large) and all(one.is_contiguous(memory_format=torch.channels_last) for one in large),
        is_compiled=is_compiled(module),
        under_autocast=modules.is_under_autocast.get(id(module), False),
        dtype=str(first.dtype).removeprefix("torch."),
    )


def _is_guarded(program: Path) -> bool:
    try:
        tree = ast.parse(program.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    return any(isinstance(one, ast.If) and "__name__" in ast.dump(one.test) for one in tree.body)


class Loaders:
    """Facts of each loader that is iterated over, in order, and hashes of what its first iterator asks for."""

    def __init__(self) -> None:
        self._loaders: dict[int, tuple[Any, LoaderFacts, list[int]]] = {}

    def start(self) -> None:
        """Wrap torch's iterators, which every loader makes."""
        kind: Any = dataloader._BaseDataLoaderIter
        begin, next_index, next_batch = kind.__init__, kind._next_index, kind.__next__
        loaders = self._loaders

        def made(iterator: Any, loader: Any) -> None:
            entry = loaders.setdefault(id(loader), (loader, loader_facts(loader), []))
            entry[1].iterators += 1
            iterator._deepscope_entry = entry
            begin(iterator, loader)

        def asked(iterator: Any) -> Any:
            index = next_index(iterator)
            _, facts, hashes = iterator._deepscope_entry
            if facts.iterators == 1:
                hashes.append(index_hash(index))
            return index

        def given(iterator: Any) -> Any:
            batch = next_batch(iterator)
            facts = iterator._deepscope_entry[1]
            facts.batches += 1
            if facts.batches == 1 and not facts.pin_memory:
                facts.device = next((one.device.type for one in tensors(batch)), "cpu")
            return batch

        kind.__init__, kind._next_index, kind.__next__ = made, asked, given

    def facts(self) -> list[LoaderFacts]:
        """Of all loaders that were iterated over."""
        return [facts for _, facts, _ in self._loaders.values()]

    def samples(self) -> list[list[int]]:
        """The hashes of each loader's batches."""
        return [hashes for _, _, hashes in self._loaders.values()]


def index_hash(index: Any) -> int:
    """Of a batch's indices, the same in every process; 0 for what has no hash."""
    try:
        return hash(tuple(index) if isinstance(index, list) else index)
    except TypeError:
        return 0


def loader_facts(loader: Any) -> LoaderFacts:
    """How a loader is set, and what workers it could have."""
    context = loader.multiprocessing_context
    method = context.get_start_method() if context is not None else multiprocessing.get_start_method()
    dataset = loader.dataset
    is_iterable = isinstance(dataset, IterableDataset)
    return LoaderFacts(
        dataset=type(dataset).__name__,
        workers=loader.num_workers,
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        prefetch_factor=loader.prefetch_factor,
        is_iterable=is_iterable,
        is_sharded=is_iterable and "get_worker_info" in set(_names(type(dataset))),
        start_method=method,
        unpicklable="" if method == "fork" or loader.num_workers else _unpicklable(loader),
        device=next((one.device.type for one in tensors(vars(dataset)) if one.device.type != "cpu"), "cpu")
        if hasattr(dataset, "__dict__")
        else "cpu",
    )


def _unpicklable(loader: Any) -> str:
    for name in ("dataset", "collate_fn", "worker_init_fn"):
        try:
            pickle.dumps(getattr(loader, name))
        except Exception as error:  # noqa: BLE001  the user's own `__reduce__` may raise anything
            return f"its {name} cannot be pickled ({type(error).__name__}: {error})"
    return ""


def _names(kind: type) -> Iterator[str]:
    """The names that a class's own functions use."""
    todo: list[Any] = [
        getattr(thing, "__code__", None)
        for one in kind.__mro__
        if not one.__module__.startswith("torch.")
        for thing in vars(one).values()
    ]
    while todo:
        code = todo.pop()
        if isinstance(code, CodeType):
            yield from code.co_names
            todo += code.co_consts


def tensors(thing: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Tensors in nested lists, tuples and dicts."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif depth and isinstance(thing, dict):
        for one in thing.values():
            yield from tensors(one, depth - 1)
    elif depth and isinstance(thing, (list, tuple)):
        for one in thing[:64]:
            yield from tensors(one, depth - 1)
