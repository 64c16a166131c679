"""Every private name of torch that recording uses, each with what happens where a torch does not have it."""

from __future__ import annotations

import gc
from typing import Any

import torch

__all__ = ["agreed_value", "experimental_config", "is_recording", "is_taken", "thread_is_taken"]


def is_taken(own: Any = None) -> bool:
    """Whether a torch profiler besides `own` (a `torch.profiler.profile`) records in this process, or is about to.

    Torch keeps no list of them, says nothing of one that warms up or records all threads, and crashes where two
    overlap. So the profilers themselves are looked for: some 10 ms in a program of 100,000 objects.
    """
    mine = getattr(own, "profiler", None)
    kind = torch.autograd.profiler.profile
    if any(type(found) is kind and found is not mine and _is_open(found) for found in gc.get_referrers(kind)):
        return True
    return mine is None and thread_is_taken()


def thread_is_taken() -> bool:
    """Whether a recording of this thread alone is under way; False where torch cannot tell."""
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(enabled()) if callable(enabled) else False


def is_recording() -> bool:
    """Whether torch records at all; True where it cannot tell."""
    return bool(getattr(torch.autograd.profiler, "_is_profiler_enabled", True))


def _is_open(profiler: Any) -> bool:
    """Whether it was prepared or started, and has not ended."""
    return bool(getattr(profiler, "entered", False)) and getattr(profiler, "kineto_results", None) is None


def experimental_config(*, all_threads: bool, with_stack: bool) -> Any:
    """The leanest configuration that this torch takes: no Python event objects, and all threads where asked.

    None where torch has no experimental configuration or takes none of these.
    """
    make = getattr(getattr(torch._C, "_profiler", None), "_ExperimentalConfig", None)
    if make is None:
        return None
    # trace_only spares the event objects that only `events()` needs; torch warns when stacks are asked for with it.
    wanted = {"trace_only": not with_stack, "profile_all_threads": all_threads}
    for names in (("trace_only", "profile_all_threads"), ("profile_all_threads",), ("trace_only",)):
        try:
            return make(**{name: wanted[name] for name in names if wanted[name]})
        except TypeError:
            continue
    return None


def agreed_value(key: str, proposal: str) -> str:
    """What the process group holds under `key`: the `proposal` that came first; one's own where there is no group.

    Asks the group's key-value store, which is no collective: ranks that record at different times do not wait for each
    other.
    """
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() < 2:
        return proposal
    store_of = getattr(distributed.distributed_c10d, "_get_default_store", None)
    if store_of is None:
        return proposal
    try:
        held: bytes = store_of().compare_set(key, "", proposal)
    except (RuntimeError, ValueError, NotImplementedError):
        return proposal
    return held.decode("utf-8", "replace") or proposal
