"""Options of libraries that do what a finding advises, and what is set already, so that no rule recommends it.

Each is named as its library's own documentation has it; a library without an option for a rule is not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.trace.arrays import nearest_to
from deepscope.trace.format.process_tables import LoaderSettings, ProcessSettings
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

_NOTHING = ProcessSettings()
_FAR = 1 << 53
"""A greater number was not written by a recorder."""


def _of(trace: Trace) -> ProcessSettings:
    return trace.header.settings or _NOTHING


def _loaders(trace: Trace) -> Sequence[LoaderSettings]:
    return _of(trace).loaders


def loader_workers(trace: Trace) -> int | None:
    """How many workers the program's data loaders have; None where that is not known, or differs."""
    counts = {loader.num_workers for loader in _loaders(trace)}
    return counts.pop() if len(counts) == 1 else None


def loader_batch_sizes(trace: Trace) -> list[int]:
    """Of the program's data loaders: 0 where the sampler gives whole batches."""
    return [loader.batch_size for loader in _loaders(trace)]


def loads_from(trace: Trace, package: str) -> bool:
    """Whether the data sets of all data loaders are of a package."""
    loaders = _loaders(trace)
    return bool(loaders) and all(loader.dataset.startswith(f"{package}.") for loader in loaders)


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


def planned_epochs(trace: Trace) -> int:
    """How many epochs a library's trainer is to run; 0 where that is not known."""
    settings = _of(trace)
    epochs = settings.trainer.get("max_epochs", settings.epochs)
    return epochs if type(epochs) is int and epochs > 0 else 0


def tries_algorithms(trace: Trace) -> bool | None:
    """Whether convolutions try out which algorithm is the fastest (`cudnn.benchmark`); None where it is not known."""
    return _of(trace).cudnn_benchmark


def is_fused(trace: Trace) -> bool:
    """Whether all optimizers update their parameters with fused kernels."""
    optimizers = _of(trace).optimizers
    return bool(optimizers) and all(optimizer.fused for optimizer in optimizers)


MOST = 0.5
"""A library's option is named if more than this part of what was found runs in its modules."""

_OF_MODULES: Mapping[str, Mapping[str, str]] = {
    "DS008": {
        "transformers": "`model.gradient_checkpointing_disable()` of transformers (of its Trainer: "
        "`TrainingArguments(gradient_checkpointing=False)`)",
        "diffusers": "`model.disable_gradient_checkpointing()` of diffusers",
        "timm": "`model.set_grad_checkpointing(False)` of timm",
        "torchvision.models.densenet": "`memory_efficient=False` of torchvision's DenseNets",
    },
    "DS010": {
        "torch.nn.modules.activation": "`need_weights=False` in the call of `nn.MultiheadAttention`",
        "transformers": '`from_pretrained(…, attn_implementation="sdpa")` of transformers, where the model has it',
        "diffusers": "`model.set_attn_processor(AttnProcessor2_0())` of diffusers, without attention slicing",
        "timm": "`timm.layers.set_fused_attn(True)` before the model is made",
    },
    "DS018": {
        "transformers": "`from_pretrained(…, dtype=torch.bfloat16)` of transformers (`torch_dtype` before 4.56)",
        "diffusers": "`from_pretrained(…, torch_dtype=torch.bfloat16)` of diffusers",
    },
    "DS030": {
        "transformers": "`model.gradient_checkpointing_enable()` of transformers (of its Trainer: "
        "`TrainingArguments(gradient_checkpointing=True)`)",
        "diffusers": "`model.enable_gradient_checkpointing()` of diffusers",
        "timm": "`model.set_grad_checkpointing()` of timm",
        "torchvision.models.densenet": "`memory_efficient=True` of torchvision's DenseNets",
    },
}
"""Rule → Python module (with all below it) that defines a class → the option."""

