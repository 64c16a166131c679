"""From what was watched: loops that compute anew for all that they have joined so far, a little longer each time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import CallPath
from deepscope.trace.format.audit import PrefixWork

_CAT = "aten::cat"
_PRODUCTS = frozenset({"aten::mm", "aten::addmm"})
_LAYERS = _PRODUCTS | {"aten::embedding", "aten::convolution", "aten::mkldnn_rnn_layer"}
"""They compute each position with parameters; of a product the positions are the rows."""
FEWEST_JOINED = 8
"""Times that a line joins to what it has joined before."""


def joined_chains(work: StepWork) -> list[list[int]]:
    """Of the first step: the numbers of a line's joins, each of which goes on with the one before it."""
    paths = work.paths
    chains: dict[tuple[CallPath, int], list[int]] = {}
    chain_of: dict[int, tuple[CallPath, int]] = {}
    for number, one in work.forward:
        if one.name != _CAT or not one.call.is_direct:
            continue
        path = paths[one.call.path]
        before = next((chain_of[source] for source in one.inputs if chain_of.get(source, ((),))[0] == path), None)
        chain_of[number] = chain = before or (path, number)
        chains.setdefault(chain, []).append(number)
    return [numbers for numbers in chains.values() if len(numbers) >= FEWEST_JOINED]


def prefix_work(work: StepWork, chains: Iterable[list[int]]) -> list[PrefixWork]:
    """Of the first step, by the line that computes most; `chains`: what `joined_chains` finds."""
    operations, paths = work.operations, work.paths
    members: dict[int, set[int]] = defaultdict(set)
    lengths: dict[int, list[int]] = defaultdict(list)
    for chain in chains:
        loop = paths[operations[chain[0]].call.path]
        computed = {
            number
            for number in _computed_of(operations, chain)
            if number in work.live and paths[operations[number].call.path][: len(loop) - 1] == loop[:-1]
        }
        lines: Counter[int] = Counter()
        for number in computed:
            entry = paths[operations[number].call.path][len(loop) - 1]
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
            found[one.call.path, one.name, times[one.call.path, one.name]] = number
            times[one.call.path, one.name] += 1
    return found


def _lengths(operations: list[Operation], chain: list[int]) -> list[int]:
    """How long each join but the last is, in the dimension in which the next one is longer."""
    shapes = [operations[number].shape for number in chain]
    return [next((a for a, b in zip(*pair, strict=False) if a < b), 1) for pair in pairwise(shapes)]
