"""What steps compute of the batch and of what no step changes: of a sample it is the same in each epoch.

A batch comes from a data loader, or is picked by row from a tensor that no step changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Set
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.constants import bytes_of
from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.operator_calls import (
    COPIES,
    OperatorCall,
    aten,
    covers_storage,
    key_of,
    keys_of,
    storage_bytes,
    tensors_of,
)
from deepscope.capture.audit.step_work import StepWork
from deepscope.capture.memory_holders import tensors_in
from deepscope.trace.format.audit import SameWork

_COPYING = COPIES | {"aten::copy_"}
_UNDEFINED = ("aten::empty", "aten::new_empty")
_PRODUCTS = aten("mm addmm mv addmv dot _euclidean_dist")
"""Of rows with rows: two tensors of samples give something of each pair of samples."""
_BATCHED_PRODUCTS = aten("bmm baddbmm _cdist_forward")
_JOINING = "aten::cat"

Draw = tuple[int, ...]
"""Who drew samples: numbers of rows (storage, offset and length), or a data loader. Empty for what depends on none."""
_LOADER: Draw = (0,)
_NORM = "aten::linalg_vector_norm"
_REDUCING = ("mean", "sum", "std", "var", "amax", "amin", "max", "min", "prod")
_REDUCTIONS = frozenset(f"aten::{name}" for name in _REDUCING) | {_NORM}


class _Signature(NamedTuple):
    """What a call takes beside the contents of its tensors: in two steps the same, but for the lengths of batches."""

    layout: Hashable
    """How its tensors lie in their storages."""
    given: Hashable
    """Its other arguments, and where its tensors begin."""
    numbers: Hashable
    """Those of its arguments that are no lengths, and tensors of Python's numbers."""

    def fits(self, other: _Signature) -> bool:
        """Whether batches of the same lengths would have had the same call."""
        return self.numbers == other.numbers and (self.given == other.given or self.layout != other.layout)


class _Computed(NamedTuple):
    """A call of the second step."""

    number: int
    first: int
    """The same call of the first step."""
    of_batch: bool
    """Whether it depends on the batch; else on what no step changes alone."""
    fixed: frozenset[int]
    """The storages from before the steps that it reads."""
    moves: bool
    """Whether it only copies samples."""


class _SampleCalls(NamedTuple):
    """Calls of the first step, by their numbers, each with that of the same call of the second one."""

    of_batch: dict[int, int]
    fixed: set[int]
    """Those that compute the same in each step."""


