"""Surveys of who holds memory, made in one window at the moments at which the holders change."""

from __future__ import annotations

import itertools
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from deepscope.capture import torch_compat
from deepscope.capture.dynamo import hide_modules, undisturbed
from deepscope.capture.lines import emit
from deepscope.capture.lines.emit import make_pair
from deepscope.capture.nested_tensors import tensors_in
from deepscope.capture.process_hooks import optimizer_steps
from deepscope.capture.process_hooks.interrupts import held_back
from deepscope.capture.process_hooks.live_objects import live_objects
from deepscope.trace.format import span_names
from deepscope.trace.format.process_tables import (
    ELSEWHERE,
    HELD_KINDS,
    Held,
    MemoryAccount,
    OutOfMemory,
    Release,
    Survey,
)
from deepscope.trace.format.span_names import memory_name

Holding = tuple[int, Any]
"""Index into `HELD_KINDS`, and a value with tensors in it."""

PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS = range(len(HELD_KINDS))

_MOST_NODES = 300_000
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xla": 9, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19}
"""torch's DeviceType as its memory events have it; ROCm's devices call themselves `cuda`, too."""
_OTHER = 20
"""PrivateUse1: devices from outside torch."""


def storages(kind: int, value: Any) -> Iterator[Held]:
    """The storages of all tensors in a value; those that lie nowhere (fake, meta, released) are left out."""
    found = tensors_in(value)
    while True:
        try:
            held = _held(kind, next(found))
        except StopIteration:
            return
        except Exception:  # noqa: BLE001, S112  a tensor of somebody's own kind, which has no storage to show
            continue
        if held is not None:
            yield held


def _held(kind: int, tensor: torch.Tensor) -> Held | None:
    device = tensor.device
    if device.type == "meta":
        return None
    storage = tensor.untyped_storage()
    address, size = storage.data_ptr(), storage.nbytes()
    if not address or not size:
        return None
    index = -1 if device.type == "cpu" or device.index is None else device.index
    return Held(kind, _DEVICE_TYPES.get(device.type, _OTHER), index, address, size)


class LiveObjects:
    """The modules and optimizers that are alive in this process; where asked for, the tensors, and those of them that
    are results of differentiable operations."""

    def __init__(self, *, tensors: bool) -> None:
        kinds = [nn.Module, Optimizer, *([torch.Tensor] if tensors else [])]
        self.modules, self.optimizers, *more = live_objects(kinds)
        self.tensors: list[Any] = [one for kind in more for one in kind]
        self.results = [one for one in self.tensors if _is_result(one)]


def _is_result(tensor: Any) -> bool:
    with suppress(Exception):  # a view whose base was changed in a way that autograd forbids
        return tensor.grad_fn is not None
    return False


def held_by_living(found: LiveObjects) -> Iterator[Holding]:
    """Parameters, buffers, gradients and optimizers' state, each as often as it is held."""
    for module in found.modules:
        fields = module.__dict__
        for parameter in (fields.get("_parameters") or {}).values():
            yield from _with_gradient(parameter)
        for buffer in (fields.get("_buffers") or {}).values():
            yield PARAMETERS, buffer
    for optimizer in found.optimizers:
        yield from held_by_optimizer(optimizer)


def held_by_optimizer(optimizer: Any) -> Iterator[Holding]:
    """The parameters that an optimizer changes, their gradients, and its state."""
    for group in getattr(optimizer, "param_groups", None) or ():
        for one in group["params"]:
            yield from _with_gradient(one)
    state: Any
    for state in list((getattr(optimizer, "state", None) or {}).values()):
        yield OPTIMIZER, state


def _with_gradient(parameter: Any) -> Iterator[Holding]:
    if isinstance(parameter, torch.Tensor):
        yield PARAMETERS, parameter
        if parameter.is_leaf and parameter.grad is not None:
            yield GRADIENTS, parameter.grad


class Graph:
    """What a graph of autograd holds."""

    def __init__(self) -> None:
        self.leaves: list[torch.Tensor] = []
        """The tensors whose gradients it adds to."""
        self.kept: list[Held] = []
        """What it keeps for the backward pass. The storages alone, since the tensors must die with the pass."""

    def held_by_leaves(self) -> Iterator[Holding]:
        """The leaves and their gradients."""
        return (one for leaf in self.leaves for one in _with_gradient(leaf))


def walk(results: Iterable[Any]) -> Graph:
    """The graph behind some results: what it keeps for the backward pass, and the leaves that it ends in.

    Nothing is unpacked: what hooks keep elsewhere (checkpointing, offloading) is seen as they keep it.
    """
    graph = Graph()
    seen: set[Any] = set()
    left = [_node_of(one) for one in results]
    while left and len(seen) < _MOST_NODES:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left += [following for following, _ in node.next_functions]
        if torch_compat.gathers_gradient(node):
            graph.leaves.append(node.variable)
        for saved in torch_compat.saved_values(node):
            graph.kept += storages(ACTIVATIONS, saved)
    return graph


