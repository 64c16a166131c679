"""The profiler's own scopes: how a named span is opened and closed on the clock of torch's recording."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch

from deepscope.trace.format.span_names import MOMENT_NAME

Enter = Callable[[], Any]
Exit = Callable[[], Any]
Pair = tuple[Enter, Exit]
"""Opens and closes one reusable scope; never opened twice without being closed in between."""


def make_pair(name: str) -> Pair:
    """A scope of that name (ASCII, no quotes: Kineto's writer breaks on both).

    Torch's fast scope costs 0.4 µs a run; where a torch has none, `record_function` stands in at ten times that.
    """
    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    if fast is not None:
        scope = fast(name)
        return scope.__enter__, scope.__exit__
    slow = torch.profiler.record_function(name)
    return slow.__enter__, lambda: slow.__exit__(None, None, None)


_OPERATOR_SCOPES = 0.8
"""Scopes that the recording of an operator costs, without shapes and memory (torch 2.13: 0.7 to 0.9 of one)."""
_SCOPES = 32


def cost_of_operator_ns() -> float:
    """What torch's recording of an operator takes on this machine, by that of bare scopes; while torch records."""
    enter, leave = make_pair(MOMENT_NAME)
    best_ns = min(_scopes_ns(enter, leave) for _ in range(3))
    return round(_OPERATOR_SCOPES * best_ns / _SCOPES, 1)


def _scopes_ns(enter: Enter, leave: Exit) -> int:
    started = perf_counter_ns()
    for _ in range(_SCOPES):
        enter()
        leave()
    return perf_counter_ns() - started


sequence_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr", int)
"""What autograd has counted on this thread: each operator that it must know of for a backward pass. 0 where torch does
not tell."""


def profiler_enabled() -> bool:
    """Whether this thread has a recording of its own; one of all threads (`profile_all_threads`) does not count.

    True where torch cannot tell: entering is then torch's own affair, and without a recording it does nothing.
    """
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(enabled()) if enabled is not None else True
