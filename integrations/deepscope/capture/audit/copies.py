"""Copies that lines make, and those of them that nobody needs."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.call_paths import PathEntry
from deepscope.capture.audit.copy_strides import SourceLayout, is_laid_out_alike, source_strides
from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.operator_calls import COPIES, OperatorCall, is_plain, key_of, keys_of, untyped_storage
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import CopyNeed, NeedlessCopies

_COPYING = COPIES | {"aten::repeat"}
_INTO_NEW_STORAGE = "aten::copy_"
"""As `copy.deepcopy` copies the bytes of a tensor."""
_TAKES_STORAGE = "aten::set_"


class Copy:
    """One copy, by the storages of what was copied and of what was made."""

    __slots__ = (
        "changed_at",
        "is_alike",
        "is_changed",
        "is_known",
        "is_torchs",
        "last_read",
        "layout",
        "number",
        "outlives_source",
        "reader",
        "recipe",
        "result",
        "result_bytes",
        "source",
        "source_bytes",
    )

    def __init__(self, number: int, source: int, result: int, recipe: Hashable) -> None:
        self.number = number
        self.source = source
        self.result = result
        self.recipe = recipe
        """Equal for two copies of the same bytes in the same way."""
        self.is_torchs = self.is_known = False
        """Whether torch allocated the source's bytes, and whether nobody but its operators writes to them."""
        self.is_alike = False
        """Whether the copy is as the source is: in type, device, shape and strides."""
        self.layout: SourceLayout | None = None
        """Of a copy that differs in its strides alone; None from the first reader on that needs them."""
        self.is_changed = False
        """Something was written to the copy, or may have been."""
        self.changed_at: int | None = None
        """The first operation that wrote to the source behind the copy."""
        self.last_read = -1
        """The last operation that read the copy."""
        self.reader = ""
        """The name of the first one."""
        self.result_bytes = self.source_bytes = 0
        """Of their storages."""
        self.outlives_source = False
        """Whether the source's storage had gone when the copy was read."""


class Copies(Observer[Any]):
    """Of the first step, those that lines of the user's make."""

    def __init__(self, flow: Flow, parameters: Iterable[int]) -> None:
        """`parameters`: the storages of all."""
        super().__init__(flow)
        self.all: list[Copy] = []
        self._parameters = frozenset(parameters)
        self._of_result: dict[int, list[Copy]] = defaultdict(list)
        self._of_source: dict[int, list[Copy]] = defaultdict(list)

    def note(self, call: OperatorCall) -> None:
        """It may be a copy, or read one, or write to one or to a source."""
        self.note_backward(call)
        if call.is_of_first_step and call.site.is_direct and call.number >= 0:
            self._begin(call)

    def note_backward(self, call: OperatorCall) -> None:
        """It may read a copy, or write to one or to a source."""
        if self._of_result:
            self._follow(call)

    @property
    def numbers(self) -> set[int]:
        """The operations that copy."""
        return {one.number for one in self.all}

    def is_only_read(self, one: Copy) -> bool:
        """Whether a copy was read and let go of, and nobody wrote to it, or may have."""
        flow = self._flow
        results = {one.result, *(one.layout.results if one.layout is not None else ())}
        is_read = one.last_read >= 0 and not one.is_changed
        return is_read and all(map(flow.is_gone, results)) and not any(map(flow.is_used_unseen, results))

    def shows_changes(self, one: Copy) -> bool:
        """Whether all that is written to the source shows in operators; what is let go of has no other user."""
        is_known = one.is_known or (one.is_torchs and self._flow.is_gone(one.source))
        return is_known and not self._flow.is_used_unseen(one.source)

    def _follow(self, call: OperatorCall) -> None:
        schema, number = call.schema, call.numbers[-1] if call.numbers else -1
        written: set[int] = set()
        if not schema.is_view:
            changed = call.given if schema.is_opaque else call.written
            written.update(keys_of((call.result, *changed)))
        for key in written:
            for one in self._of_source.get(key, ()):
                one.changed_at = number if one.changed_at is None else one.changed_at
            for one in self._of_result.get(key, ()):
                is_begun = call.name == _TAKES_STORAGE and not one.reader
                one.is_changed |= not is_begun
        read = set(keys_of(call.given)) - written
        for one in {copied.number: copied for key in read for copied in self._of_result.get(key, ())}.values():
            if not schema.is_view:
                self._read(one, number, call)
            elif one.layout is not None and not one.layout.follow(call):
                one.layout = None

    def _read(self, copied: Copy, number: int, call: OperatorCall) -> None:
        copied.last_read = number
        copied.reader = copied.reader or call.name
        copied.outlives_source |= self._flow.is_gone(copied.source)
        if copied.layout is None:
            return
        if copied.layout.suits(call):
            for key in copied.layout.results:
                if copied not in self._of_result[key]:
                    self._of_result[key].append(copied)
        else:
            copied.layout = None

    def _begin(self, call: OperatorCall) -> None:
        name = call.name
        if name in _COPYING:
            source, result = call.args[0], call.result
        elif name == _INTO_NEW_STORAGE and call.args[0].dtype == torch.uint8:
            result, source = call.args[:2]
        else:
            return
        found = self._copy_of(call.number, source, result, name)
        if found is not None:
            self.all.append(found)
            self._of_result[found.result].append(found)
            self._of_source[found.source].append(found)

    def _copy_of(self, number: int, source: torch.Tensor, result: torch.Tensor, name: str) -> Copy | None:
        flow = self._flow
        if not (_has_own_bytes(source) and _has_own_bytes(result) and result.numel()):
            return None
        read, made = key_of(source), key_of(result)
        is_cast = (source.dtype, source.device) != (result.dtype, result.device)
        if not read or not made or read == made or (is_cast and torch_compat.is_in_autocast()):
            return None  # casts of autocast's have a rule of their own
        writers = tuple(flow.writers_of(source))
        view = (tuple(source.shape), source.stride(), source.storage_offset())
        way = (name, result.dtype, result.device, tuple(result.shape), result.stride())
        found = Copy(number, read, made, recipe=(read, writers, view, way))
        storage = untyped_storage(source)
        found.result_bytes, found.source_bytes = untyped_storage(result).nbytes(), storage.nbytes()
        found.is_torchs = torch_compat.is_torchs(storage)
        found.is_known = read in self._parameters or (found.is_torchs and bool(writers))
        found.is_alike = not is_cast and is_laid_out_alike(source, result)
        strides = None if is_cast or found.is_alike else source_strides(source, result)
        if strides is not None:
            found.layout = SourceLayout(result, strides)
        return found