class SampleValues(Observer[Draw]):
    """Of two steps: who drew the samples that what a storage holds depends on; of others it is not known."""

    def __init__(self, flow: Flow, fixed: Set[int], parameters: Set[int]) -> None:
        """`fixed`: the storages that no step changes; `parameters`: those of all parameters."""
        super().__init__(flow)
        self._fixed = fixed
        self._others = parameters - fixed
        self._loaded: set[int] = set()
        """Storages that a loader handed out or into which samples were picked, and copies of these."""
        self._step = 0
        self._read_before: set[int] = set()
        """Storages that the first step reads, and nobody was seen to have written to."""
        self._python: dict[int, Hashable] = {}
        """By storage: the bytes of a tensor of Python's numbers."""
        self._changed: set[int] = set()
        """Those of `fixed` and `_read_before` that somebody wrote to after all."""
        self._calls: dict[tuple[int, str], list[tuple[int, _Signature]]] = defaultdict(list)
        """Of the first step, by path and operator."""
        self._counts: Counter[tuple[int, str]] = Counter()
        """Of the second step."""
        self._computed: list[_Computed] = []
        self._is_random = False
        """Whether a loader draws random numbers: a sample is then another one in each epoch."""
        self._stepped_at: int | None = None

    def load(self, iterator: Any, batch: Any) -> None:
        """A data loader has handed out a batch; a stream of samples may have each of them once."""
        kinds = torch.utils.data.dataloader._DatasetKind
        if getattr(iterator, "_dataset_kind", kinds.Iterable) == kinds.Iterable:
            return
        loaded = self._flow.follow(tensors_in(batch))
        self._held.update(dict.fromkeys(loaded, _LOADER))
        self._loaded |= loaded

    def build(self, tensor: torch.Tensor) -> None:
        """A line has made a tensor of Python's numbers; integers and flags may be equal by chance."""
        value = bytes_of(tensor) if tensor.dim() == 0 or tensor.is_floating_point() else None
        if value is not None:
            self._python.update(dict.fromkeys(self._flow.follow([tensor]), value))

    def step_optimizer(self) -> None:
        """An optimizer has stepped: what follows its steps, as the average of a teacher's parameters, was seen."""
        if self._stepped_at is None:
            self._stepped_at = len(self._flow.operations)

    def note(self, call: OperatorCall) -> None:
        """What data loaders compute, and what goes through lists of tensors, is not followed."""
        if call.number < 0 or call.site.is_loading:
            self.note_backward(call)
            return
        number, operation = call.number, self._flow.operations[call.number]
        if call.step != self._step:  # what the step before computed is of other samples
            self._step = call.step
            self._held = {key: self._held[key] for key in self._loaded if key in self._held}
        picked = _picked(call)
        site = (call.site.path, call.name)
        signature = self._signature(call if picked is None else call._replace(args=picked[:1]))
        first, is_alike = -1, True
        if call.step == 0:
            self._calls[site].append((number, signature))
        else:
            before = self._calls[site][self._counts[site] : self._counts[site] + 1]
            self._counts[site] += 1
            first, is_alike = (before[0][0], signature.fits(before[0][1])) if before else (-1, False)
        fixed: set[int] = set()
        drawn = None if picked is None else self._drawn_by(*picked, call.step, fixed)
        of_batch = self._depends(call, call.step, fixed) if drawn is None else drawn
        if operation.node >= 0 or not is_alike:
            of_batch = None
        moves = bool(of_batch) and (drawn is not None or (call.name in _COPYING and self._are_loaded(call)))
        if of_batch is not None and first >= 0:
            self._computed.append(_Computed(number, first, bool(of_batch), frozenset(fixed), moves))
        self._write(call, of_batch)
        if moves and (key := key_of(call.result)):
            self._loaded.add(key)

    def note_backward(self, call: OperatorCall) -> None:
        """What backward passes compute is not followed; a data set may draw random numbers in one."""
        if call.numbers:
            self._is_random |= call.site.is_loading and call.draws() and not call.name.startswith(_UNDEFINED)
            self._write(call, None)

    def all(self) -> _SampleCalls:
        """What both steps have; nothing where no optimizer stepped before."""
        found = _SampleCalls({}, set())
        if self._is_random or self._stepped_at is None:
            return found
        changed: set[int] = set()
        for one in self._computed:
            if not (one.fixed.isdisjoint(self._changed) and changed.isdisjoint(self._inputs(one.number))):
                changed.add(one.number)
            elif one.number < self._stepped_at:
                continue
            elif not one.of_batch or one.moves:
                found.fixed.add(one.first)
            else:
                found.of_batch[one.first] = one.number
        return found

    def _drawn_by(self, data: torch.Tensor, numbers: torch.Tensor, step: int, fixed: set[int]) -> Draw | None:
        """Who drew the rows with these numbers: whoever drew the batch that they come from, else they themselves.

        None unless the rows are of what no step changes.
        """
        if self._tensor_depends(data, step, fixed) != ():
            return None
        key = key_of(numbers)
        return self._held.get(key) or (key, numbers.storage_offset(), len(numbers))

    def _are_loaded(self, call: OperatorCall) -> bool:
        return not self._loaded.isdisjoint(keys_of(call.given))

    def _inputs(self, number: int) -> Set[int]:
        return self._flow.operations[number].inputs

    def _depends(self, call: OperatorCall, step: int, fixed: set[int]) -> Draw | None:
        """Who drew the samples that a call computes from; None if it depends on something else, too.

        `fixed` gets the storages from before these steps that it reads.
        """
        if call.schema.is_opaque or call.schema.reads_to_host or call.draws():
            return None
        written = call.written if call.schema.replaces else ()
        replaced = {id(one) for one in tensors_of(written) if covers_storage(one)}
        of_batch: list[torch.Tensor] = []
        drawn: set[Draw] = set()
        for tensor in tensors_of(call.given):
            if id(tensor) in replaced:
                continue
            depends = self._tensor_depends(tensor, step, fixed)
            if depends is None:
                return None
            if depends:
                drawn.add(depends)
                of_batch.append(tensor)
        if len(drawn) > 1 or (of_batch and (_mixes(call.name, of_batch, call.args) or _is_of_statistics(call))):
            return None
        return drawn.pop() if drawn else ()

    def _tensor_depends(self, tensor: torch.Tensor, step: int, fixed: set[int]) -> Draw | None:
        key = key_of(tensor)
        if self._flow.is_used_unseen(key) or key in self._changed or (tensor.requires_grad and key not in self._fixed):
            return None
        if key in self._held or key in self._python:
            return self._held.get(key, ())
        if not self._flow.is_unwritten(key) or key in self._others:
            return None
        if key not in self._fixed and step == 0:
            self._read_before.add(key)
        elif key in self._fixed or (key in self._read_before and self._flow.is_torchs(key)):
            fixed.add(key)
            return ()
        return None

    def _write(self, call: OperatorCall, of_batch: Draw | None) -> None:
        written = (call.result, *call.written)
        hidden = (
            *call.schema.changed_statistics(call.args),
            *(call.given if call.schema.is_opaque else ()),
        )
        for key in keys_of((*written, *hidden)):
            self._python.pop(key, None)
            if key in self._fixed or key in self._read_before:
                self._changed.add(key)
            if of_batch is None:
                self._held.pop(key, None)
            elif key:  # sparse tensors have no storage, and so none that tells one from the other
                self._held[key] = of_batch

    def _signature(self, call: OperatorCall) -> _Signature:
        given = list(_arguments((*call.args, *(one for _, one in sorted(call.kwargs.items())))))
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        return _Signature(
            hash(tuple((tuple(one.shape), storage_bytes(one)) for one in tensors)),
            hash((*map(_offset, tensors), *(repr(one) for one in given if not isinstance(one, torch.Tensor)))),
            hash(
                (
                    *(self._python.get(key_of(one)) for one in tensors),
                    *(one for one in given if isinstance(one, float)),
                )
            ),
        )


