"""Every private name of torch that recording uses, each with what happens where a torch does not have it."""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch

OutOfMemoryError: type[BaseException] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
"""Of a device; torch has it under this name from 2.5 on."""

_is_inherited = False
"""Whether this process was forked while torch recorded: it then says for ever that it does on the forked thread."""


def is_taken(own: Any = None, *, living: Iterable[Any] | None = None) -> bool:
    """Whether a torch profiler besides `own` (a `torch.profiler.profile`) records in this process, or is about to.

    Torch keeps no list of them, says nothing of one that warms up or records all threads, and crashes where two
    overlap. So the profilers themselves are looked for, some 30 ms in a program of 500,000 objects, unless all
    `living` ones are given.
    """
    mine = getattr(own, "profiler", None)
    kind = torch.autograd.profiler.profile
    found = gc.get_referrers(kind) if living is None else living
    if any(type(one) is kind and one is not mine and _is_open(one) for one in found):
        return True
    return mine is None and thread_is_taken()


def thread_is_taken() -> bool:
    """Whether a recording of this thread alone is under way; False where torch cannot tell."""
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(enabled()) if callable(enabled) and not _is_inherited else False


class DeviceInUse(NamedTuple):
    """A device that this process has memory on."""

    ordinal: int
    """Torch's number, which traces have, too."""
    number: int
    """In NVML or amdsmi; -1 where that cannot be told."""


def devices_in_use() -> tuple[str, tuple[DeviceInUse, ...]]:
    """`nvidia` or `amd`, and the devices that this process has memory on. Nothing is initialised by asking."""
    cuda = torch.cuda
    if not cuda.is_initialized():  # asked alone: `is_available` starts the driver, and forked children could not use it
        return "", ()
    is_amd = torch.version.hip is not None
    number = _amdsmi_number if is_amd else _nvml_number
    used = [device for device in range(cuda.device_count()) if cuda.memory_reserved(device)]
    return "amd" if is_amd else "nvidia", tuple(DeviceInUse(device, number(device)) for device in used)


@functools.cache
def _nvml_number(device: int) -> int:
    """By its UUID: what CUDA numbers as CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES say, NVML numbers by bus.

    Where torch does not tell UUIDs (before 2.5), as torch itself finds it, by CUDA_VISIBLE_DEVICES alone.
    """
    cuda: Any = torch.cuda
    with suppress(Exception):  # private functions over a vendor's library, which is not everywhere
        uuid = str(cuda.get_device_properties(device).uuid).removeprefix("GPU-")
        known = [one.removeprefix("GPU-") for one in cuda._raw_device_uuid_nvml()]
        if uuid in known:
            return known.index(uuid)
    with suppress(Exception):
        return int(cuda._get_nvml_device_index(device))
    return -1


@functools.cache
def _amdsmi_number(device: int) -> int:
    """As torch finds it, which needs amdsmi at work; before torch knew a way (2.4) its own number."""
    number = getattr(torch.cuda, "_get_amdsmi_device_index", None)
    if number is None:
        return device
    with suppress(Exception):  # a private function over a vendor's library, which is not everywhere
        importlib.import_module("amdsmi").amdsmi_init()
        return int(number(device))
    return -1


def leave_recording_to_parent() -> None:
    """In a child that was forked while torch recorded: record nothing there, where nobody will ever collect it.

    Torch would keep a kilobyte of every operator for the child's whole life. A profiler that the child starts itself
    records as usual. Where torch cannot take its callbacks out, they stay in. What it keeps of allocations
    (`profile_memory`), some 250 bytes an operator, stays in any case.
    """
    global _is_inherited
    _is_inherited = True
    clear = getattr(getattr(torch._C, "_autograd", None), "_clear_callbacks", None)
    if clear is not None:
        clear()
    torch.autograd.profiler._is_profiler_enabled = False
    # torch's own stacks hang on the interpreter, beside its callbacks.
    if type(sys.getprofile()).__name__ == "TraceContext":
        sys.setprofile(None)


def is_recording() -> bool:
    """Whether torch records at all; True where it cannot tell."""
    return bool(getattr(torch.autograd.profiler, "_is_profiler_enabled", True))


def all_threads_are_safe() -> bool:
    """Whether torch may record all threads without a risk to the process.

    Before 2.14 it freed the recording while operators of other threads still wrote into it, and crashed (pytorch 185741
    and 187483).
    """
    return bool(torch.__version__ >= (2, 14))  # a TorchVersion compares by the rules of versions


def records_all_threads() -> bool | None:
    """Whether the recording under way, which this thread has started, is of all threads; None where torch cannot tell.

    One of all threads is no thread's own: torch then says "not enabled" even on the thread that started it.
    """
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return not enabled() if callable(enabled) else None