def _node_of(value: Any) -> Any:
    """The node that made a tensor; or, since backward passes may begin at edges of a graph, an edge's own."""
    return value.grad_fn if isinstance(value, torch.Tensor) else getattr(value, "node", None)


_CPU = 0
_NO_ACTIVATIONS = "what autograd keeps is not told apart: this torch does not show it"
_MOST_TENSORS = 100_000
_TOO_MANY = (
    f"the CPU's memory is more than shown: {{:,}} tensors were alive as the window began, {_MOST_TENSORS:,} are counted"
)
_OF_CPU = ("DefaultCPUAllocator", "not enough memory")
"""What torch's RuntimeError says where the CPU's memory is full."""
_CHAIN = 5
"""Exceptions are looked through for the ones that they were raised for, so far."""


def is_out_of_memory(error: BaseException) -> BaseException | None:
    """The failed allocation that an exception is, or that it was raised for; None for any other."""
    found: BaseException | None = error
    for _ in range(_CHAIN):
        if isinstance(found, (torch_compat.OutOfMemoryError, MemoryError)):
            return found
        if isinstance(found, RuntimeError) and any(words in str(found) for words in _OF_CPU):
            return found
        found = None if found is None else found.__cause__ or found.__context__
    return None


def _storages(holdings: Iterable[Holding]) -> Iterator[Held]:
    return (one for kind, value in holdings for one in storages(kind, value))


