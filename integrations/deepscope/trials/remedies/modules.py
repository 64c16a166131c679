"""Remedies of the modules that the program calls: compiled, another memory format, lower precision, DDP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from deepscope.trials.messages import DistributedFacts, ProgramFacts, Settings
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.hooks import RemedyHooks

_BUCKET_MB = 100
_DEFAULT_MB = 25


def _wrapped(facts: ProgramFacts) -> DistributedFacts | str:
    return facts.distributed or "the program makes no DistributedDataParallel"


def _static(facts: ProgramFacts) -> Decision:
    found = _wrapped(facts)
    if isinstance(found, str):
        return found
    return "the graph is static already" if found.static_graph else {}


def _buckets(facts: ProgramFacts) -> Decision:
    found = _wrapped(facts)
    if isinstance(found, str):
        return found
    if found.ranks == 1:
        return "there is one rank, so nothing is sent"
    size = found.bucket_cap_mb or _DEFAULT_MB
    return f"buckets have {size:g} MB already" if size >= _BUCKET_MB else {"bucket_cap_mb": _BUCKET_MB}


def _wrap_with(settings: Settings, hooks: RemedyHooks, **fixed: object) -> None:
    from torch.nn.parallel import DistributedDataParallel

    hooks.construct_with(DistributedDataParallel, lambda _: {**settings, **fixed})


BFLOAT16_ROUNDING = 2.0**-9
"""Half of the distance of two neighbours, by their size."""
_NO_MODULE = "the program calls no module with parameters while it trains"


def _compile(facts: ProgramFacts) -> Decision:
    if not facts.modules:
        return _NO_MODULE
    if all(one.is_compiled for one in facts.modules):
        return "the model is compiled already"
    return {}


def _compile_modules(_: Settings, hooks: RemedyHooks) -> None:
    from deepscope.trials.child.hooks import is_compiled

    def found(module: Any) -> None:
        if not is_compiled(module):
            module.compile()
            hooks.is_applied = True

    hooks.modules.listen(found)


def _channels_last(facts: ProgramFacts) -> Decision:
    if not facts.modules:
        return _NO_MODULE
    found = [one for one in facts.modules if one.has_convolutions]
    if not found:
        return "the model has no 2-D convolutions"
    if all(one.is_channels_last for one in found):
        return "the model is in channels_last already"
    return {}


def _to_channels_last(_: Settings, hooks: RemedyHooks) -> None:
    import torch

    def laid_out(one: Any) -> Any:
        is_image = isinstance(one, torch.Tensor) and one.dim() == 4
        return one.contiguous(memory_format=torch.channels_last) if is_image else one

    def around(forward: Any, *arguments: Any, **keywords: Any) -> Any:
        return forward(*map(laid_out, arguments), **{name: laid_out(one) for name, one in keywords.items()})

    def found(module: Any) -> None:
        if any(isinstance(one, (torch.nn.Conv2d, torch.nn.ConvTranspose2d)) for one in module.modules()):
            module.to(memory_format=torch.channels_last)
            hooks.wrap_forward(module, around)

    hooks.modules.listen(found)


def _autocast(facts: ProgramFacts) -> Decision:
    if not facts.modules:
        return _NO_MODULE
    if all(one.under_autocast for one in facts.modules):
        return "the model runs under autocast already"
    if all(one.dtype != "float32" for one in facts.modules):
        return f"the model's parameters are {facts.modules[0].dtype}"
    return {"device": facts.modules[0].device}


def _under_autocast(settings: Settings, hooks: RemedyHooks) -> None:
    """Outputs are float32 again, so that losses are computed as before; Accelerate does the same."""
    import torch

    device = str(settings["device"])

    def found(module: Any) -> None:
        def around(forward: Any, *arguments: Any, **keywords: Any) -> Any:
            with torch.autocast(device, dtype=torch.bfloat16):
                output = forward(*arguments, **keywords)
            return _in_float32(output, torch)

        hooks.wrap_forward(module, around)

    hooks.modules.listen(found)


def _in_float32(output: Any, torch: Any) -> Any:
    if isinstance(output, torch.Tensor):
        return output.float() if output.dtype == torch.bfloat16 else output
    if type(output) in (list, tuple):
        return type(output)(_in_float32(one, torch) for one in output)
    if isinstance(output, dict):  # a model's output class keeps its type
        for name, one in list(output.items()):
            output[name] = _in_float32(one, torch)
    return output


REMEDIES = (
    AppliedRemedy(
        name="static-graph",
        written="DistributedDataParallel(static_graph=True)",
        findings=("DS014", "DS016"),
        decide=_static,
        apply=partial(_wrap_with, static_graph=True),
    ),
    AppliedRemedy(
        name="larger-buckets",
        written="DistributedDataParallel(bucket_cap_mb={bucket_cap_mb})",
        findings=("DS014", "DS015"),
        decide=_buckets,
        apply=_wrap_with,
    ),
    AppliedRemedy(
        name="channels-last",
        written="model.to(memory_format=torch.channels_last), the images, too",
        findings=("DS017",),
        decide=_channels_last,
        apply=_to_channels_last,
    ),
    AppliedRemedy(
        name="autocast",
        written='torch.autocast("{device}", dtype=torch.bfloat16) around the forward pass',
        findings=("DS006", "DS018"),
        decide=_autocast,
        apply=_under_autocast,
        rounding=BFLOAT16_ROUNDING,
    ),
    AppliedRemedy(
        name="compile",
        written="model.compile()",
        findings=("DS004", "DS005", "DS007", "DS010", "DS020"),
        decide=_compile,
        apply=_compile_modules,
        draws_otherwise=True,
    ),
)
