"""`deepscope.count_model`: what one call of a model takes, without a trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from deepscope.capture import torch_compat
from deepscope.errors import OptionError
from deepscope.measure.calls import module_of, name_of, tensors_in
from deepscope.measure.counting import Counting
from deepscope.measure.counts import ModelCounts
from deepscope.measure.summing import model_counts

_TWO_HOOKS = r"Using `torch.compile\(module\)` when there are global hooks"


def count_model(model: Callable[..., Any], /, *inputs: Any, backward: bool = False, **keywords: Any) -> ModelCounts:
    """Count parameters, FLOPs and activation bytes of one call `model(*inputs, **keywords)`.

    The call is made, so inputs and model may lie on any device: on `meta`, or under torch's `FakeTensorMode`, it
    computes nothing and takes no memory. The model is left as it was: buffers, gradients, random numbers, mode.

    Args:
        model: a module, a method of one, or any function.
        inputs: as the model takes them.
        backward: count the backward pass, too. It starts at the result's `loss` (an attribute or a key), else at
            every tensor in the result that requires a gradient.
        keywords: as the model takes them.

    Raises:
        OptionError: `backward=True`, and nothing in the result requires a gradient.
    """
    return count_call(model, inputs, keywords, backward=backward)


def count_call(
    model: Callable[..., Any], inputs: tuple[Any, ...], keywords: Mapping[str, Any], *, backward: bool = False
) -> ModelCounts:
    """The same, for a model that takes a keyword `backward` itself."""
    model = getattr(model, "_orig_mod", model)  # what torch.compile wrapped
    counting = Counting()
    root = module_of(model)
    with ExitStack() as held:
        held.enter_context(_left_as_it_was(root, (inputs, keywords)))
        held.enter_context(torch_compat.kept_eager())
        held.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", _TWO_HOOKS, UserWarning)
        if backward:
            held.enter_context(torch.enable_grad())
        held.enter_context(counting.modules())
        held.enter_context(counting)
        result = model(*inputs, **keywords)
        if backward:
            _go_back(result, counting)
    return model_counts(counting, root, name=name_of(model), with_backward=backward)


def on_meta(wanted: bool) -> AbstractContextManager[Any]:
    """Within it, tensors are made on the device `meta`, if that is `wanted`."""
    return torch.device("meta") if wanted else nullcontext()


def _go_back(result: Any, counting: Counting) -> None:
    """The backward pass; a gradient of ones for what is no single number."""
    loss = result.get("loss") if isinstance(result, dict) else getattr(result, "loss", None)
    chosen = [loss] if isinstance(loss, torch.Tensor) else list(tensors_in(result))
    starts = [one for one in chosen if one.requires_grad]
    if not starts:
        raise OptionError("backward", True, "nothing in the model's result requires a gradient")
    with counting.aside():
        gradients = [torch.ones_like(one) for one in starts]
    torch.autograd.backward(starts, gradients)


@contextmanager
def _left_as_it_was(root: nn.Module | None, given: Any) -> Iterator[None]:
    """Puts buffers, gradients and the state of random numbers back."""
    held = [*root.buffers()] if root is not None else []
    buffers = [(one, one.detach().clone()) for one in held if not (is_lazy(one) or one.is_inference())]
    leaves = [*(root.parameters() if root is not None else ()), *(one for one in tensors_in(given) if one.is_leaf)]
    gradients = [(one, one.grad) for one in leaves if one.requires_grad]
    devices = {one.device.index for one in leaves if one.device.type == "cuda" and one.device.index is not None}
    for one, _ in gradients:
        one.grad = None
    try:
        with torch.random.fork_rng(sorted(devices)):
            yield
    finally:
        with torch.no_grad():
            for one, value in buffers:
                one.copy_(value)
        for one, gradient in gradients:
            one.grad = gradient
