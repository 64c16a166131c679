"""From what was watched: forward work whose results reach no gradient, nothing that is kept, and nobody outside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import operator_uses
from deepscope.capture.audit.places import Path, Places, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedResults


def unused_results(watch: Watch, places: Places, *, unread_is_used: bool) -> list[UnusedResults]:
    """Of the first step; `unread_is_used`: what no operator reads may be used by code that shows none."""
    flow, paths = watch.flow, watch.paths.paths
    given = [number for one in watch.gradients.all for number in one.operations]
    live = flow.reaching([*flow.sinks(), *flow.kept(unread_is_used=unread_is_used), *given])
    forward = [
        (number, one)
        for number, one in enumerate(flow.operations)
        if one.step == 0 and one.pass_number < 0 and paths[one.call.path] and not one.call.is_loading
        if number in live or one.computes
    ]
    unused = {number for number, _ in forward} - live
    beginnings = wholly((paths[one.call.path], number in unused) for number, one in forward)
    by_path: dict[Path, list[tuple[int, Operation]]] = defaultdict(list)
    for number, one in forward:
        by_path[outermost_of(paths[one.call.path], beginnings)].append((number, one))
    found = [_of_path(watch, places, path, pairs, unused, whole=path in beginnings) for path, pairs in by_path.items()]
    return sorted((one for one in found if one is not None), key=lambda one: -one.result_bytes)


def _of_path(
    watch: Watch,
    places: Places,
    path: Path,
    operations: Sequence[tuple[int, Operation]],
    unused: set[int],
    *,
    whole: bool,
) -> UnusedResults | None:
    mine = [one for number, one in operations if number in unused]
    if not mine:
        return None
    modules: Counter[str] = Counter()
    for one in mine:
        modules[one.call.modules[-1] if one.call.modules else ""] += one.result_bytes + 1
    return UnusedResults(
        place=places.number_of(path[-1]),
        whole=whole,
        module=modules.most_common(1)[0][0],
        result_bytes=sum(one.result_bytes for one in mine),
        operators=operator_uses(watch, places, operations, unused),
    )
