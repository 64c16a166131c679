"""Lightning: `Trainer(profiler="deep")`, and `DeepProfiler` for those who want to set its options.

The entry points of both import names of Lightning load this package in every `Trainer()`, wanted or not: it imports
nothing heavy, and whatever goes wrong in it costs one warning. `DeepProfiler` is resolved on first use: a subclass of
`lightning.pytorch`'s `Profiler`, or of `pytorch_lightning`'s where that is the one in use.

Lightning keeps the names of its profilers in a dict local to `trainer.setup._init_profiler` and offers no registry. It
does call the entry-point group `<package>.callbacks_factory` in every `Trainer()`, before it looks a name up there, so
that is where the function is wrapped.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepscope.lightning.for_lightning import DeepProfiler

__all__ = ["DeepProfiler", "register_lightning", "register_pytorch_lightning"]

NAME = "deep"
"""What stands in `Trainer(profiler=…)`, in any case."""

_MARK = "__deepscope__"
_MODULES = {"lightning.pytorch": "for_lightning", "pytorch_lightning": "for_pytorch_lightning"}
"""The modules with the `DeepProfiler` for each import name."""
failed: set[str] = set()
"""Packages that could not be taught the name, each of which was warned of once."""

InitProfiler = Callable[[Any, Any], None]


def register_lightning() -> list[Any]:
    """Teach `lightning.pytorch` the name; the callbacks that Lightning asked for are none."""
    _register("lightning.pytorch")
    return []


def register_pytorch_lightning() -> list[Any]:
    """Teach `pytorch_lightning` the name; the callbacks that Lightning asked for are none."""
    _register("pytorch_lightning")
    return []


def _register(package: str) -> None:
    if package in failed:
        return
    try:
        setup: Any = importlib.import_module(f"{package}.trainer.setup")
        original: InitProfiler = setup._init_profiler
        if not hasattr(original, _MARK):
            setup._init_profiler = _wrap(original, package)
    except Exception as error:  # noqa: BLE001  a Trainer() that does not ask for us must not fail because of us
        failed.add(package)
        _warn(
            f'DeepScope cannot offer Trainer(profiler="{NAME}") with this version of {package} ({error!r}); '
            "pass profiler=deepscope.lightning.DeepProfiler() in its place"
        )


def _wrap(original: InitProfiler, package: str) -> InitProfiler:
    @functools.wraps(original)
    def init_profiler(trainer: Any, profiler: Any = None) -> None:
        if not isinstance(profiler, str):
            original(trainer, profiler)
        elif profiler.lower() == NAME and (made := _make_profiler(package)) is not None:
            original(trainer, made)
        else:
            _init_by_name(original, trainer, profiler)

    setattr(init_profiler, _MARK, True)
    return init_profiler


def _make_profiler(package: str) -> Any | None:
    try:
        return _profiler_for(package)()
    except Exception as error:  # noqa: BLE001  Lightning's own error about the unknown name follows
        _warn(f'DeepScope cannot serve Trainer(profiler="{NAME}") with this version of {package}: {error!r}')
        return None


def _init_by_name(original: InitProfiler, trainer: Any, profiler: str) -> None:
    try:
        original(trainer, profiler)
    except Exception as error:
        # Lightning's MisconfigurationException: "… it can only be one of ['simple', …]".
        message = str(error)
        if profiler.lower() != NAME and message.endswith("']"):
            error.args = (f"{message[:-1]}, '{NAME}']",)
        raise


def _warn(message: str) -> None:
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        # Under `-W error` it would otherwise break every Trainer() of a user who never asked for us.
        logging.getLogger("deepscope").warning(message)


def _profiler_for(package: str) -> Any:
    return importlib.import_module(f"{__name__}.{_MODULES[package]}").DeepProfiler


def __getattr__(name: str) -> Any:
    if name != "DeepProfiler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _profiler_for(_package_in_use())


def _package_in_use() -> str:
    """The import name of Lightning that is in use; with both, or none yet, `lightning.pytorch`."""
    if "lightning.pytorch" in sys.modules:
        return "lightning.pytorch"
    is_other = "pytorch_lightning" in sys.modules or importlib.util.find_spec("lightning") is None
    return "pytorch_lightning" if is_other else "lightning.pytorch"
