"""The outermost modules: those that the program itself calls while it trains, found in its first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

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
