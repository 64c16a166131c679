"""Results that nobody uses, or nobody but the line that reads them as numbers; and work with 64 bits a number."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Set
from itertools import accumulate
from typing import NamedTuple

import torch
from msgspec.structs import replace

from deepscope.capture.audit.call_paths import CallPath, outermost_of, wholly
from deepscope.capture.audit.flow import Observer, Operation
from deepscope.capture.audit.operator_calls import JOINS, OperatorCall, is_plain, is_strided, key_of, tensors_of
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import DoubleWork, UnusedResults

_READ = "aten::_local_scalar_dense"
_MOST_PLACES = 10_000


class _Joined(NamedTuple):
    """The result of a join, whose elements lie one behind the other."""

    operation: int
    stride: int
    """From one place to the next in the dimension that is joined."""
    ends: list[int]
    """Where each part ends in this dimension."""
    writers: list[list[int]]
    """The operations that made each part."""
    read: set[int]
    """The numbers of the parts that somebody reads."""

    @property
    def parts(self) -> range:
        """The numbers of all parts."""
        return range(len(self.ends))

    def parts_in(self, tensor: torch.Tensor) -> Iterable[int]:
        """The numbers of the parts that a view of the result has elements of; all of them where that is not clear."""
        stride, size = self.stride, self.ends[-1]
        whole, offset = stride * size, tensor.storage_offset()
        places, within = {offset // stride % size}, offset % stride
        for length, step in zip(tensor.shape, tensor.stride(), strict=True):
            if length == 1 or step % whole == 0:
                continue
            if step < stride:
                within += (length - 1) * step
            elif step % stride or step * (length - 1) >= whole or len(places) * length > _MOST_PLACES:
                return self.parts
            else:
                places = {place + turn * (step // stride) for place in places for turn in range(length)}
        if within >= stride or max(places) >= size:
            return self.parts
        return {bisect_right(self.ends, place) for place in places}


class JoinedParts(Observer[_Joined]):
    """Of the first step's joins outside of backward passes: which of the joined tensors somebody reads there."""

    def note(self, call: OperatorCall) -> None:
        """It may read joined tensors, or join some."""
        self.note_backward(call)
        if call.is_of_first_step and call.name in JOINS and call.number >= 0 and call.args:
            self._join(call.number, call)

    def note_backward(self, call: OperatorCall) -> None:
        """It may read joined tensors."""
        for tensor in tensors_of(() if call.is_view else call.given):
            one = self._held_of(tensor)
            if one is not None:
                one.read.update(one.parts_in(tensor) if is_strided(tensor) else one.parts)

    def unread(self) -> dict[int, set[int]]:
        """By join: the operations that made nothing but parts of it that nobody reads."""
        found = {}
        for key, one in self._held.items():
            if not self._flow.is_let_go(key):
                continue
            read = {number for part in one.read for number in one.writers[part]}
            if unread := {number for writers in one.writers for number in writers} - read:
                found[one.operation] = unread
        return found

    def _join(self, number: int, call: OperatorCall) -> None:
        result, parts = call.result, [one for one in call.args[0] if one.numel()]
        key = key_of(result) if is_plain(result) and is_strided(result) else 0
        if not key or len(parts) < 2 or not result.is_contiguous() or result.storage_offset():
            return
        is_stack = call.name == "aten::stack"
        dimension = (*call.args[1:2], call.kwargs.get("dim", 0))[0] % result.dim()
        sizes = [1 if is_stack else one.shape[dimension] for one in parts]
        if sum(sizes) == result.shape[dimension]:
            writers = [list(self._flow.writers_of(one)) for one in parts]
            self._held[key] = _Joined(number, result.stride(dimension), [*accumulate(sizes)], writers, set())


def unused_derivatives(work: StepWork, joined: JoinedParts) -> list[UnusedResults]:
    """Of the first step, by the line most of whose derivatives are unused, the most work first."""
    paths = work.paths
    unused = _unused_passes(work, joined)
    beginnings: Counter[CallPath] = Counter()
    in_vain: Counter[CallPath] = Counter()
    for number in {one.pass_number for _, one in work.backward}:
        path = paths[work.graph.passes[number]]
        for length in range(1, len(path) + 1):
            beginnings[path[:length]] += 1
            in_vain[path[:length]] += number in unused
    groups: dict[CallPath, set[int]] = defaultdict(set)
    for number, path in ((number, paths[work.graph.passes[number]]) for number in sorted(unused)):
        if path:
            lines = [path[:length] for length in range(1, len(path) + 1)]
            groups[max(lines, key=lambda line: in_vain[line] / beginnings[line])].add(number)
    found = []
    for path, passes in groups.items():
        made = {node for number in passes for node in work.graph.nodes_of_passes[number]}
        mine = {number for number, one in work.backward if one.pass_number in passes or one.forward_node in made}
        found.append(
            UnusedResults(
                place=work.places.number_of(path[-1]),
                whole=len(passes) == beginnings[path],
                result_bytes=work.bytes_of(mine),
                derivatives=len(passes),
                all_derivatives=beginnings[path],
                backward=work.uses_among(work.backward, mine),
            )
        )
    return sorted(found, key=lambda one: -one.result_bytes)


