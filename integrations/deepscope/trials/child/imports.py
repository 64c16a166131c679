"""Actions for modules that the program may import: called once such a module is there, never importing it itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

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
