"""`deepscope.count_model`: what one call of a model takes, without a trace; and a model that a function makes."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from deepscope.capture import torch_compat
from deepscope.errors import DeepScopeError, FactoryError, OptionError, TargetError
from deepscope.measure.counting import Counting, module_of, name_of, tensors_in
from deepscope.measure.counts import ModelCounts, model_counts


class ModelCall(NamedTuple):
    """A model, and what to call it with."""

    model: Callable[..., Any]
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]


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
    return count_call(ModelCall(model, inputs, keywords), backward=backward)


def count_call(call: ModelCall, *, backward: bool = False) -> ModelCounts:
    """The same, for a model that takes a keyword `backward` itself."""
    model = torch_compat.uncompiled(call.model)
    counting = Counting()
    root = module_of(model)
    with ExitStack() as held:
        held.enter_context(_left_as_it_was(root, (call.inputs, call.keywords)))
        held.enter_context(torch_compat.kept_eager())
        held.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", _TWO_HOOKS, UserWarning)
        if backward:
            held.enter_context(torch.enable_grad())
        held.enter_context(counting.modules())
        held.enter_context(counting)
        result = model(*call.inputs, **call.keywords)
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


# A model and its inputs, made by a function of the user's that is named on the command line.


_WANTED = "it must return a model and its inputs, such as `return model, x`"
Factory = Callable[[], Any]
_PACKAGE = Path(__file__).resolve().parents[1]


def load_factory(target: str) -> Factory:
    """The function that `FILE.py:NAME` or `package.module:NAME` means; NAME may be dotted.

    What the user's code prints while it is imported goes to standard error.

    Raises:
        TargetError: `target` has another form.
        FactoryError: there is no such file, module or function, or importing it failed.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise TargetError(f"{target}: must be FILE:FACTORY or module:FACTORY, such as net.py:make_model")
    try:
        with redirect_stdout(sys.stderr):
            module = _from_file(where) if _is_file(where) else _from_module(where)
    except DeepScopeError:
        raise
    except (Exception, SystemExit) as error:
        raise FactoryError(f"{where}: cannot be imported: {one_line(error)}") from error
    return _found(module, where, name)


def _is_file(where: str) -> bool:
    return where.endswith(".py") or "/" in where or "\\" in where or Path(where).is_file()


def _from_file(where: str) -> ModuleType:
    path = Path(where).resolve()
    if not path.is_file():
        raise FactoryError(f"{where}: no such file")
    sys.path.insert(0, str(path.parent))  # as for a script: it may import its neighbours
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "deepscope_factory"
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise FactoryError(f"{where}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look here
    spec.loader.exec_module(module)
    return module


def _from_module(where: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name and f"{where}.".startswith(f"{error.name}."):
            raise FactoryError(f"{where}: there is no file and no module of this name") from None
        raise


def _found(module: ModuleType, where: str, name: str) -> Factory:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise FactoryError(f"{where}: has no {name}{_others(module)}")
    if not callable(found):
        raise FactoryError(f"{where}:{name}: is no function; {_WANTED}")
    return found  # type: ignore[no-any-return]  # a callable is all that is known


def _others(module: ModuleType) -> str:
    """The functions that the module defines itself, to choose from."""
    own = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    return f"; there are: {', '.join(own[:10])}" if own else ""


def made_by(factory: Factory, target: str) -> ModelCall:
    """What the factory returns, as a call of the model.

    It returns the model and its inputs: a tuple or list of them, a dict of keyword arguments, one tensor, or several
    values; or a tuple and a dict for both. A dict whose keys are no parameters of the model is its only input.

    Raises:
        FactoryError: it fails, or returns something else.
    """
    try:
        with redirect_stdout(sys.stderr):
            made = factory()
    except DeepScopeError:
        raise
    except (Exception, SystemExit) as error:
        raise FactoryError(f"{target}: failed: {one_line(error)}") from error
    if not isinstance(made, tuple | list) or len(made) < 2 or not callable(made[0]):
        raise FactoryError(f"{target}: returned {_described(made)}; {_WANTED}")
    model, *rest = made
    if len(rest) == 2 and isinstance(rest[0], tuple | list) and isinstance(rest[1], Mapping):
        return ModelCall(model, tuple(rest[0]), dict(rest[1]))
    if len(rest) > 1:
        return ModelCall(model, tuple(rest), {})
    (given,) = rest
    if isinstance(given, Mapping) and _are_keywords(model, given):
        return ModelCall(model, (), dict(given))
    return ModelCall(model, tuple(given) if isinstance(given, tuple | list) else (given,), {})


def _described(made: Any) -> str:
    if isinstance(made, Sequence) and not isinstance(made, str):
        return f"{type(made).__name__} of {', '.join(type(one).__name__ for one in made[:3]) or 'nothing'}"
    return f"{type(made).__name__} alone" if callable(made) else type(made).__name__


def _are_keywords(model: Any, given: Mapping[Any, Any]) -> bool:
    """Whether the model's parameters have these names; of what tells no parameters, words are taken for keywords."""
    if not all(isinstance(key, str) for key in given):
        return False
    try:
        inspect.signature(getattr(model, "forward", model)).bind(**given)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def one_line(error: BaseException) -> str:
    """An exception of the user's code in one line, with the place in it where it was raised."""
    words = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{message} (line {error.lineno})" if error.lineno and "line" not in message else message
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith("<")
    ]
    mine = [frame for frame in frames if not Path(frame.filename).is_relative_to(_PACKAGE)]
    return f"{message} ({Path(mine[-1].filename).name}:{mine[-1].lineno})" if mine else message
