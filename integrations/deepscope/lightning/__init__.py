"""Lightning: `Trainer(profiler="deep")`, and `DeepProfiler` for those who want to set its options.

The entry points of both import names of Lightning load this package in every `Trainer()`, so it imports nothing
heavy. `DeepProfiler` is resolved on first use: a subclass of `lightning.pytorch`'s `Profiler`, or of
`pytorch_lightning`'s where that is the one in use.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from deepscope.lightning.registration import register_lightning, register_pytorch_lightning

if TYPE_CHECKING:
    from deepscope.lightning.for_lightning import DeepProfiler

__all__ = ["DeepProfiler", "register_lightning", "register_pytorch_lightning"]


def __getattr__(name: str) -> Any:
    if name != "DeepProfiler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{_flavour()}").DeepProfiler


def _flavour() -> str:
    """The module with the `DeepProfiler` for the import name in use; with both, or none yet, `lightning.pytorch`'s."""
    if "lightning.pytorch" in sys.modules:
        return "for_lightning"
    if "pytorch_lightning" in sys.modules or importlib.util.find_spec("lightning") is None:
        return "for_pytorch_lightning"
    return "for_lightning"
