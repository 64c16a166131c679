"""From what was watched: work that nobody needs."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Set
from fractions import Fraction
from types import CodeType

from msgspec.structs import replace

from deepscope.capture.audit.cheaper_operators import PRODUCTS, Choice
from deepscope.capture.audit.constants import Built
from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.padding import Lookup
from deepscope.capture.audit.places import outermost_of, wholly
from deepscope.capture.audit.repeated_products import repeated_products
from deepscope.capture.audit.row_reads import PartlyRead
from deepscope.capture.audit.written_out import OF_LIBRARIES, written_out
from deepscope.trace.format.audit import (
    CheaperOperator,
    DoubleWork,
    OperatorChoice,
    PaddedWork,
    PartlyReadResults,
    SameWork,
    UnusedResults,
)


def same_work(work: StepWork) -> list[SameWork]:
    """Of the first step, by function."""
    operations, paths = work.operations, work.paths
    same = {
        number: given for number, given in work.watch.constants.same().items() if paths[operations[number].call.path]
    }
    built = [one for one in work.watch.constants.built() if paths[one.path]]
    by_function: dict[CodeType, list[int]] = defaultdict(list)
    for number in same:
        by_function[paths[operations[number].call.path][-1][0]].append(number)
    others = {
        *(
            one.call.path
            for number, one in enumerate(operations)
            if one.step == 0 and one.computes and number not in same
        ),
        *(one.path for one in built if not one.is_same),
    }
    other_lines = {entry for path in others for entry in paths[path]}
    other_functions = {code for code, _ in other_lines}
    made: dict[CodeType, list[Built]] = defaultdict(list)
    for one in built:
        if one.is_same and paths[one.path][-1] not in other_lines:
            made[paths[one.path][-1][0]].append(one)
    found = []
    for code in dict.fromkeys((*by_function, *made)):
        numbers, mine = by_function[code], made[code]
        weights: Counter[int] = Counter()
        for path, size in [
            *((operations[number].call.path, operations[number].result_bytes) for number in numbers),
            *((one.path, one.result_bytes) for one in mine),
        ]:
            weights[work.places.number_of(paths[path][-1])] += size + 1
        callers = {entry for one in mine for entry in paths[one.path][-2:-1]}
        forward = [
            (number, one)
            for number, one in enumerate(operations)
            if one.step == 0 and one.pass_number < 0 and paths[one.call.path] and paths[one.call.path][-1][0] is code
        ]
        found.append(
            SameWork(
                place=weights.most_common(1)[0][0],
                result_bytes=sum(operations[number].result_bytes for number in numbers)
                + sum(one.result_bytes for one in mine),
                given=any(same[number] for number in numbers),
                operators=work.uses_among(forward, set(same)),
                built=sorted({work.places.number_of(paths[one.path][-1]) for one in mine}),
                callers=sorted(map(work.places.number_of, callers if callers.isdisjoint(other_lines) else ())),
                whole=bool(mine) and code not in other_functions,
            )
        )
    return sorted(found, key=lambda one: -one.result_bytes)


def repeated_work(work: StepWork, repeats: Set[int]) -> list[SameWork]:
    """Of the first step: what it has computed before (`repeats`), copies apart."""
    others = {one.number for one in work.watch.copies.all} | set(work.watch.constants.same())
    reruns = _in_first_step(work, work.watch.reruns.all(work.watch.nodes.is_reached)) - repeats
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
            result_bytes=sum(operations[number].result_bytes for number in mine),
            operators=work.uses(mine),
            again=True,
            rerun=is_rerun,
            backward=[] if is_rerun else work.backward_uses({one for one in mine if operations[one].node >= 0}),
        )


def _in_first_step(work: StepWork, numbers: Set[int]) -> set[int]:
    """Operations of any step, those of later ones by what was called likewise in the first: a step that ends with an
    optimizer's has what follows that in the next one.
    """
    calls: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for number, one in enumerate(work.operations):
        calls[one.step, one.call.path, one.name].append(number)
    return {
        first
        for (_, path, name), mine in calls.items()
        for number, first in zip(mine, calls.get((0, path, name), ()), strict=False)
        if number in numbers
    }


def sample_work(work: StepWork, repeats: Set[int]) -> list[SameWork]:
    """Of the first step: what each epoch computes anew of the same samples; without what is done again (`repeats`)."""
    operations = work.operations
    samples = work.watch.samples.all()
    trained = (
        number for number, one in enumerate(operations) if one.step == 1 and work.watch.nodes.is_reached(one.node)
    )
    used = work.watch.flow.reaching(trained)
    mine = {first for first, number in samples.of_batch.items() if number in used} - repeats
    fixed = samples.of_batch.keys() | samples.fixed
    inner = set(samples.of_batch.values())
    found = [
        SameWork(
            place=place,
            result_bytes=sum(operations[number].result_bytes for number in group),
            operators=work.uses(group),
            of_batch=True,
            stored_bytes=sum(
                operations[number].result_bytes
                for number in group
                if not inner.issuperset(work.readers[samples.of_batch[number]])
            ),
        )
        for place, group in work.by_outermost_line(mine, fixed).items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def double_work(work: StepWork) -> list[DoubleWork]:
    """Of the first step; one row, or none. It may begin in a data loader, whose own work does not count."""
    paths = work.paths
    operations = [
        (number, one) for number, one in enumerate(work.operations) if one.step == 0 and paths[one.forward_path]
    ]
    double = [one for _, one in operations if one.is_double]
    operations = [pair for pair in operations if not pair[1].call.is_loading]
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


_READ = "aten::_local_scalar_dense"


def unused_results(work: StepWork, live: Set[int]) -> list[UnusedResults]:
    """Of the first step; `live`: the operations whose results somebody needs."""
    paths = work.paths
    uses = [(number, one, number in live) for number, one in work.forward if number in live or one.computes]
    beginnings = wholly((paths[one.call.path], not is_used) for _, one, is_used in uses)
    groups: dict[tuple[int, bool], dict[int, Operation]] = defaultdict(dict)
    for number, one, is_used in uses:
        if not is_used:
            path = outermost_of(paths[one.call.path], beginnings)
            groups[work.places.number_of(path[-1]), path in beginnings][number] = one
    found = [
        UnusedResults(
            place=place,
            whole=whole,
            module=_module_of(unused.values()),
            result_bytes=sum(one.result_bytes for one in unused.values()),
            operators=work.uses(unused.keys()),
        )
        for (place, whole), unused in groups.items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def read_numbers(work: StepWork) -> list[UnusedResults]:
    """Of the first step: what nobody uses but a line that reads it as a number.

    A step without a backward pass is an evaluation, whose results are such numbers.
    """
    if not work.watch.passes:
        return []
    operations = work.operations
    reads = {number for number, one in enumerate(operations) if one.name == _READ and one.call.is_direct}
    others = work.used(without=reads)
    others |= {number for number in work.live if work.watch.nodes.is_reached(operations[number].node)}
    return [
        replace(one, is_number=True)
        for one in unused_results(work, others | (set(range(len(operations))) - work.live - reads))
    ]


_FEW = 0.5
"""At most so many rows are read."""


def partly_read(work: StepWork, partly: Mapping[int, PartlyRead]) -> list[PartlyReadResults]:
    """Of the first step, the most computed first: operators one behind the other of which the same rows are read.

    `partly`: what is partly read, by operation.
    """
    operations = work.operations
    chosen = work.live & {number for number, _ in work.forward}
    few = {number: one for number, one in partly.items() if number in chosen and one.is_read.mean() <= _FEW}
    uses = work.uses(few.keys())
    mixed = {use.place for use in uses if 0 < use.unused < use.times}
    groups: dict[int, set[int]] = {}
    for number in sorted(few, reverse=True):
        mine = {number}
        for reader in few[number].readers & few.keys():
            if _share(few[reader]) == _share(few[number]):
                mine |= groups[reader]
        groups.update(dict.fromkeys(mine, mine))
    found = []
    for together in {id(one): one for one in groups.values()}.values():
        for whole in (True, False):
            mine = {n for n in together if (work.place_of(n) not in mixed) == whole}
            if not mine:
                continue
            most = max(mine, key=lambda n: (operations[n].flops, operations[n].result_bytes, -few[n].is_read.size, -n))
            nodes = frozenset().union(*(few[number].nodes for number in mine))
            found.append(
                PartlyReadResults(
                    place=work.place_of(most),
                    first=work.place_of(min(mine)),
                    rows=len(few[most].is_read),
                    read_rows=few[most].read_rows,
                    whole=whole,
                    ignored=few[most].ignored,
                    result_bytes=sum(operations[number].result_bytes for number in mine),
                    operators=work.uses(mine),
                    backward=work.backward_uses_of_nodes(mine, nodes),
                )
            )
    return sorted(found, key=lambda one: -one.result_bytes)


def partly_used_samples(work: StepWork, partly: Mapping[int, PartlyRead]) -> list[PartlyReadResults]:
    """The same of data that is loaded, by line, the most bytes first."""
    operations, paths = work.operations, work.paths
    found: dict[int, PartlyReadResults] = {}
    for number, one in partly.items():
        operation = operations[number]
        read_rows, rows = one.outermost
        if operation.call.is_loading and paths[operation.call.path] and read_rows <= _FEW * rows:
            place = work.places.number_of(paths[operation.call.path][-1])
            row = PartlyReadResults(place, place, rows, read_rows, result_bytes=operation.result_bytes, is_loaded=True)
            if place not in found or found[place].result_bytes < row.result_bytes:
                found[place] = row
    return sorted(found.values(), key=lambda one: -one.result_bytes)


def _share(one: PartlyRead) -> Fraction:
    return Fraction(one.read_rows, len(one.is_read))


def _module_of(operations: Collection[Operation]) -> str:
    modules: Counter[str] = Counter()
    for one in operations:
        modules[one.call.modules[-1] if one.call.modules else ""] += one.result_bytes
    return modules.most_common(1)[0][0]


_MOST_LOOKUPS = 64
_LEAST_FEATURES = 2
"""A position has at least so many in work that goes through all of them."""


def padded_work(work: StepWork) -> list[PaddedWork]:
    """Of the first step, by line, the most padding first. Work after several lookups counts for the last of them."""
    operations = work.operations
    numbers = {number for number, _ in work.forward}
    claimed: set[int] = set()
    lookups: dict[int, list[Lookup]] = defaultdict(list)
    members: dict[int, set[int]] = defaultdict(set)
    for number, lookup in reversed(work.watch.lookups[-_MOST_LOOKUPS:]):
        if number not in numbers:
            continue
        following = {number}
        for later, one in work.forward:
            if later > number and not following.isdisjoint(one.inputs):
                following.add(later)
        place = work.place_of(number)
        lookups[place].append(lookup)
        members[place] |= {one for one in following - claimed if _has_all_positions(operations[one].shape, lookup)}
        claimed |= following
    found = [
        PaddedWork(
            place=place,
            rows=sum(one.rows for one in mine),
            length=max(one.length for one in mine),
            positions=sum(one.rows * one.length for one in mine),
            padded=sum(one.padded for one in mine),
            longest=max(one.longest for one in mine),
            operators=work.uses(members[place]),
            backward=work.backward_uses(members[place]),
        )
        for place, mine in lookups.items()
    ]
    return sorted(found, key=lambda one: -one.padded)


def _has_all_positions(shape: tuple[int, ...], lookup: Lookup) -> bool:
    positions = lookup.rows * lookup.length
    return math.prod(shape) >= _LEAST_FEATURES * positions and (lookup.length in shape or positions in shape)


_LEAST_NEEDED, _MOST_NEEDED = 0.05, 0.6
"""Of an operator's time: a cheaper one does not take less, and one that takes more is not worth a change."""


