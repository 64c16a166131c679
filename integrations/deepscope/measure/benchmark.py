"""`deepscope.benchmark`: latency, throughput and memory of a function, with what they vary by."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from deepscope.errors import OptionError
from deepscope.measure.calls import tensors_in
from deepscope.measure.clocks import DeviceClock, HostClock, peak_bytes
from deepscope.measure.timing import Clock, Limits, Timing, measured, timing_of


def benchmark(
    function: Callable[..., Any],
    /,
    *inputs: Any,
    batch_size: int | None = None,
    seconds: float = 1.0,
    device: str | torch.device | None = None,
    **keywords: Any,
) -> Timing:
    """Time calls `function(*inputs, **keywords)`: latency, throughput, peak of memory.

    Calls are made until they are steady (the medians of five calls and of the five before differ by a twentieth at
    most; three seconds at most). Then each is timed from its begin until its work is done, by the device's events or
    by the host's clock, without garbage collection. Then as many are made in a row, without waiting, for the
    throughput. One more call shows the memory.

    Args:
        function: a module, or any other function.
        inputs: as it takes them.
        batch_size: how many items a call works on, for `items_per_second`.
        seconds: how long calls are timed; ten calls at least.
        device: whose events are timed; None for the device of the tensors in the inputs and the module, and where
            these tell none, for the accelerator in use.
        keywords: as the function takes them.

    Raises:
        OptionError: an option has a value that cannot be used.
    """
    if not callable(function):
        raise OptionError("function", function, "must be a function or a module")
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise OptionError("batch_size", batch_size, "must be an integer, 1 or more")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise OptionError("seconds", seconds, "must be a number above 0")
    used = _device(device, function, inputs, keywords)
    clock: Clock = HostClock() if used.type in {"cpu", "meta"} else DeviceClock(used)
    call = partial(function, *inputs, **keywords)
    with _without_collection():
        found = measured(call, clock, Limits(seconds=seconds))
    return timing_of(
        found,
        name=_name_of(function),
        device=str(used),
        batch_size=batch_size,
        peak_bytes=peak_bytes(call, used) if used.type != "meta" else None,
    )


def _device(given: str | torch.device | None, function: Any, inputs: Any, keywords: Any) -> torch.device:
    if given is not None:
        try:
            chosen = torch.device(given)
        except (RuntimeError, TypeError) as error:
            raise OptionError("device", given, str(error).splitlines()[0]) from None
        is_there = chosen.type in {"cpu", "meta"} or getattr(torch, chosen.type, None) is not None
        if not is_there or (chosen.type == "cuda" and not torch.cuda.is_available()):
            raise OptionError("device", given, "there is no such device")
        return chosen
    module = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
    held = [*module.parameters(), *module.buffers()] if isinstance(module, nn.Module) else []
    devices = {one.device for one in (*held, *tensors_in((inputs, keywords)))}
    on_device = sorted((one for one in devices if one.type != "cpu"), key=str)
    if on_device:
        return on_device[0]
    return torch.device("cpu") if devices else _in_use()


def _in_use() -> torch.device:
    """The accelerator, if this process has used it; else the CPU."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.device("cuda", torch.cuda.current_device())
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        current = accelerator.current_accelerator()
        if current is not None and current.type != "cuda":
            return torch.device(current.type, accelerator.current_device_index())
    return torch.device("cpu")


def _name_of(function: Callable[..., Any]) -> str:
    if isinstance(function, nn.Module):
        return type(getattr(function, "_orig_mod", function)).__qualname__
    return str(getattr(function, "__qualname__", type(function).__qualname__))


@contextmanager
def _without_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
