"""Whether a model is in evaluation mode: the modules whose parameters an optimizer changes, found when it is asked."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

_MOST_SCANS = 8
_MOST_MODULES = 64
"""So many modules of an optimizer are looked at."""


class ModelModes:
    """The modules of each optimizer, held weakly."""

    def __init__(self) -> None:
        self._modules: list[list[weakref.ref[Any]]] = []
        self._scans = 0

    def is_evaluating(self) -> bool:
        """Whether all modules of an optimizer are in evaluation mode; False where none is known."""
        groups = self._living()
        if not groups and self._scans < _MOST_SCANS:
            self._scan()
            groups = self._living()
        return any(all(not one.training for one in group) for group in groups)

    def _living(self) -> list[list[Any]]:
        groups = ([one for reference in group if (one := reference()) is not None] for group in self._modules)
        return [group for group in groups if group]

    def _scan(self) -> None:
        """It takes some 30 ms in a program of a million objects."""
        from torch import nn, optim

        from deepscope.capture.process_hooks.live_objects import living

        self._scans += 1
        modules, optimizers = living([nn.Module, optim.Optimizer])
        owners: dict[int, Any] = {}
        for module in modules:
            with suppress(Exception):  # one that is not made to its end
                owners.update((id(one), module) for one in module._parameters.values() if one is not None)
        self._modules = [_owners_of(optimizer, owners) for optimizer in optimizers]


def _owners_of(optimizer: Any, owners: dict[int, Any]) -> list[weakref.ref[Any]]:
    found: dict[int, Any] = {}
    with suppress(Exception):  # an optimizer of the user's own kind
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                module = owners.get(id(parameter))
                if module is not None and len(found) < _MOST_MODULES:
                    found[id(module)] = module
    return [weakref.ref(module) for module in found.values()]