def _is_of_one_hot(work: StepWork, number: int) -> bool:
    """Whether an operation is a product with one-hot vectors, or with a copy of these."""
    one = work.operations[number]
    inputs = one.inputs
    return one.name in PRODUCTS and not work.watch.one_hots.keys().isdisjoint(
        inputs.union(*(work.operations[one].inputs for one in inputs))
    )


def cheaper_operators(work: StepWork, repeats: Set[int]) -> list[CheaperOperator]:
    """Of the first step, by line and kind, without what is done again (`repeats`)."""
    operations = work.operations
    mine = {number for number, _ in work.forward}
    groups: dict[tuple[int, OperatorChoice], list[Choice]] = defaultdict(list)
    claimed = {number for number in mine if _is_of_one_hot(work, number)}  # `broadcasts` has these
    seen = (work.watch.diagonals, work.watch.normalisations, work.watch.cheaper, work.watch.class_masks)
    choices_of = (one.all(work.readers) for one in seen)
    for one in itertools.chain(*choices_of, written_out(work), repeated_products(work)):
        is_free = one.members <= mine and claimed.isdisjoint(one.members)
        if is_free and one.number in work.live and one.number not in repeats and one.needed <= _MOST_NEEDED:
            claimed |= one.members
            groups[work.place_of(one.number), one.kind].append(one)
    found = []
    for (place, kind), choices in groups.items():
        first = max(choices, key=lambda one: operations[one.number].result_bytes)
        largest = operations[first.number]
        is_of_library = kind in OF_LIBRARIES and not largest.call.is_direct
        members = {number for one in choices for number in one.members}
        others = {work.place_of(number) for one in choices for number in mine.intersection(one.others)}
        found.append(
            CheaperOperator(
                place=place,
                kind=kind,
                name=largest.name,
                shape=list(largest.shape),
                times=len(choices),
                module=largest.call.modules[-1] if is_of_library and largest.call.modules else "",
                different=first.different,
                needed=max(_LEAST_NEEDED, *(one.needed for one in choices)),
                others=sorted(others - {place}),
                operators=work.uses(members),
                backward=work.backward_uses_of_nodes(members, set()),
            )
        )
    return found
