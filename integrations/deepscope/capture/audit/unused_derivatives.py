"""From what was watched: derivatives that `torch.autograd.grad` took and nobody uses."""

from __future__ import annotations

from collections import Counter, defaultdict

from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import CallPath
from deepscope.trace.format.audit import UnusedResults


def unused_derivatives(work: StepWork) -> list[UnusedResults]:
    """Of the first step, by the line most of whose derivatives are unused, the most work first."""
    paths = work.paths
    unused = _unused_passes(work)
    beginnings: Counter[CallPath] = Counter()
    in_vain: Counter[CallPath] = Counter()
    for number in {one.pass_number for _, one in work.backward}:
        path = paths[work.watch.passes[number]]
        for length in range(1, len(path) + 1):
            beginnings[path[:length]] += 1
            in_vain[path[:length]] += number in unused
    groups: dict[CallPath, set[int]] = defaultdict(set)
    for number, path in ((number, paths[work.watch.passes[number]]) for number in sorted(unused)):
        if path:
            lines = [path[:length] for length in range(1, len(path) + 1)]
            groups[max(lines, key=lambda line: in_vain[line] / beginnings[line])].add(number)
    found = []
    for path, passes in groups.items():
        made = {node for number in passes for node in work.watch.nodes_of_passes[number]}
        mine = {number for number, one in work.backward if one.pass_number in passes or one.forward_node in made}
        found.append(
            UnusedResults(
                place=work.places.number_of(path[-1]),
                whole=len(passes) == beginnings[path],
                result_bytes=sum(work.operations[number].result_bytes for number in mine),
                derivatives=len(passes),
                all_derivatives=beginnings[path],
                backward=work.uses_among(work.backward, mine),
            )
        )
    return sorted(found, key=lambda one: -one.result_bytes)


def _unused_passes(work: StepWork) -> set[int]:
    """The backward passes that give no parameter its gradient, and whose results nobody reads.

    Differentiating what they computed once more is no use: nothing that is differentiated depends on it.
    """
    flow = work.watch.flow
    used = {flow.operations[number].pass_number for one in work.watch.gradients.all for number in one.operations}
    kept, unread = {*flow.kept(unread_is_used=False), *flow.sinks()}, work.watch.joined.unread()
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
