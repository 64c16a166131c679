"""From what was watched: forward work whose results reach no gradient, nothing that is kept, and nobody outside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import Places, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedResults


def unused_results(watch: Watch, work: StepWork, places: Places, *, unread_is_used: bool) -> list[UnusedResults]:
    """Of the first step; `unread_is_used`: what no operator reads may be used by code that shows none."""
    flow, paths = watch.flow, watch.paths.paths
    given = [number for one in watch.gradients.all for number in one.operations]
    live = flow.reaching([*flow.sinks(), *flow.kept(unread_is_used=unread_is_used), *given])
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


def _module_of(operations: Collection[Operation]) -> str:
    modules: Counter[str] = Counter()
    for one in operations:
        modules[one.call.modules[-1] if one.call.modules else ""] += one.result_bytes
    return modules.most_common(1)[0][0]