def _has_own_bytes(tensor: torch.Tensor) -> bool:
    """Whether the tensor is what its bytes and its strides say."""
    return is_plain(tensor) and not (tensor.is_nested or tensor.is_conj() or tensor.is_neg())


def needless_copies(
    work: StepWork, made: Copies, constants: Iterable[int], chains: Iterable[list[int]]
) -> list[NeedlessCopies]:
    """Of the first step, by line, the largest first.

    `constants`: operations that are reported as such; `chains`: what `joined_chains` finds.
    """
    operations, others = work.operations, set(constants)
    needs: dict[int, CopyNeed] = dict.fromkeys(_repeated(work, made), "once")
    needs.update(_without_a_need(made))
    groups: dict[tuple[int, CopyNeed], list[Copy]] = defaultdict(list)
    for one in made.all:
        if one.number in needs and one.number in work.live and one.number not in others:
            place = work.place_of(one.number)
            groups[place, needs[one.number]].append(one)
    found = []
    for (place, need), copies in groups.items():
        numbers = {one.number for one in copies}
        largest = max(copies, key=lambda one: operations[one.number].result_bytes)
        found.append(
            NeedlessCopies(
                place=place,
                name=operations[largest.number].name,
                need=need,
                reader=largest.reader,
                shape=list(operations[largest.number].shape),
                times=len(copies),
                result_bytes=work.bytes_of(numbers),
                operators=work.uses(numbers),
            )
        )
    return sorted([*found, *_grown(work, chains)], key=lambda one: -one.result_bytes)


def _grown(work: StepWork, chains: Iterable[list[int]]) -> list[NeedlessCopies]:
    """Lines that join to what they have joined before."""
    operations = work.operations
    lines: dict[PathEntry, list[int]] = defaultdict(list)
    for chain in chains:
        lines[work.path_of(chain[0])[-1]] += chain[1:]
    return [
        NeedlessCopies(
            place=work.places.number_of(line),
            name=operations[numbers[-1]].name,
            need="grown",
            shape=list(operations[numbers[-1]].shape),
            times=len(numbers),
            result_bytes=work.bytes_of(numbers),
            operators=work.uses(set(numbers)),
        )
        for line, numbers in lines.items()
    ]


def _without_a_need(copies: Copies) -> dict[int, CopyNeed]:
    """The copies in place of which their readers could read the source."""
    found: list[tuple[Copy, CopyNeed]] = []
    last_reads: dict[int, int] = {}
    copied_bytes: Counter[int] = Counter()
    for one in reversed(copies.all):  # a copy of a copy comes first, whose readers then read the source of both
        last_read = max(one.last_read, last_reads.get(one.result, -1))
        is_same_till_then = one.changed_at is None or one.changed_at > last_read
        if not (copies.is_only_read(one) and copies.shows_changes(one) and is_same_till_then):
            continue
        if one.is_alike or one.layout is not None:
            found.append((one, "none" if one.is_alike else "layout"))
            last_reads[one.source] = max(last_read, last_reads.get(one.source, -1))
            copied_bytes[one.source] += one.result_bytes
    # Parts of a tensor may be copied so that the rest of it need not stay in memory.
    return {
        one.number: need
        for one, need in found
        if not one.outlives_source or copied_bytes[one.source] >= one.source_bytes
    }


def _repeated(work: StepWork, copies: Copies) -> list[int]:
    """The copies that are as an earlier one of the same bytes is.

    Where autograd has a node for both, there is no backward pass in between, which would let go of the first one's.
    """
    operations = work.operations
    backward = [number for number, one in enumerate(operations) if one.pass_number >= 0]
    seen: set[Hashable] = set()
    found = []
    for one in copies.all:
        if not (copies.is_only_read(one) and copies.shows_changes(one)):
            continue
        has_node = operations[one.number].node >= 0
        key = (one.recipe, has_node, bisect(backward, one.number) if has_node else -1)
        if key in seen:
            found.append(one.number)
        seen.add(key)
    return found
