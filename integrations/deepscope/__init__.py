"""DeepScope: device time at the line of your PyTorch code that costs it.

    with deepscope.profile("runs/exp1", wait=1, warmup=1, active=3) as prof:
        for batch in prof.iterate(loader):
            ...

Names are imported when they are first used: `import deepscope` needs neither torch nor NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepscope.errors import DeepScopeError

if TYPE_CHECKING:
    from deepscope.capture.callback import callback as callback
    from deepscope.capture.notices import RecordingWarning as RecordingWarning
    from deepscope.capture.on_demand.start import OnDemand as OnDemand
    from deepscope.capture.on_demand.start import on_demand as on_demand
    from deepscope.capture.options import RecordingOptions as RecordingOptions
    from deepscope.capture.recording import Recording as Recording
    from deepscope.capture.recording import profile as profile
    from deepscope.lightning import DeepProfiler as DeepProfiler
    from deepscope.measure.model import count_model as count_model
    from deepscope.measure.timing import benchmark as benchmark
    from deepscope.records import Profile as Profile
    from deepscope.store import load_profile as load_profile
    from deepscope.trace.read import read_trace as read_trace

_HOMES = {
    "DeepProfiler": "deepscope.lightning",
    "OnDemand": "deepscope.capture.on_demand.start",
    "Profile": "deepscope.records",
    "Recording": "deepscope.capture.recording",
    "RecordingOptions": "deepscope.capture.options",
    "RecordingWarning": "deepscope.capture.notices",
    "benchmark": "deepscope.measure.timing",
    "callback": "deepscope.capture.callback",
    "count_model": "deepscope.measure.model",
    "load_profile": "deepscope.store",
    "on_demand": "deepscope.capture.on_demand.start",
    "profile": "deepscope.capture.recording",
    "read_trace": "deepscope.trace.read",
}

_EXTRAS = {"torch": "torch", "lightning": "lightning", "pytorch_lightning": "lightning"}

__all__ = [
    "DeepProfiler",
    "DeepScopeError",
    "OnDemand",
    "Profile",
    "Recording",
    "RecordingOptions",
    "RecordingWarning",
    "__version__",
    "benchmark",
    "callback",
    "count_model",
    "load_profile",
    "on_demand",
    "profile",
    "read_trace",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext deepscope` (docs/notebooks.md)."""
    from deepscope.notebook import DeepScopeMagics

    shell.register_magics(DeepScopeMagics)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("deepscope")
    if name not in _HOMES:
        raise AttributeError(f"module 'deepscope' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        from deepscope.errors import MissingExtraError

        raise MissingExtraError(package, _EXTRAS[package]) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
