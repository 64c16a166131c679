"""What steps compute again: from the same bytes as before, or for all that a loop has joined so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from itertools import pairwise

import torch

from deepscope.capture.audit.call_paths import CallPath
from deepscope.capture.audit.constants import Value, computed_value
from deepscope.capture.audit.flow import Flow, Observer, Operation
from deepscope.capture.audit.operator_calls import OperatorCall, aten, key_of, keys_of, tensors_of
from deepscope.capture.audit.step_work import AutogradGraph, StepWork
from deepscope.trace.format.audit import PrefixWork, SameWork


class _Recomputations(Observer[Value]):
    """Operators that compute what another one has computed before them.

    Two storages have the same value if they hold the same because they were made the same way.
    """

    def __init__(self, flow: Flow, graph: AutogradGraph, kept: Set[int] = frozenset()) -> None:
        """`kept`: storages to which writing gives no other value."""
        super().__init__(flow)
        self._graph = graph
        self._kept = kept
        self._first: dict[Value, int] = {}
        """By what is computed: the operation that did so first."""
        self._before: dict[int, int] = {}
        """By operation: the first one that computed the same."""

    def note(self, call: OperatorCall) -> None:
        """What data loaders compute, and what goes through lists of tensors, is its own."""
        if call.number < 0 or call.site.is_loading:
            self.note_backward(call)
            return
        value = self._computed(call)
        self._write(call.number, call, value if value is None else self._compared(call, value))

    def note_backward(self, call: OperatorCall) -> None:
        """What backward passes compute is its own."""
        for number in call.numbers:
            self._write(number, call, None)

    def _compared(self, call: OperatorCall, value: Value) -> Value:
        """The value of what a call has made, once it is compared with what others have made."""
        raise NotImplementedError

    def _computed(self, call: OperatorCall) -> Value | None:
        """What a call computes. A batch norm that trains computes nothing from the running statistics it changes."""
        statistics = {id(one) for one in call.schema.changed_statistics(call.args)}
        args = tuple(None if id(one) in statistics else one for one in call.args)
        return computed_value(call._replace(args=args), self._of_tensor)

    def _write(self, number: int, call: OperatorCall, value: Value | None) -> list[int]:
        """What an operation has written has the value of what it computes, or one of its own; its storages."""
        own: Value = ("own", number)
        written: list[int] = []
        for place, key in enumerate(keys_of((*call.written, call.result))):
            if key and key not in self._kept:
                self._held[key] = hash((own if value is None else value, place))
                written.append(key)
        is_hidden = value is None and call.schema.is_opaque
        hidden = call.given if is_hidden else () if value is None else call.schema.changed_statistics(call.args)
        self._held.update(dict.fromkeys(keys_of(hidden), own))
        return written

    def _of_tensor(self, tensor: torch.Tensor) -> Value | None:
        key = key_of(tensor)
        if not key or self._flow.is_used_unseen(key):
            return None
        return self._held.get(key, ("given", key)), tensor.dtype, tensor.is_conj() or tensor.is_neg()


class Repeats(_Recomputations):
    """Of the first step."""

    def __init__(self, flow: Flow, graph: AutogradGraph) -> None:
        super().__init__(flow, graph)
        self._writers: dict[int, list[int]] = defaultdict(list)
        """By storage: the operations that wrote to it."""

    def note(self, call: OperatorCall) -> None:
        """Nothing is asked of the second step."""
        if not call.step:
            super().note(call)

    def note_backward(self, call: OperatorCall) -> None:
        """As `note`."""
        if not call.step:
            super().note_backward(call)

    def all(self) -> set[int]:
        """The operations that need not be: what they and the first one made is changed by such operations alone."""
        of_number: dict[int, list[int]] = defaultdict(list)
        for key, writers in self._writers.items():
            for number in writers:
                of_number[number].append(key)
        shared = self._before.keys() | set(self._before.values())
        return {
            number
            for number, first in self._before.items()
            if all(
                later in shared
                for one in (number, first)
                for key in of_number[one]
                for later in self._writers[key]
                if later > one
            )
        }

    def _compared(self, call: OperatorCall, value: Value) -> Value:
        """A backward pass that has come to the first one's node has let go of its graph."""
        operations, number = self._flow.operations, call.number
        needs_graph = tuple(one.requires_grad for one in tensors_of(call.given))
        has_node = operations[number].node >= 0
        value = hash((value, needs_graph, has_node))
        first = self._first.setdefault(value, number)
        if has_node and self._graph.is_reached(operations[first].node):
            first = self._first[value] = number
        if first != number and needs_graph:
            self._before[number] = first
        return value

    def _write(self, number: int, call: OperatorCall, value: Value | None) -> list[int]:
        written = super()._write(number, call, value)
        for key in written:
            self._writers[key].append(number)
        return written


class Reruns(_Recomputations):
    """Of both steps: what a differentiated pass has computed, computed again for no backward pass.

    An update of the parameters (their storages are `kept`) in between does not count: one more step old, the earlier
    result says as much to a log or a discriminator.
    """

    def all(self) -> set[int]:
        """The operations that compute it again."""
        operations, is_reached = self._flow.operations, self._graph.is_reached
        return {
            number
            for number, first in self._before.items()
            if is_reached(operations[first].node) and not is_reached(operations[number].node)
        }

    def _compared(self, call: OperatorCall, value: Value) -> Value:
        if any(True for _ in tensors_of(call.given)):
            first = self._first.setdefault(value, call.number)
            if first != call.number:
                self._before[call.number] = first
        return value