def _unused_passes(work: StepWork, joined: JoinedParts) -> set[int]:
    """The backward passes that give no parameter its gradient, and whose results nobody reads.

    Differentiating what they computed once more is no use: nothing that is differentiated depends on it.
    """
    flow = work.flow
    used = {flow.operations[number].pass_number for number in work.given}
    kept, unread = {*flow.kept(unread_is_used=False), *flow.sinks()}, joined.unread()
    readers = flow.readers(range(len(flow.operations)))
    by_pass: dict[int, set[int]] = defaultdict(set)
    for number, one in work.backward:
        by_pass[one.pass_number].add(number)
    for of_pass, mine in by_pass.items():
        ends = (number for number in mine if mine.isdisjoint(readers[number]))
        if any(
            number in kept or any(number not in unread.get(reader, ()) for reader in readers[number]) for number in ends
        ):
            used.add(of_pass)
    return by_pass.keys() - used


def unused_results(work: StepWork, live: Set[int]) -> list[UnusedResults]:
    """Of the first step; `live`: the operations whose results somebody needs."""
    paths = work.paths
    uses = [(number, one, number in live) for number, one in work.forward if number in live or one.computes]
    beginnings = wholly((paths[one.site.path], not is_used) for _, one, is_used in uses)
    groups: dict[tuple[int, bool], dict[int, Operation]] = defaultdict(dict)
    for number, one, is_used in uses:
        if not is_used:
            path = outermost_of(paths[one.site.path], beginnings)
            groups[work.places.number_of(path[-1]), path in beginnings][number] = one
    found = [
        UnusedResults(
            place=place,
            whole=whole,
            module=_module_of(unused.values()),
            result_bytes=work.bytes_of(unused),
            operators=work.uses(unused.keys()),
        )
        for (place, whole), unused in groups.items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def read_numbers(work: StepWork) -> list[UnusedResults]:
    """Of the first step: what nobody uses but a line that reads it as a number.

    A step without a backward pass is an evaluation, whose results are such numbers.
    """
    if not work.graph.passes:
        return []
    operations = work.operations
    reads = {number for number, one in enumerate(operations) if one.name == _READ and one.site.is_direct}
    others = work.used(without=reads)
    others |= {number for number in work.live if work.graph.is_reached(operations[number].node)}
    return [
        replace(one, is_number=True)
        for one in unused_results(work, others | (set(range(len(operations))) - work.live - reads))
    ]


def _module_of(operations: Collection[Operation]) -> str:
    modules: Counter[str] = Counter()
    for one in operations:
        modules[one.site.modules[-1] if one.site.modules else ""] += one.result_bytes
    return modules.most_common(1)[0][0]


def double_work(work: StepWork) -> list[DoubleWork]:
    """Of the first step; one row, or none. It may begin in a data loader, whose own work does not count."""
    paths = work.paths
    operations = [
        (number, one) for number, one in enumerate(work.operations) if one.step == 0 and paths[one.forward_path]
    ]
    double = [one for _, one in operations if one.is_double]
    operations = [pair for pair in operations if not pair[1].site.is_loading]
    numbers = {number for number, one in operations if one.is_double}
    if not numbers:
        return []
    mine = [one for number, one in operations if number in numbers]
    forward, backward = ([pair for pair in operations if (pair[1].pass_number >= 0) == side] for side in (False, True))
    # A backward pass casts back what a forward one did.
    candidates = [one for one in double if one.pass_number < 0] or double
    first = next((one for one in candidates if one.widens), candidates[0])
    return [
        DoubleWork(
            place=work.places.number_of(paths[first.forward_path][-1]),
            result_bytes=sum(one.result_bytes for one in mine),
            lines=len({paths[one.forward_path][-1] for one in (first, *mine)}),
            operators=work.uses_among(forward, numbers),
            backward=work.uses_among(backward, numbers),
        )
    ]