_TRANSFORMERS, _ACCELERATE, _LIGHTNING = "transformers.Trainer", "accelerate.Accelerator", "lightning.Trainer"
_OF_FRAMEWORKS: Mapping[str, Mapping[str, str]] = {
    "DS002": {_TRANSFORMERS: "`TrainingArguments(dataloader_pin_memory=True)`"},
    "DS003": {_TRANSFORMERS: "`TrainingArguments(dataloader_num_workers=…, dataloader_persistent_workers=True)`"},
    "DS006": {
        _TRANSFORMERS: "`TrainingArguments(tf32=True)`, or `bf16=True`",
        _LIGHTNING: '`Trainer(precision="bf16-mixed")`',
    },
    "DS011": {_TRANSFORMERS: '`TrainingArguments(optim="adamw_torch_fused")`'},
    "DS016": {
        _LIGHTNING: "`Trainer(accumulate_grad_batches=…)`",
        _TRANSFORMERS: "`TrainingArguments(gradient_accumulation_steps=…)`",
        _ACCELERATE: "`Accelerator(gradient_accumulation_steps=…)` and `with accelerator.accumulate(model):`",
    },
    "DS021": {_TRANSFORMERS: "`TrainingArguments(dataloader_persistent_workers=True)`"},
}
"""Rule → the object that trains, as `ProcessSettings.frameworks` has it → the option."""


@dataclass(frozen=True, slots=True)
class LibraryOption:
    """What a library has for a finding."""

    module: str
    """The library's module that most of it ran in: its path and class; "" where that is not told."""
    option: str


def module_option(facts: Facts, code: str, events: Int64) -> LibraryOption | None:
    """The option of the library whose modules most of some calls (events) ran in, backward work by its forward.

    None where no library has one, or its modules are not told, or code of the user's runs within them.
    """
    if not len(events):
        return None
    up = facts.attribution.calls.up
    for package, option in _OF_MODULES.get(code, {}).items():
        theirs = calls_of_package(facts, package)
        if not theirs.any():
            continue
        around = nearest_to(events, up, theirs if package.startswith("torch.") else theirs | facts.once(_others))
        inside = around[(around >= 0) & theirs[around]]
        if len(inside) > MOST * len(events):
            return LibraryOption(module_around(facts, inside), option)
    return None


def in_modules(facts: Facts, code: str, events: Int64) -> tuple[str, str]:
    """What a message says of the module, and a remedy of its library's option; "" both where there is none."""
    found = module_option(facts, code, events)
    if found is None:
        return "", ""
    return f" (module {found.module})" if found.module else "", f" Here that is {found.option}."


def framework_option(facts: Facts, code: str) -> str:
    """` With transformers.Trainer: …`, for the frameworks that train in the process; "" where none has an option."""
    options = _OF_FRAMEWORKS.get(code, {})
    return "".join(f" With {one}: {options[one]}." for one in frameworks(facts.trace) if one in options)


def module_around(facts: Facts, events: Int64) -> str:
    """Path and class of the module that most of some events ran in; "" for none."""
    modules = facts.analysis.modules
    inside = modules.of_event[events]
    inside = inside[inside >= 0]
    if not len(inside):
        return ""
    path, name = modules.names[int(np.bincount(modules.module[inside]).argmax())]
    return path if path == name else f"{path}, {name}"


def _others(facts: Facts) -> Mask:
    """Which events are calls of modules that are not torch's own, frames of such files, or the user's lines."""
    trace = facts.trace
    own = np.array([not f"{one.python_module}.".startswith("torch.") for one in trace.scopes] + [False])
    modules = of_kind(trace, Kind.MODULE_SCOPE) & own[trace.events.scope]
    frames = named(trace, of_kind(trace, Kind.PYTHON_FUNCTION), _is_no_torchs)
    return np.asarray(modules | frames | facts.attribution.scopes.marks)


def _is_no_torchs(frame: str) -> bool:
    path = frame.partition("(")[0]
    return path.endswith(".py") and not _is_in(frame, "torch")


def calls_of_package(facts: Facts, package: str) -> Mask:
    """Which events are calls of a package's modules, or frames of its files; shape (n,)."""
    trace = facts.trace
    folder = package.replace(".", "/")
    known = np.array([f"{one.python_module}.".startswith(f"{package}.") for one in trace.scopes] + [False])
    modules = of_kind(trace, Kind.MODULE_SCOPE) & known[trace.events.scope]
    frames = named(trace, of_kind(trace, Kind.PYTHON_FUNCTION), lambda frame: _is_in(frame, folder))
    return np.asarray(modules | frames)


def _is_in(frame: str, folder: str) -> bool:
    """Whether a frame (`…/site-packages/timm/layers/attention.py(70): forward`) lies in a package's folder or file."""
    path = f"/{frame.partition('(')[0]}"
    return f"/{folder}/" in path or path.endswith(f"/{folder}.py")
