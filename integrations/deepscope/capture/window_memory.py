"""The memory of one window: surveys of who holds it (`profile_memory`), and torch's own history (`memory_snapshot`)."""

from __future__ import annotations

import inspect
import itertools
import pickle
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from deepscope.capture import memory_holders, torch_compat
from deepscope.capture.dynamo import hide_modules, undisturbed
from deepscope.capture.lines import scopes
from deepscope.capture.lines.scopes import make_pair
from deepscope.capture.memory_holders import (
    INPUTS,
    PARAMETERS,
    Graph,
    Holding,
    LiveObjects,
    held_by_living,
    held_by_optimizer,
    storages,
    tensors_in,
    walk,
)
from deepscope.capture.notices import warn
from deepscope.capture.process_hooks import optimizer_steps
from deepscope.capture.process_hooks.signals import held_back
from deepscope.trace.format import span_names
from deepscope.trace.format.process_tables import (
    ELSEWHERE,
    Held,
    MemoryAccount,
    OutOfMemory,
    Release,
    Survey,
)
from deepscope.trace.format.run_account import renamed_when_whole
from deepscope.trace.format.span_names import memory_name

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
        hide_modules((sys.modules[__name__], memory_holders, torch_compat, scopes, span_names, optimizer_steps))
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
            self._add(at, "begin", itertools.chain(storages(graph.held_by_leaves()), graph.kept))

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
        self._add(at, "failure", itertools.chain(storages(held), graph.kept))
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
        self._add(at, "backward", itertools.chain(storages(graph.held_by_leaves()), graph.kept))

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
        self._add(at, occasion, storages(holdings))

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


MOST_ENTRIES = 200_000
"""Each takes about a kilobyte while it is kept; the oldest give way."""
_WANTED = {
    "context": "alloc",
    "stacks": "python",
    "max_entries": MOST_ENTRIES,
    "clear_history": True,
    "global_record_annotations": True,
}
_NO_DEVICE = (
    "no memory snapshot: torch takes them of CUDA's memory, and there is no such device; the trace's own blocks "
    "(profile_memory=True) tell the CPU's memory"
)


class MemoryHistory:
    """torch's own history of the GPU's memory in a window, written as a snapshot beside the trace.

    A history that the user records is left as it is, and the snapshot is of that one.

    https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
    """

    def __init__(self) -> None:
        self._is_own = False
        self._is_recording = False
        self._snapshot: Any = None

    def begin(self) -> None:
        """Record allocations from here on, if there is a device."""
        if not torch.cuda.is_available():
            warn(_NO_DEVICE)
            return
        try:
            self._is_own = not _is_enabled()
            if self._is_own:
                record: Any = torch.cuda.memory._record_memory_history
                known = inspect.signature(record).parameters  # older torch has fewer
                record("all", **{name: value for name, value in _WANTED.items() if name in known})
            self._is_recording = True
        except Exception as error:  # noqa: BLE001 - an allocator without a history, a torch that has changed
            warn("no memory snapshot", error)

    def end(self) -> None:
        """Take the snapshot, and record no longer."""
        if not self._is_recording:
            return
        self._is_recording = False
        try:
            try:
                self._snapshot = torch.cuda.memory._snapshot()
            finally:
                if self._is_own:
                    torch.cuda.memory._record_memory_history(None)
        except Exception as error:  # noqa: BLE001 - a device that is lost
            warn("no memory snapshot", error)

    def write(self, path: Path) -> None:
        """Write the snapshot, once, if there is one. Raises `OSError` where that fails; nothing is left then."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None:
            return
        with renamed_when_whole(path) as part, part.open("wb") as stream:
            pickle.dump(snapshot, stream)


def _is_enabled() -> bool:
    """Whether somebody records a history already."""
    ask = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(ask is not None and ask())
