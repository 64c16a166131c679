"""What steps compute of the batch and of what no step changes: of a sample it is the same in each epoch.

A batch comes from a data loader, or is picked by row from a tensor that no step changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Set
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.constants import bytes_of
from deepscope.capture.audit.flow import Flow, Returned, covers_storage, tensors_of, untyped_storage
from deepscope.capture.memory_holders import tensors_in

_COPIES = frozenset({"aten::_to_copy", "aten::copy_", "aten::clone"})
_UNDEFINED = ("aten::empty", "aten::new_empty")
_PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::mv", "aten::addmv", "aten::dot", "aten::_euclidean_dist"})
"""Of rows with rows: two tensors of samples give something of each pair of samples."""
_BATCHED_PRODUCTS = frozenset({"aten::bmm", "aten::baddbmm", "aten::_cdist_forward"})
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


class SampleWork(NamedTuple):
    """Calls of the first step, by their numbers, each with that of the same call of the second one."""

    of_batch: dict[int, int]
    fixed: set[int]
    """Those that compute the same in each step."""


class SampleValues:
    """Of two steps; `fixed` are the storages that no step changes, `parameters` those of all parameters."""

    def __init__(self, flow: Flow, fixed: Set[int], parameters: Set[int]) -> None:
        self._flow = flow
        self._fixed = fixed
        self._others = parameters - fixed
        self._of_batch: dict[int, Draw] = {}
        """By storage: who drew the samples that what it holds depends on; of others it is not known."""
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
        for tensor in tensors_in(batch):
            if key := self._flow.key_of(tensor):
                self._of_batch[key] = _LOADER
                self._loaded.add(key)

    def build(self, tensor: torch.Tensor) -> None:
        """A line has made a tensor of Python's numbers; integers and flags may be equal by chance."""
        key = self._flow.key_of(tensor)
        if key and (tensor.dim() == 0 or tensor.is_floating_point()):
            value = bytes_of(tensor)
            if value is not None:
                self._python[key] = value

    def step_optimizer(self) -> None:
        """An optimizer has stepped: what follows its steps, as the average of a teacher's parameters, was seen."""
        if self._stepped_at is None:
            self._stepped_at = len(self._flow.operations)

    def spoil(self, returned: Returned, *, is_loading: bool) -> None:
        """An operator of a backward pass or of a data loader, or one that goes through lists of tensors."""
        if is_loading and returned.draws() and not returned.name.startswith(_UNDEFINED):
            self._is_random = True
        self._write(returned, None)

    def note(self, number: int, returned: Returned) -> None:
        """An operator that is part of no backward pass and of no data loader."""
        operation = self._flow.operations[number]
        if operation.step != self._step:  # what the step before computed is of other samples
            self._step = operation.step
            self._of_batch = {key: self._of_batch[key] for key in self._loaded if key in self._of_batch}
        picked = _picked(returned)
        call = (operation.call.path, returned.name)
        signature = self._signature(returned if picked is None else returned._replace(args=picked[:1]))
        first, is_alike = -1, True
        if operation.step == 0:
            self._calls[call].append((number, signature))
        else:
            before = self._calls[call][self._counts[call] : self._counts[call] + 1]
            self._counts[call] += 1
            first, is_alike = (before[0][0], signature.fits(before[0][1])) if before else (-1, False)
        fixed: set[int] = set()
        drawn = None if picked is None else self._drawn_by(*picked, operation.step, fixed)
        of_batch = self._depends(returned, operation.step, fixed) if drawn is None else drawn
        if operation.node >= 0 or not is_alike:
            of_batch = None
        moves = bool(of_batch) and (drawn is not None or (returned.name in _COPIES and self._are_loaded(returned)))
        if of_batch is not None and first >= 0:
            self._computed.append(_Computed(number, first, bool(of_batch), frozenset(fixed), moves))
        self._write(returned, of_batch)
        if moves and (key := self._flow.key_of(returned.result)):
            self._loaded.add(key)

    def all(self) -> SampleWork:
        """What both steps have; nothing where no optimizer stepped before."""
        found = SampleWork({}, set())
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
        key = self._flow.key_of(numbers)
        return self._of_batch.get(key) or (key, numbers.storage_offset(), len(numbers))

    def _are_loaded(self, returned: Returned) -> bool:
        return not self._loaded.isdisjoint(self._flow.keys_of(returned.given))

    def _inputs(self, number: int) -> Set[int]:
        return self._flow.operations[number].inputs

    def _depends(self, returned: Returned, step: int, fixed: set[int]) -> Draw | None:
        """Who drew the samples that a call computes from; None if it depends on something else, too.

        `fixed` gets the storages from before these steps that it reads.
        """
        if returned.facts.is_opaque or returned.facts.reads_to_host or returned.draws():
            return None
        written = returned.written() if returned.facts.replaces else ()
        replaced = {id(one) for one in tensors_of(written) if covers_storage(one)}
        of_batch: list[torch.Tensor] = []
        drawn: set[Draw] = set()
        for tensor in tensors_of(returned.given):
            if id(tensor) in replaced:
                continue
            depends = self._tensor_depends(tensor, step, fixed)
            if depends is None:
                return None
            if depends:
                drawn.add(depends)
                of_batch.append(tensor)
        if len(drawn) > 1 or (
            of_batch and (_mixes(returned.name, of_batch, returned.args) or _is_of_statistics(returned))
        ):
            return None
        return drawn.pop() if drawn else ()

    def _tensor_depends(self, tensor: torch.Tensor, step: int, fixed: set[int]) -> Draw | None:
        key = self._flow.key_of(tensor)
        if self._flow.is_used_unseen(key) or key in self._changed or (tensor.requires_grad and key not in self._fixed):
            return None
        if key in self._of_batch or key in self._python:
            return self._of_batch.get(key, ())
        if not self._flow.is_unwritten(key) or key in self._others:
            return None
        if key not in self._fixed and step == 0:
            self._read_before.add(key)
        elif key in self._fixed or (key in self._read_before and self._flow.is_torchs(key)):
            fixed.add(key)
            return ()
        return None

    def _write(self, returned: Returned, of_batch: Draw | None) -> None:
        written = (returned.result, *returned.written())
        hidden = (
            *returned.facts.changed_statistics(returned.args),
            *(returned.given if returned.facts.is_opaque else ()),
        )
        for key in self._flow.keys_of((*written, *hidden)):
            self._python.pop(key, None)
            if key in self._fixed or key in self._read_before:
                self._changed.add(key)
            if of_batch is None:
                self._of_batch.pop(key, None)
            elif key:  # sparse tensors have no storage, and so none that tells one from the other
                self._of_batch[key] = of_batch

    def _signature(self, returned: Returned) -> _Signature:
        given = list(_arguments((*returned.args, *(one for _, one in sorted(returned.kwargs.items())))))
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        return _Signature(
            hash(tuple((tuple(one.shape), _storage_bytes(one)) for one in tensors)),
            hash((*map(_offset, tensors), *(repr(one) for one in given if not isinstance(one, torch.Tensor)))),
            hash(
                (
                    *(self._python.get(self._flow.key_of(one)) for one in tensors),
                    *(one for one in given if isinstance(one, float)),
                )
            ),
        )


def _picked(returned: Returned) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The tensor of which a call takes some rows, each of them whole, and their numbers."""
    if returned.name == "aten::index":
        data, rows = returned.args
    elif returned.name == "aten::index_select" and returned.args[1] == 0:
        data, rows = returned.args[0], returned.args[2:]
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


def _storage_bytes(tensor: torch.Tensor) -> int:
    return _asked(lambda: int(untyped_storage(tensor).nbytes()))


def _offset(tensor: torch.Tensor) -> int:
    return _asked(tensor.storage_offset)


def _asked(ask: Callable[[], int]) -> int:
    try:
        return ask()
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


def _is_of_statistics(returned: Returned) -> bool:
    """Whether a batch norm takes mean and variance from the batch; instance norms have one sample of many channels."""
    trains = any(one is True for one in returned.args) or "with_update" in returned.name
    return returned.facts.has_statistics and trains and not (returned.args[0].dim() and returned.args[0].shape[0] == 1)
