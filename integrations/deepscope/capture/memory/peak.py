"""The most memory of the CPU that one call has at a time, as torch's profiler tells of allocations."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from torch.profiler import ProfilerActivity, profile

from deepscope.capture import torch_compat


def cpu_peak_bytes(call: Callable[[], object]) -> int | None:
    """Bytes above what was allocated before the call; None while another recording is under way.

    Counts what torch allocates on this thread and on autograd's. The call is made either way.
    """
    if torch_compat.is_taken():
        call()
        return None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        call()
    return _peak(torch_compat.memory_events(recording))


def _peak(events: list[tuple[int, int]] | None) -> int | None:
    """From moments and what was allocated (or, below 0, released) at each."""
    if events is None:
        return None
    live = most = 0
    for _, size_bytes in sorted(events, key=itemgetter(0)):
        live += size_bytes
        most = max(most, live)
    return most
