"""The kinds of events that a trace holds."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What an event is, by whatever name its recorder calls it. Lower kinds enclose higher ones at equal times."""

    ANNOTATION = 0
    """`user_annotation`: `record_function` spans, `ProfilerStep#N`, the data loader's and the optimizer's own."""
    PYTHON_FUNCTION = 1
    """A frame of torch's own `with_stack` recording."""
    LINE_SCOPE = 2
    """One run of one line, the user's or a library's, recorded by DeepScope (category `python_line`)."""
    MODULE_SCOPE = 3
    """One call of an `nn.Module`, recorded by DeepScope (category `python_module`)."""
    OPERATOR = 4
    """`cpu_op` and its older and other names."""
    RUNTIME = 5
    """A call of the device's runtime or driver on the CPU: launches, copies, synchronisation."""
    KERNEL = 6
    """Device work: a kernel, collectives included."""
    MEMCPY = 7
    """Device work: a copy."""
    MEMSET = 8
    """Device work: a fill."""
    DEVICE_SPAN = 9
    """A span on a device that encloses work (`gpu_user_annotation`, `cuda_sync`, …): never counted as device time."""
    OTHER = 10
    """Anything else: profiler overhead, trace spans, unknown categories."""