def _picked(call: OperatorCall) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The tensor of which a call takes some rows, each of them whole, and their numbers."""
    if call.name == "aten::index":
        data, rows = call.args
    elif call.name == "aten::index_select" and call.args[1] == 0:
        data, rows = call.args[0], call.args[2:]
    else:
        return None
    numbers = rows[0] if len(rows) == 1 else None
    if not isinstance(numbers, torch.Tensor) or numbers.dtype is not torch.int64 or numbers.dim() != 1:
        return None
    return (data, numbers) if data.dim() and len(numbers) < len(data) else None


def _arguments(values: Any) -> Iterator[Any]:
    for one in values:
        if isinstance(one, (list, tuple)):
            yield from _arguments(one)
        else:
            yield one


def _offset(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.storage_offset())
    except Exception:  # noqa: BLE001 - sparse tensors, and tensors of somebody's own kind
        return -1


def _mixes(name: str, of_batch: list[torch.Tensor], args: tuple[Any, ...]) -> bool:
    """Whether a call goes across the samples of a batch, as far as shapes tell."""
    if name in _REDUCTIONS:
        axes = [one for values in args[1:] if isinstance(values, (list, tuple)) for one in values]
        axes += [one for one in args[1:2] if type(one) is int and name != _NORM]
        return not axes or any(one % max(of_batch[0].dim(), 1) == 0 for one in axes)
    lengths = {one.shape[0] if one.dim() else 0 for one in of_batch}
    if len(of_batch) < 2 or name == _JOINING:
        return False
    return len(lengths) > 1 or name in _PRODUCTS or (name in _BATCHED_PRODUCTS and _is_of_rows(of_batch))


def _is_of_rows(tensors: list[torch.Tensor]) -> bool:
    return all(one.dim() == 2 or one.shape[0] == 1 for one in tensors)


def _is_of_statistics(call: OperatorCall) -> bool:
    """Whether a batch norm takes mean and variance from the batch; instance norms have one sample of many channels."""
    trains = any(one is True for one in call.args) or "with_update" in call.name
    return call.schema.has_statistics and trains and not (call.args[0].dim() and call.args[0].shape[0] == 1)


def sample_work(work: StepWork, samples: SampleValues, repeats: Set[int]) -> list[SameWork]:
    """Of the first step: what each epoch computes anew of the same samples; without what is done again (`repeats`)."""
    operations, calls = work.operations, samples.all()
    trained = (number for number, one in enumerate(operations) if one.step == 1 and work.graph.is_reached(one.node))
    used = work.flow.reaching(trained)
    mine = {first for first, number in calls.of_batch.items() if number in used} - repeats
    fixed = calls.of_batch.keys() | calls.fixed
    inner = set(calls.of_batch.values())
    found = [
        SameWork(
            place=place,
            result_bytes=work.bytes_of(group),
            operators=work.uses(group),
            of_batch=True,
            stored_bytes=work.bytes_of(
                number for number in group if not inner.issuperset(work.readers[calls.of_batch[number]])
            ),
        )
        for place, group in work.by_outermost_line(mine, fixed).items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)