class MemorySurveys:
    """The surveys of one window, from `begin` to `end`; all run on the thread that does what they watch.

    Each leaves a span in torch's recording, whose number stands in for its time until the trace is made. Nothing that
    goes wrong here reaches the run.
    """

    def __init__(self) -> None:
        self.account = MemoryAccount()
        """Complete after `end`."""
        self._numbers = itertools.count()
        self._is_open = False
        self._optimizers: set[int] = set()
        self._parameters: set[tuple[int, int, int]] = set()
        """Where they lie: device type, device and address."""
        self._watched: list[weakref.ref[Any]] = []
        self._take_out: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Look for what is there already, and watch what comes; torch records by now."""
        self._is_open = True
        hide_modules((sys.modules[__name__], torch_compat, emit, span_names, optimizer_steps))
        if not torch_compat.shows_saved_values():
            self.account.warnings.append(_NO_ACTIVATIONS)
        found: list[LiveObjects] = []
        self._safely(self._look_at_begin, found)
        self._safely(self._look_at_graphs, found)
        self._safely(self._install)

    def step(self) -> None:
        self._safely(self._note, "step", ())

    def end(self) -> None:
        """Look once more, and watch no longer; torch still records."""
        if not self._is_open:
            return
        for take_out in self._take_out:
            self._safely(take_out)
        self._take_out.clear()
        self._safely(self._look_at_end)
        self._is_open = False
        self._watched.clear()

    def abandon(self) -> None:
        """In a forked child, where nobody records: watch no longer."""
        self._is_open = False
        for take_out in self._take_out:
            take_out()
        self._take_out.clear()
        self._watched.clear()

    def fail(self, error: BaseException) -> None:
        """An exception ends the run; if memory ran out, look who holds it before the exception lets go of it."""
        found = is_out_of_memory(error)
        if self._is_open and found is not None and self.account.failure is None:
            self._safely(self._look_at_failure, found)

    def called(self, frame: FrameType) -> None:
        """The outermost module is called, in a frame of torch's `_call_impl`."""
        if self._is_open:
            self._safely(self._note_inputs, (frame.f_locals.get("args"), frame.f_locals.get("kwargs")))

    def _install(self) -> None:
        self._take_out.append(optimizer_steps.listen(self._stepped))
        self._take_out.append(torch_compat.watch_backward(self._around_backward))
        self._take_out.append(torch_compat.watch_batches(lambda _, batch: self._safely(self._note_inputs, batch)))

    def _look_at_begin(self, into: list[LiveObjects]) -> None:
        found = LiveObjects(tensors=True)
        into.append(found)
        self._optimizers.update(map(id, found.optimizers))
        self._note("begin", held_by_living(found))
        others = self._others(found)
        self._watch_releases(itertools.chain(held_by_living(found), others))
        self._note("begin", others)

    def _look_at_graphs(self, found: list[LiveObjects]) -> None:
        for one in found:
            at = self._moment()
            graph = walk(one.results)
            self._add(at, "begin", itertools.chain(_storages(graph.held_by_leaves()), graph.kept))

    def _look_at_end(self) -> None:
        self._note("end", held_by_living(LiveObjects(tensors=False)))

    def _others(self, found: LiveObjects) -> list[Holding]:
        """The CPU's tensors, whatever holds them: its allocator does not tell what was there before the window."""
        on_cpu = [(ELSEWHERE, one) for one in found.tensors if one.device.type == "cpu"]
        if len(on_cpu) > _MOST_TENSORS:
            self.account.warnings.append(_TOO_MANY.format(len(on_cpu)))
        return on_cpu[:_MOST_TENSORS]

    def _look_at_failure(self, error: BaseException) -> None:
        at = self._moment()
        found = LiveObjects(tensors=True)
        graph = walk(found.results)
        held = itertools.chain(held_by_living(found), graph.held_by_leaves())
        self._add(at, "failure", itertools.chain(_storages(held), graph.kept))
        lines = str(error).strip().splitlines()
        self.account.failure = OutOfMemory(
            at_ns=at,
            error=type(error).__qualname__,
            message=lines[0][:300] if lines else "",
            on_cpu=not isinstance(error, torch_compat.OutOfMemoryError),
        )

    def _note_inputs(self, values: Any) -> None:
        given = [one for one in tensors_in(values) if one.grad_fn is None and not isinstance(one, torch.nn.Parameter)]
        if given:
            self._note("inputs", ((INPUTS, one) for one in given))

    def _around_backward(self, results: Any, *_: Any) -> Callable[[], None]:
        """Called as a backward pass begins; what it returns, as it has ended."""
        graphs: list[Graph] = []
        self._safely(self._before_backward, results, graphs)
        return lambda: self._safely(self._behind_backward, graphs)

    def _before_backward(self, results: Any, graphs: list[Graph]) -> None:
        at = self._moment()
        graph = walk(results)
        graphs.append(graph)
        self._add(at, "backward", itertools.chain(_storages(graph.held_by_leaves()), graph.kept))

    def _behind_backward(self, graphs: list[Graph]) -> None:
        for graph in graphs:
            self._note("gradients", graph.held_by_leaves())

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._is_open:
            is_new = id(optimizer) not in self._optimizers
            self._optimizers.add(id(optimizer))
            self._safely(self._note, "optimizer", held_by_optimizer(optimizer) if is_new else ())

    def _watch_releases(self, holdings: Iterable[Holding]) -> None:
        """The CPU's allocator says nothing of what it releases if that was allocated before the window."""
        seen: set[int] = set()
        for tensor in (one for _, value in holdings for one in tensors_in(value)):
            with suppress(Exception):  # a tensor of somebody's own kind, as in `storages`
                storage = tensor.untyped_storage()
                address = storage.data_ptr()
                if tensor.device.type == "cpu" and address and address not in seen:
                    seen.add(address)
                    self._watched.append(weakref.ref(storage, partial(self._released, address)))

    def _released(self, address: int, _: Any) -> None:
        self._safely(lambda: self.account.releases.append(Release(self._moment(), _CPU, -1, address)))

    def _note(self, occasion: str, holdings: Iterable[Holding]) -> None:
        at = self._moment()
        self._add(at, occasion, _storages(holdings))

    def _add(self, at: int, occasion: str, held: Iterable[Held]) -> None:
        """A storage that several hold is told once, and parameters that are known already not again."""
        first: dict[tuple[int, int, int], Held] = {}
        for one in held:
            place = (one.device_type, one.device_id, one.address)
            known = first.get(place)
            if known is None or one.kind < known.kind:
                first[place] = one
        changed = {
            place: one for place, one in first.items() if one.kind != PARAMETERS or place not in self._parameters
        }
        self._parameters.update(place for place, one in changed.items() if one.kind == PARAMETERS)
        self.account.surveys.append(Survey(at, occasion, list(changed.values())))

    def _moment(self) -> int:
        """Marks this moment in torch's recording; where torch does not record the thread, the moment has no time."""
        number = next(self._numbers)
        enter, leave = make_pair(memory_name(number))
        with suppress(RuntimeError):
            enter()
            leave()
        return number

    def _safely(self, act: Callable[..., None], *args: Any) -> None:
        if self._is_open:
            undisturbed(self._undisturbed, act, *args)

    def _undisturbed(self, act: Callable[..., None], *args: Any) -> None:
        with held_back():  # what a signal's handler raises is no failure of the survey
            started = time.perf_counter_ns()
            try:
                with torch_compat.plain_tensors():
                    act(*args)
            except Exception as error:  # noqa: BLE001 - the run goes on, and its memory is told as far as it is known
                message = f"a survey of the memory failed: {type(error).__name__}: {error}"
                if message not in self.account.warnings and len(self.account.warnings) < 10:
                    self.account.warnings.append(message)
            self.account.cost_ns += time.perf_counter_ns() - started