def prepare(profiler: Any) -> None:
    """Have a torch profiler set up its tracing, without the warning of some versions that it has one cycle."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: Profiler clears events", UserWarning)
        profiler.prepare_trace()


def _is_open(profiler: Any) -> bool:
    """Whether it was prepared or started, and has not ended."""
    return bool(getattr(profiler, "entered", False)) and getattr(profiler, "kineto_results", None) is None


def experimental_config(*, all_threads: bool, with_stack: bool, sync_events: bool = False) -> Any:
    """The leanest configuration that this torch takes: no Python event objects, and what is asked for.

    None where torch has no experimental configuration or takes none of these.
    """
    make = getattr(getattr(torch._C, "_profiler", None), "_ExperimentalConfig", None)
    if make is None:
        return None
    # trace_only spares the event objects that only `events()` needs; torch warns when stacks are asked for with it.
    wanted = {"trace_only": not with_stack, "profile_all_threads": all_threads, "enable_cuda_sync_events": sync_events}
    taken: dict[str, bool] = {}
    for name in (name for name in wanted if wanted[name]):
        try:
            make(**taken, **{name: True})
        except TypeError:  # this torch does not know it
            continue
        taken[name] = True
    return make(**taken) if taken else None


def has_other_ranks() -> bool:
    """Whether a process group with other processes is up."""
    distributed = torch.distributed
    return bool(distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1)


def agreed_value(key: str, proposal: str) -> str | None:
    """What the process group holds under `key`: the `proposal` that came first; None where there is no group.

    Asks the group's key-value store, which is no collective: ranks that record at different times do not wait for each
    other.
    """
    if not has_other_ranks():
        return None
    store_of = getattr(torch.distributed.distributed_c10d, "_get_default_store", None)
    if store_of is None:
        return None
    try:
        held: bytes = store_of().compare_set(key, "", proposal)
    except (RuntimeError, ValueError, NotImplementedError):
        return None
    return held.decode("utf-8", "replace") or proposal


def shortest_timeout_s() -> float | None:
    """The shortest time-out of this process's groups; None where there is no group, or torch does not tell."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    groups: Any = getattr(getattr(distributed.distributed_c10d, "_world", None), "pg_map", ())
    found: list[float] = []
    for group in tuple(groups):
        for device in getattr(group, "_device_types", ()):
            with suppress(AttributeError, RuntimeError, TypeError):  # a back end without options
                found.append(group._get_backend(device).options._timeout.total_seconds())
    return min(found, default=None)


def autocast_type() -> str:
    """The type (`bfloat16`) that autocast gives to products on the current thread; "" where none is on."""
    for device in ("cuda", "cpu", "xpu", "mps"):
        try:
            if torch.is_autocast_enabled(device):  # with an argument from torch 2.4 on
                return str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        except (TypeError, RuntimeError):
            if device == "cuda" and torch.is_autocast_enabled():
                return str(torch.get_autocast_gpu_dtype()).removeprefix("torch.")
            if device == "cpu" and torch.is_autocast_cpu_enabled():
                return str(torch.get_autocast_cpu_dtype()).removeprefix("torch.")
    return ""


