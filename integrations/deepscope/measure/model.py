"""`deepscope.count_model`: what one call of a model takes, without a trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from deepscope.capture import torch_compat
from deepscope.errors import OptionError
from deepscope.measure.counting import Counting, ModuleCall, Tally, module_of, name_of, tensors_in
from deepscope.measure.counts import ModelCounts, ModuleNumbers, ModuleOperatorNumbers, OperatorNumbers, TotalNumbers

_WRAPPER = "_orig_mod"
"""The component that `torch.compile` puts around a module."""


class _Row:
    """A module while it is summed up."""

    def __init__(self, class_name: str, modules: Iterable[nn.Module]) -> None:
        self.class_name = class_name
        self.modules = list(modules)
        self.calls = 0
        self.self_parameters = 0
        self.own: dict[str, Tally] = {}
        """By operator, without what the modules do that it calls."""
        self.all = Tally()


def model_counts(counting: Counting, root: nn.Module | None, *, name: str, with_backward: bool) -> ModelCounts:
    """The tables of what was counted.

    Args:
        counting: it has ended.
        root: the model; None for a function of no module, below which the outermost modules stand that it called.
        name: of the model or function.
        with_backward: whether its backward pass was counted.
    """
    roots = (
        [root] if root is not None else [one.module for one in counting.root.inner.values() if one.module is not None]
    )
    paths: dict[int, str] = {}
    rows = {"": _Row(name, roots)}
    for prefix, one in zip(_prefixes(roots, root), roots, strict=True):
        for inner, module in one.named_modules():
            path = _joined(prefix, _without_wrapper(inner))
            paths[id(module)] = path
            if path:
                rows.setdefault(path, _Row(type(module).__qualname__, [module]))
    for place in counting.root.within():
        _add(place, _path(place, paths), rows, paths)
    rows[""].calls = rows[""].calls or 1
    taken: set[int] = set()
    for row in rows.values():
        mine = (one for module in row.modules for one in module.parameters(recurse=False))
        row.self_parameters = sum(map(_size, _distinct(mine, taken)))
    return _counts(counting, rows, name=name, with_backward=with_backward)


def _prefixes(roots: list[nn.Module], root: nn.Module | None) -> Iterator[str]:
    """What the paths in each root begin with: nothing in the model itself, else its class, numbered from the second."""
    seen: dict[str, int] = {}
    for one in roots:
        kind = type(one).__qualname__
        seen[kind] = seen.get(kind, 0) + 1
        yield "" if root is not None else kind if seen[kind] == 1 else f"{kind}#{seen[kind]}"


def _without_wrapper(path: str) -> str:
    return ".".join(part for part in path.split(".") if part != _WRAPPER)


def _joined(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _path(place: ModuleCall, paths: dict[int, str]) -> str:
    """The path of a place's module; one that the model does not hold is named after its class, below its caller."""
    if place.module is None:
        return ""
    known = paths.get(id(place.module))
    if known is None:
        caller = _path(place.parent, paths) if place.parent is not None else ""
        known = paths[id(place.module)] = _joined(caller, f"<{type(place.module).__qualname__}>")
    return known


def _add(place: ModuleCall, path: str, rows: dict[str, _Row], paths: dict[int, str]) -> None:
    """Add the work of one place to its module, and to each of those that called it."""
    if path not in rows and place.module is not None:
        rows[path] = _Row(type(place.module).__qualname__, [place.module])
    rows[path].calls += place.calls
    around = {""}
    outer: ModuleCall | None = place
    while outer is not None:
        around.add(_path(outer, paths))
        outer = outer.parent
    for operator, tally in place.tallies.items():
        rows[path].own.setdefault(operator, Tally()).add(tally)
        for one in around:
            rows[one].all.add(tally)


def _distinct(parameters: Iterable[Any], seen: set[int]) -> list[Any]:
    found = []
    for one in parameters:
        if id(one) not in seen:
            seen.add(id(one))
            found.append(one)
    return found


def _parameters(row: _Row) -> list[Any]:
    """Those of its modules and of the modules in them, each once."""
    return _distinct((one for module in row.modules for one in module.parameters()), set())


def _size(parameter: Any) -> int:
    return 0 if is_lazy(parameter) else int(parameter.numel())


def _counts(counting: Counting, rows: dict[str, _Row], *, name: str, with_backward: bool) -> ModelCounts:
    operators: dict[str, Tally] = {}
    for row in rows.values():
        for operator, tally in row.own.items():
            operators.setdefault(operator, Tally()).add(tally)
    parameters = _parameters(rows[""])
    return ModelCounts(
        model=name,
        with_backward=with_backward,
        total=TotalNumbers(
            parameters=sum(map(_size, parameters)),
            trainable_parameters=sum(_size(one) for one in parameters if one.requires_grad),
            parameter_bytes=sum(_size(one) * one.element_size() for one in parameters),
            **vars(rows[""].all),
        ),
        by_operator=tuple(
            sorted(
                (OperatorNumbers(operator=operator, **vars(tally)) for operator, tally in operators.items()),
                key=lambda one: (-one.flops, -one.activation_bytes, one.operator),
            )
        ),
        by_module=tuple(_module(path, row) for path, row in rows.items() if _is_shown(path, row)),
        by_both=tuple(sorted(_both(rows), key=lambda one: (-one.flops, -one.activation_bytes))),
        without_formula=dict(counting.without_formula),
    )


def _both(rows: dict[str, _Row]) -> Iterator[ModuleOperatorNumbers]:
    for path, row in rows.items():
        for operator, tally in row.own.items():
            yield ModuleOperatorNumbers(path=path, class_name=row.class_name, operator=operator, **vars(tally))


def _is_shown(path: str, row: _Row) -> bool:
    """Not so lists of modules, which nobody calls, and modules that others use without calling them."""
    return not path or bool(row.calls or row.own or row.self_parameters)


def _module(path: str, row: _Row) -> ModuleNumbers:
    own = Tally()
    for tally in row.own.values():
        own.add(tally)
    return ModuleNumbers(
        path=path,
        class_name=row.class_name,
        calls=row.calls,
        parameters=sum(map(_size, _parameters(row))),
        self_parameters=row.self_parameters,
        flops=row.all.flops,
        self_flops=own.flops,
        backward_flops=row.all.backward_flops,
        activation_bytes=row.all.activation_bytes,
        self_activation_bytes=own.activation_bytes,
        moved_bytes=row.all.moved_bytes,
    )


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
