"""What a remedy works with in the process that runs the program, and the modules that the program itself calls."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from torch import nn

from deepscope.trials.child.steps import StepClock

Action = Callable[[ModuleType], None]


class ImportActions:
    """A finder of modules that finds them as all others do, and acts once they have run."""

    def __init__(self) -> None:
        self._actions: dict[str, list[Action]] = {}
        self._is_looking = False

    def start(self) -> None:
        """Stand before all other finders."""
        sys.meta_path.insert(0, self)

    def when_imported(self, name: str, action: Action) -> None:
        """Call it with the module of this name; at once where it is imported already."""
        if name in sys.modules:
            action(sys.modules[name])
        else:
            self._actions.setdefault(name, []).append(action)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the other finders have, with our actions behind its loader."""
        del path, target
        if name not in self._actions or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_looking = False
        if spec is None or spec.loader is None:
            return None
        actions, run = self._actions.pop(name), spec.loader.exec_module

        def run_and_act(module: ModuleType) -> None:
            run(module)
            for action in actions:
                action(module)

        spec.loader.exec_module = run_and_act  # type: ignore[method-assign]
        return spec


Listener = Callable[[Any], None]


class OutermostModules:
    """Modules with parameters that are called outside of any other while gradients are recorded.

    `nn.Module.__call__` is wrapped until `stop`, and is torch's own again while an outermost module runs: what runs or
    is compiled inside never meets the wrapper.
    """

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.is_under_autocast: dict[int, bool] = {}
        self._listeners: list[Listener] = []
        self._original: Any = None

    def listen(self, listener: Listener) -> None:
        """Call it with each such module before the module's first call."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Wrap `nn.Module.__call__`."""
        original = self._original = nn.Module.__call__
        modules = self

        def outermost(module: Any, *arguments: Any, **keywords: Any) -> Any:
            if not torch.is_grad_enabled() or torch.jit.is_tracing():
                return original(module, *arguments, **keywords)
            modules._meet(module)
            nn.Module.__call__ = original
            try:
                return original(module, *arguments, **keywords)
            finally:
                if modules._original is not None:
                    nn.Module.__call__ = outermost

        nn.Module.__call__ = outermost

    def stop(self) -> None:
        """Put torch's own `__call__` back."""
        if self._original is not None:
            nn.Module.__call__, self._original = self._original, None

    def _meet(self, module: Any) -> None:
        if any(one is module for one in self.found) or next(module.parameters(), None) is None:
            return
        self.found.append(module)
        self.is_under_autocast[id(module)] = torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()
        for listener in self._listeners:
            listener(module)


def is_compiled(module: Any) -> bool:
    """Whether `torch.compile` was applied to it, in either way."""
    is_wrapped = type(module).__name__ == "OptimizedModule"
    return is_wrapped or getattr(module, "_compiled_call_impl", None) is not None


Keywords = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From the arguments that a constructor is called with, by name, to those that are set otherwise."""


class RemedyHooks:
    """Where one remedy is applied, and whether it met what it changes."""

    def __init__(
        self,
        name: str,
        *,
        imports: ImportActions,
        modules: OutermostModules,
        clock: StepClock,
        refused: Callable[[str, str], None],
    ) -> None:
        self._name = name
        self._refused = refused
        self._clock = clock
        self.modules = modules
        self.imports = imports
        self.is_applied = False

    def refuse(self, reason: str) -> None:
        """End the run: the remedy is not applicable, for a reason that only shows here."""
        self._refused(self._name, reason)

    def construct_with(self, kind: Any, keywords: Keywords) -> None:
        """Have constructors of a class, subclasses' included, called with other arguments where `keywords` has any."""
        begin = kind.__init__
        names = _positional_names(begin)

        @functools.wraps(begin)
        def begun(self_: Any, *arguments: Any, **given: Any) -> None:
            by_name = {**dict(zip(names, arguments, strict=False)), **given}
            changed = keywords(by_name)
            if not changed or len(arguments) > len(names):
                begin(self_, *arguments, **given)
                return
            self.is_applied = True
            begin(self_, **{**by_name, **changed})

        kind.__init__ = begun

    def repeat(self, action: Callable[[], object]) -> None:
        """Call it now and behind each step of the warm-up: the program may undo what it does."""
        action()
        self._clock.while_warming(action)
        self.is_applied = True

    def hold(self, home: Any, setter: str, value: object) -> None:
        """Have the function `setter` of a module or class set a value; the program's own calls of it do nothing."""
        real, owner = getattr(home, setter), os.getpid()

        @functools.wraps(real)
        def ignored(*arguments: Any, **keywords: Any) -> Any:
            return None if os.getpid() == owner else real(*arguments, **keywords)  # worker processes set their own

        setattr(home, setter, ignored)
        self.repeat(lambda: real(value))

    def wrap_forward(self, module: Any, around: Callable[..., Any]) -> None:
        """Have `around(forward, *arguments, **keywords)` called in the place of a module's `forward`."""
        forward = module.forward

        @functools.wraps(forward)
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            return around(forward, *arguments, **keywords)

        module.forward = wrapped
        self.is_applied = True


def _positional_names(begin: Any) -> list[str]:
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in inspect.signature(begin).parameters.values() if one.kind in kinds][1:]