def watch_loaders(around: Callable[[Any], AbstractContextManager[None]]) -> Callable[[], None]:
    """Have every data loader that starts worker processes do so inside `around(loader)`; returns the way out.

    Torch tells nobody of it, so the iterator that starts them is wrapped.
    """

    def wrap(start: Callable[..., None]) -> Callable[..., None]:
        def watched(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            with around(loader):
                start(self, loader, *args, **kwargs)

        return watched

    return _wrapped(getattr(torch.utils.data.dataloader, "_MultiProcessingDataLoaderIter", None), "__init__", wrap)


def plain_tensors() -> AbstractContextManager[Any]:
    """Within it, methods of tensors are torch's own: subclasses with a `__torch_function__` are not asked."""
    disable = getattr(torch._C, "DisableTorchFunctionSubclass", None)
    return nullcontext() if disable is None else disable()


def memory_events(recording: Any) -> list[tuple[int, int]] | None:
    """Moments and sizes of the CPU's allocations (releases below 0) in an ended profile; None where torch hides them.

    They are shown by no public name but as sums of operators.
    """
    results = getattr(getattr(recording, "profiler", None), "kineto_results", None)
    if results is None:
        return None
    events = [one for one in results.events() if one.name() == "[memory]"]
    on_cpu = [one for one in events if one.device_type() == torch.autograd.DeviceType.CPU]
    try:
        return [
            (int(one.start_ns() if hasattr(one, "start_ns") else one.start_us() * 1000), int(one.nbytes()))
            for one in on_cpu
        ]
    except AttributeError:
        return None


def is_torchs(storage: torch.UntypedStorage) -> bool:
    """Whether torch allocated its bytes: NumPy's are not, nor those that processes share. Old torch does not tell."""
    resizable = getattr(storage, "resizable", None)
    return resizable is not None and bool(resizable())


def is_in_autocast() -> bool:
    """Whether this thread is within `torch.autocast`, on or off; a dispatch mode is always told that it is off."""
    depth = int(torch.autocast_increment_nesting())
    torch.autocast_decrement_nesting()
    return depth > 1


def without_modes() -> AbstractContextManager[Any]:
    """While it is entered no dispatch mode sees an operator."""
    disable = getattr(_python_dispatch, "_disable_current_modes", None)
    return disable() if disable is not None else nullcontext()


def next_node_number() -> int:
    """The number that the next node of autograd's graph gets on this thread; 0 where torch does not tell."""
    peek = getattr(torch.autograd, "_get_sequence_nr", None)
    return int(peek()) if peek is not None else 0


def running_node_number() -> int | None:
    """The number of `running_node`; None for none."""
    node = running_node()
    return None if node is None else int(node._sequence_nr())


def running_node() -> Any:
    """The node whose backward work runs on this thread; None outside a backward pass, and where torch does not tell."""
    running = getattr(torch._C, "_current_autograd_node", None)
    return running() if running is not None else None


def gathers_gradient(node: Any) -> bool:
    """Whether a node of autograd's graph gives a leaf its gradient: then the leaf is its `variable`."""
    return type(node).__name__ == "AccumulateGrad"


def flops_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """The floating-point operations of a product or a convolution by torch's formulas; 0 for other operators."""
    formulas = getattr(sys.modules.get("torch.utils.flop_counter"), "flop_registry", {})
    formula = formulas.get(getattr(function, "_overloadpacket", None))
    try:
        return 0 if formula is None else int(formula(*args, **kwargs, out_val=result))
    except Exception:  # noqa: BLE001 - formulas raise on shapes that they do not know
        return 0


def kept_eager() -> AbstractContextManager[Any]:
    """Within it, what `torch.compile` made runs operator by operator; from torch 2.6 on, else it runs as it is."""
    stance = getattr(torch.compiler, "set_stance", None)
    return nullcontext() if stance is None else stance("force_eager")


def shows_saved_values() -> bool:
    """Whether this torch shows what a node of autograd's graph keeps without unpacking it."""
    return hasattr(getattr(torch._C._autograd, "SavedTensor", None), "data")


def saved_values(node: Any) -> Iterator[Any]:
    """What a node of autograd's graph keeps for its backward pass: tensors, or what hooks packed them into.

    Unpacking would run the hooks, and checkpointing's compute the forward pass anew. A torch that cannot show them
    packed shows nothing.
    """
    kind = type(node)
    names = _saved_names.get(kind)
    if names is None:
        names = _saved_names[kind] = tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
    for name in names:
        try:
            saved = getattr(node, name)
            for one in saved if isinstance(saved, (tuple, list)) else (saved,):
                yield one.data
        except (RuntimeError, AttributeError):  # freed by a backward pass before; a torch that hides them
            continue


_saved_names: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()
"""By class of nodes: the attributes that show what they keep."""


def watch_backward(around: Callable[..., Callable[[], None]]) -> Callable[[], None]:
    """Have `around(results, …)` called before each backward pass, and what it returns behind it; returns the way out.

    Torch tells nobody of it, so the function that its `backward` and `grad` call is wrapped. Behind the results stand
    their gradients, whether the graph is kept, and whether a graph of this pass is made.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def watched(results: Any, *args: Any, **kwargs: Any) -> Any:
            behind = around(results, *args)
            found = original(results, *args, **kwargs)
            behind()
            return found

        return watched

    return _wrapped(torch.autograd, "_engine_run_backward", wrap)


def _wrapped(place: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], None]:
    """Put what `wrap` makes of a function in its place; returns the way out. Nothing where a torch does not have it."""
    original = None if place is None else getattr(place, name, None)
    if original is None:
        return lambda: None
    wrapper = functools.wraps(original)(wrap(original))
    setattr(place, name, wrapper)

    def take_out() -> None:
        if getattr(place, name) is wrapper:
            setattr(place, name, original)

    return take_out


_COMPILED_OF = "_orig_mod"
"""Where `torch.compile` keeps the module that it wraps."""


def uncompiled(model: Any) -> Any:
    """What `torch.compile` wrapped; anything else itself."""
    return getattr(model, _COMPILED_OF, model)


def uncompiled_path(path: str) -> str:
    """A module's path less the component that `torch.compile` puts around a module."""
    return ".".join(part for part in path.split(".") if part != _COMPILED_OF)


def is_within_pass() -> bool:
    """Whether a backward pass that begins now is part of something else: of another one, or of compiling."""
    context = getattr(sys.modules.get("torch._guards"), "TracingContext", None)
    is_compiling = context is not None and context.try_get() is not None
    return is_compiling or torch._C._current_graph_task_id() != -1


def watch_batches(take: Callable[[Any, Any], None]) -> Callable[[], None]:
    """Have `take(iterator, batch)` called with each batch that a data loader hands out; returns the way out."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def watched(self: Any) -> Any:
            batch = original(self)
            take(self, batch)
            return batch

        return watched

    return _wrapped(getattr(torch.utils.data.dataloader, "_BaseDataLoaderIter", None), "__next__", wrap)
