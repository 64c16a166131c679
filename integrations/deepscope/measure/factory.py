"""A model and its inputs, made by a function of the user's that is named on the command line."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from deepscope.errors import DeepScopeError, FactoryError, TargetError

_WANTED = "it must return a model and its inputs, such as `return model, x`"
Factory = Callable[[], Any]


class ModelCall(NamedTuple):
    """A model, and what to call it with."""

    model: Callable[..., Any]
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]


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


_PACKAGE = Path(__file__).resolve().parents[1]