def repeated_work(work: StepWork, repeats: Set[int], reruns: Set[int], *, others: Set[int]) -> list[SameWork]:
    """Of the first step: what it has computed before, `repeats` or `reruns`; `others`: what is reported elsewhere."""
    reruns = _in_first_step(work, reruns) - repeats
    found = [
        *_computed_again(work, (repeats - others) & work.live, is_rerun=False),
        *_computed_again(work, (reruns - others) & work.live, is_rerun=True),
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def _computed_again(work: StepWork, numbers: Set[int], *, is_rerun: bool) -> Iterator[SameWork]:
    operations = work.operations
    again = {number for number in numbers if operations[number].computes}
    for place, mine in work.by_outermost_line(again, again).items():
        yield SameWork(
            place=place,
            result_bytes=work.bytes_of(mine),
            operators=work.uses(mine),
            again=True,
            rerun=is_rerun,
            backward=[] if is_rerun else work.backward_uses({one for one in mine if operations[one].node >= 0}),
        )


def _in_first_step(work: StepWork, numbers: Set[int]) -> set[int]:
    """Operations of any step, those of later ones by what was called likewise in the first: a step that ends with an
    optimizer's has what follows that in the next one.
    """
    sites: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for number, one in enumerate(work.operations):
        sites[one.step, one.site.path, one.name].append(number)
    return {
        first
        for (_, path, name), mine in sites.items()
        for number, first in zip(mine, sites.get((0, path, name), ()), strict=False)
        if number in numbers
    }


_CAT = "aten::cat"
_PRODUCTS = aten("mm addmm")
_LAYERS = _PRODUCTS | {"aten::embedding", "aten::convolution", "aten::mkldnn_rnn_layer"}
"""They compute each position with parameters; of a product the positions are the rows."""
FEWEST_JOINED = 8
"""Times that a line joins to what it has joined before."""


def joined_chains(work: StepWork) -> list[list[int]]:
    """Of the first step: the numbers of a line's joins, each of which goes on with the one before it."""
    chains: dict[tuple[CallPath, int], list[int]] = {}
    chain_of: dict[int, tuple[CallPath, int]] = {}
    for number, one in work.forward:
        if one.name != _CAT or not one.site.is_direct:
            continue
        path = work.paths[one.site.path]
        before = next((chain_of[source] for source in one.inputs if chain_of.get(source, ((),))[0] == path), None)
        chain_of[number] = chain = before or (path, number)
        chains.setdefault(chain, []).append(number)
    return [numbers for numbers in chains.values() if len(numbers) >= FEWEST_JOINED]


def prefix_work(work: StepWork, chains: Iterable[list[int]]) -> list[PrefixWork]:
    """Of the first step, by the line that computes most; `chains`: what `joined_chains` finds."""
    operations = work.operations
    members: dict[int, set[int]] = defaultdict(set)
    lengths: dict[int, list[int]] = defaultdict(list)
    for chain in chains:
        loop = work.path_of(chain[0])
        computed = {
            number
            for number in _computed_of(operations, chain)
            if number in work.live and work.path_of(number)[: len(loop) - 1] == loop[:-1]
        }
        lines: Counter[int] = Counter()
        for number in computed:
            entry = work.path_of(number)[len(loop) - 1]
            lines[work.places.number_of(entry)] += operations[number].flops or operations[number].result_bytes
        if lines:
            place = lines.most_common(1)[0][0]
            members[place] |= computed
            lengths[place] += _lengths(operations, chain)
    return [
        PrefixWork(
            place=place,
            times=len(lengths[place]),
            shortest=min(lengths[place]),
            longest=max(lengths[place]),
            needed=min((max(lengths[place]) - min(lengths[place]) + 1) / sum(lengths[place]), 1.0),
            operators=work.uses(numbers),
            backward=work.backward_uses({number for number in numbers if operations[number].node >= 0}),
        )
        for place, numbers in members.items()
    ]


def _computed_of(operations: list[Operation], chain: list[int]) -> set[int]:
    """What is computed of each join before the next one for all its positions; none where no layer does so.

    A cache of keys and values is joined, too, and read by attention alone.
    """
    rounds = [_following(operations, first, last) for first, last in pairwise(chain)]
    grows = list(pairwise(zip(rounds, _lengths(operations, chain), strict=True)))
    found: set[int] = set()
    has_layer = False
    for (now, length), (later, later_length) in grows:
        for key, number in now.items():
            other = later.get(key)
            if other is None:
                continue
            one, next_one = operations[number], operations[other]
            sides = zip(one.shape, next_one.shape, strict=False)
            scaled = [at for at, (a, b) in enumerate(sides) if a != b and a * later_length == b * length]
            if scaled:
                found |= {number, other}
                has_layer |= one.name in _LAYERS and (one.name not in _PRODUCTS or scaled[0] == 0)
    return found if has_layer else set()


def _following(operations: list[Operation], first: int, last: int) -> dict[tuple[int, str, int], int]:
    """What is computed of a join before the next one, by where it is called, its name and its count."""
    following = {first}
    times: Counter[tuple[int, str]] = Counter()
    found = {}
    for number in range(first + 1, last):
        one = operations[number]
        if not following.isdisjoint(one.inputs):
            following.add(number)
            found[one.site.path, one.name, times[one.site.path, one.name]] = number
            times[one.site.path, one.name] += 1
    return found


def _lengths(operations: list[Operation], chain: list[int]) -> list[int]:
    """How long each join but the last is, in the dimension in which the next one is longer."""
    shapes = [operations[number].shape for number in chain]
    return [next((a for a, b in zip(*pair, strict=False) if a < b), 1) for pair in pairwise(shapes)]
