"""From what was watched: forward work whose results reach no gradient, nothing that is kept, and nobody outside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Set

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import Places, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedResults


def unused_results(watch: Watch, work: StepWork, places: Places, *, live: Set[int]) -> list[UnusedResults]:
    """Of the first step; `live`: what `used` finds."""
    paths = watch.paths.paths
    uses = [(number, one, number in live) for number, one in work.forward if number in live or one.computes]
    beginnings = wholly((paths[one.call.path], not is_used) for _, one, is_used in uses)
    groups: dict[tuple[int, bool], dict[int, Operation]] = defaultdict(dict)
    for number, one, is_used in uses:
        if not is_used:
            path = outermost_of(paths[one.call.path], beginnings)
            groups[places.number_of(path[-1]), path in beginnings][number] = one
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


def used(watch: Watch, *, unread_is_used: bool) -> set[int]:
    """The operations whose results somebody needs; `unread_is_used`: code that shows no operator may use others."""
    flow = watch.flow
    given = [number for one in watch.gradients.all for number in one.operations]
    return flow.reaching([*flow.sinks(), *flow.kept(unread_is_used=unread_is_used), *given])


def _module_of(operations: Collection[Operation]) -> str:
    modules: Counter[str] = Counter()
    for one in operations:
        modules[one.call.modules[-1] if one.call.modules else ""] += one.result_bytes
    return modules.most_common(1)[0][0]
