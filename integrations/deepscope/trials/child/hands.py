"""What a remedy works with in the process that runs the program."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from deepscope.trials.child.imports import ImportActions
from deepscope.trials.child.modules import OutermostModules
from deepscope.trials.child.steps import StepClock

Keywords = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From the arguments that a constructor is called with, by name, to those that are set otherwise."""


class RefusedError(Exception):
    """A remedy cannot be applied to what it met; raised by `Hands.refuse`, and never to the program."""


class Hands:
    """For one remedy: hooks to apply it at, and whether it met what it changes."""

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

    def applied(self) -> None:
        """The remedy has changed something."""
        self.is_applied = True

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
            self.applied()
            begin(self_, **{**by_name, **changed})

        kind.__init__ = begun

    def hold(self, home: Any, setter: str, value: Callable[[Callable[..., Any]], object], original: Any = None) -> None:
        """Set something now, and behind each step of the warm-up; the program's own calls of the setter do nothing.

        Args:
            home: the module that has the setter.
            setter: its name.
            value: calls the setter that it is given with the value to hold.
            original: the setter, where it is not the one of this name.
        """
        real, owner = original or getattr(home, setter), os.getpid()

        @functools.wraps(real)
        def ignored(*arguments: Any, **keywords: Any) -> Any:
            return None if os.getpid() == owner else real(*arguments, **keywords)  # worker processes set their own

        setattr(home, setter, ignored)
        value(real)
        self._clock.while_warming(lambda: (value(real), None)[1])
        self.applied()

    def while_warming(self, action: Callable[[], None]) -> None:
        """Call it behind each step of the warm-up."""
        self._clock.while_warming(action)

    def wrap_forward(self, module: Any, around: Callable[..., Any]) -> None:
        """Have `around(forward, *arguments, **keywords)` called in the place of a module's `forward`."""
        forward = module.forward

        @functools.wraps(forward)
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            return around(forward, *arguments, **keywords)

        module.forward = wrapped
        self.applied()


def _positional_names(begin: Any) -> list[str]:
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in inspect.signature(begin).parameters.values() if one.kind in kinds][1:]
