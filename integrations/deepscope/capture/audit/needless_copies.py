"""From what was watched: copies that nobody needs."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

from deepscope.capture.audit.copies import Copy
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import PathEntry
from deepscope.trace.format.audit import CopyNeed, NeedlessCopies


def needless_copies(work: StepWork, chains: Iterable[list[int]]) -> list[NeedlessCopies]:
    """Of the first step, by line, the largest first; `chains`: what `joined_chains` finds."""
    operations = work.operations
    others = set(work.watch.constants.same())  # which are reported as such
    needs: dict[int, CopyNeed] = dict.fromkeys(_repeated(work), "once")
    needs.update(_without_a_need(work))
    groups: dict[tuple[int, CopyNeed], list[Copy]] = defaultdict(list)
    for one in work.watch.copies.all:
        if one.number in needs and one.number in work.live and one.number not in others:
            place = work.place_of(one.number)
            groups[place, needs[one.number]].append(one)
    found = []
    for (place, need), copies in groups.items():
        largest = max(copies, key=lambda one: operations[one.number].result_bytes)
        found.append(
            NeedlessCopies(
                place=place,
                name=operations[largest.number].name,
                need=need,
                reader=largest.reader,
                shape=list(operations[largest.number].shape),
                times=len(copies),
                result_bytes=sum(operations[one.number].result_bytes for one in copies),
                operators=work.uses({one.number for one in copies}),
            )
        )
    found += _grown(work, chains)
    return sorted(found, key=lambda one: -one.result_bytes)


def _grown(work: StepWork, chains: Iterable[list[int]]) -> list[NeedlessCopies]:
    """Lines that join to what they have joined before."""
    operations, paths = work.operations, work.paths
    lines: dict[PathEntry, list[int]] = defaultdict(list)
    for chain in chains:
        lines[paths[operations[chain[0]].call.path][-1]] += chain[1:]
    return [
        NeedlessCopies(
            place=work.places.number_of(line),
            name=operations[numbers[-1]].name,
            need="grown",
            shape=list(operations[numbers[-1]].shape),
            times=len(numbers),
            result_bytes=sum(operations[number].result_bytes for number in numbers),
            operators=work.uses(set(numbers)),
        )
        for line, numbers in lines.items()
    ]


def _without_a_need(work: StepWork) -> dict[int, CopyNeed]:
    """The copies in place of which their readers could read the source."""
    copies = work.watch.copies
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


def _repeated(work: StepWork) -> list[int]:
    """The copies that are as an earlier one of the same bytes is.

    Where autograd has a node for both, there is no backward pass in between, which would let go of the first one's.
    """
    operations, copies = work.operations, work.watch.copies
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
