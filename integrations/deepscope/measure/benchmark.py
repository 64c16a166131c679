"""`deepscope.benchmark`: latency, throughput and memory of a function, with what they vary by."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from deepscope.capture import torch_compat
from deepscope.errors import OptionError
from deepscope.measure.counting import module_of, name_of, tensors_in
from deepscope.measure.timing import Clock, Timing, measured, timing_of


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
    most; three seconds at most). Then each is timed from its begin until the device has done its work, without garbage
    collection. On a device as many are made in a row, without waiting, for the throughput. One more call shows the
    memory.

    Args:
        function: a module, or any other function.
        inputs: as it takes them.
        batch_size: how many items a call works on, for `items_per_second`.
        seconds: how long calls are timed; ten calls at least.
        device: whose work is waited for; None for the device of the tensors in the inputs and the module, and where
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
    call = partial(function, *inputs, **keywords)
    is_host = used.type in {"cpu", "meta"}
    found = measured(call, clock_of(used), seconds, host_clock=None if is_host else time.perf_counter)
    return timing_of(
        found,
        name=name_of(function),
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
    module = module_of(function)
    held = [*module.parameters(), *module.buffers()] if module is not None else []
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


def clock_of(device: torch.device) -> Clock:
    """Waits until a device has done its work, and tells the time in seconds."""
    if device.type in {"cpu", "meta"}:
        return time.perf_counter
    module = getattr(torch, device.type)  # torch.cuda, torch.xpu, torch.mps, …
    wait = module.synchronize if device.type == "mps" else partial(module.synchronize, device)

    def seconds() -> float:
        wait()
        return time.perf_counter()

    return seconds


def peak_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """The most memory that a call has on the device above what was allocated before; None where torch cannot tell."""
    if device.type == "cpu":
        return _cpu_peak_bytes(call)
    module = getattr(torch, device.type)
    if not all(hasattr(module, name) for name in ("reset_peak_memory_stats", "max_memory_allocated")):
        return None
    module.synchronize(device)
    before = int(module.memory_allocated(device))
    module.reset_peak_memory_stats(device)
    call()
    module.synchronize(device)
    return max(0, int(module.max_memory_allocated(device)) - before)


def _cpu_peak_bytes(call: Callable[[], object]) -> int | None:
    """What torch allocates on this thread and on autograd's; None while another recording is under way."""
    if torch_compat.is_taken():
        call()
        return None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        call()
    events = torch_compat.memory_events(recording)
    if events is None:
        return None
    return max(accumulate((size_bytes for _, size_bytes in sorted(events, key=itemgetter(0))), initial=0))
