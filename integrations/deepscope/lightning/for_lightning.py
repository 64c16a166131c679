"""`DeepProfiler` for `import lightning.pytorch`."""

from __future__ import annotations

from lightning.pytorch.profilers import Profiler

from deepscope.lightning.profiler import DeepProfiling


class DeepProfiler(DeepProfiling, Profiler):  # type: ignore[misc]  # noqa: D101 - as its base; Lightning is not followed by mypy
    __doc__ = DeepProfiling.__doc__
