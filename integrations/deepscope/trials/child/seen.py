"""Facts of a program, gathered while it runs: settings that it makes, optimizers, modules, its Trainer."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from deepscope.processes import cores
from deepscope.trials.child.loaders import Loaders
from deepscope.trials.child.program import ImportActions, OutermostModules, is_compiled
from deepscope.trials.child.steps import StepClock
from deepscope.trials.messages import (
    TRAINERS,
    DistributedFacts,
    ModuleFacts,
    OptimizerFacts,
    ProgramFacts,
    TrainerFacts,
)

_EVALUATION = ("lightning.pytorch.loops.evaluation_loop", "pytorch_lightning.loops.evaluation_loop")


class Seen:
    """What a run shows of its program; `facts` sums it up."""

    def __init__(self, *, loaders: Loaders, modules: OutermostModules, clock: StepClock) -> None:
        self._loaders, self._modules, self._clock = loaders, modules, clock
        self._zeroes_in_place = False
        self._has_anomaly_detection = self._checks_distributions = False
        self._trainer: Any = None
        self._validations = 0
        self._distributed: DistributedFacts | None = None
        self._early: dict[int, ModuleFacts] = {}

    def start(self, imports: ImportActions) -> None:
        """Wrap what tells of itself nowhere else."""
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

    def facts(self, program: Path | None) -> ProgramFacts:
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
            loaders=self._loaders.facts(),
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


_MOST = 50
"""Files outside the scratch folder that are listed."""
_WRITES = os.O_WRONLY | os.O_RDWR


class Writes:
    """Hears of each file that Python opens, before it does."""

    def __init__(self, folder: Path, others: tuple[str, ...]) -> None:
        self._folder = str(folder)
        self._ours = (self._folder + os.sep, *others, "/dev/", "/proc/", "/sys/")
        self._is_busy = False
        self.outside: dict[str, None] = {}

    def start(self) -> None:
        """Begin to hear; Python has no way to end it, and this process has nothing else to do."""
        sys.addaudithook(self._heard)
        save = torch.save

        def saved(thing: Any, file: Any, *arguments: Any, **keywords: Any) -> Any:
            if isinstance(file, (str, os.PathLike)):  # C++ opens it
                self._opened(os.fspath(file), is_emptied=True)
            return save(thing, file, *arguments, **keywords)

        torch.save = saved

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            is_written = any(one in mode for one in "wax+") if isinstance(mode, str) else bool(flags & _WRITES)
            if is_written and isinstance(path, (str, bytes, os.PathLike)):
                is_emptied = "w" in mode if isinstance(mode, str) else bool(flags & os.O_TRUNC)
                self._opened(os.fsdecode(path), is_emptied=is_emptied)
        elif event == "sqlite3.connect" and isinstance(arguments[0], (str, bytes)):
            self._opened(os.fsdecode(arguments[0]), is_emptied=False)

    def _opened(self, name: str, *, is_emptied: bool) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        try:
            with suppress(OSError, ValueError):
                self._prepare(os.path.abspath(name), is_emptied=is_emptied)  # noqa: PTH100  links stay links
        finally:
            self._is_busy = False

    def _prepare(self, path: str, *, is_emptied: bool) -> None:
        is_inside = path.startswith(self._folder + os.sep)
        if is_inside and os.path.islink(path):  # noqa: PTH114  called for each file that is written
            source = os.path.realpath(path)
            os.unlink(path)  # noqa: PTH108
            if not is_emptied:
                shutil.copyfile(source, path)
        elif len(self.outside) < _MOST:
            real = os.path.realpath(path)
            if not real.startswith(self._ours):
                self.outside[real] = None
