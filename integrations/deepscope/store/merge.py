"""Several ranks' profiles merged into one: every number is the sum over the ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from deepscope.errors import IncomparableError
from deepscope.store.findings import merge_findings
from deepscope.store.profile import (
    CallNode,
    Function,
    Kernel,
    Library,
    Line,
    Module,
    Numbers,
    Operator,
    Profile,
    RankSpread,
    Resolved,
    SourceFile,
    Step,
    Top,
    Totals,
    TraceInfo,
)

__all__ = ["merge_profiles"]

Record = TypeVar("Record", bound=msgspec.Struct)

_NUMBERS = Numbers.__struct_fields__
_TOTALS = tuple(name for name in Totals.__struct_fields__ if name not in {"steps", "ranks"})
_OPERATOR = ("calls", "self_device_ns", "total_device_ns", "self_cpu_ns", "total_cpu_ns", "flops")
_STEP = ("duration_ns", "device_ns", "busy_ns", "idle_ns", "wait_ns")


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """Merges the profiles of several ranks of one run, each of one rank; the order gives the order of `trace.ranks`.

    Times, counts and bytes are summed (`totals.wall_ns` and a step's duration too: divide by `totals.ranks` for the
    mean). Lines are matched by file, line and function, steps by number.

    Raises:
        IncomparableError: some ranks have device events and some have none, so that their numbers do not add up.
        ValueError: there is no profile.
    """
    if not profiles:
        raise ValueError("no profile to merge")
    if len(profiles) == 1:
        return profiles[0]
    if len({profile.metric for profile in profiles}) > 1:
        without = [profile.trace.path for profile in profiles if profile.metric == "cpu_self"]
        raise IncomparableError(f"{without[0]}: has no device events while other ranks have; choose one rank")
    ranks = [_rank(profile, place) for place, profile in enumerate(profiles)]
    lines = _merge_lines(profiles, ranks)
    return Profile(
        metric=profiles[0].metric,
        trace=_merge_info([profile.trace for profile in profiles], ranks),
        totals=_merge_totals([profile.totals for profile in profiles], [profile.steps for profile in profiles]),
        lines=lines,
        no_line=_summed([profile.no_line for profile in profiles], _NUMBERS),
        resolved=_summed([profile.resolved for profile in profiles], Resolved.__struct_fields__),
        functions=_merge_functions([profile.functions for profile in profiles], ranks),
        modules=_merge([profile.modules for profile in profiles], _module_key, _NUMBERS, _by_device),
        operators=_merge([profile.operators for profile in profiles], lambda one: one.name, _OPERATOR, _by_device),
        kernels=_merge_kernels([profile.kernels for profile in profiles]),
        steps=_merge_steps([profile.steps for profile in profiles], ranks),
        phases=_merge(
            [profile.phases for profile in profiles], lambda one: one.name, ("wall_ns", "device_ns", "calls")
        ),
        call_tree=_merge_call_trees(profiles, {_line_key(line): place for place, line in enumerate(lines)}),
        findings=merge_findings([profile.findings for profile in profiles]),
        files=_merge_files([profile.files for profile in profiles]),
        step=profiles[0].step,
    )


def _line_key(line: Line) -> tuple[str, int, str, bool]:
    return line.file, line.line, line.function, line.exact


def _function_key(function: Function) -> tuple[str, int, str]:
    return function.file, function.line, function.function


def _module_key(module: Module) -> tuple[str, str]:
    return module.path, module.class_name


def _by_device(record: Line | Function | Module | Operator) -> int:
    return -record.self_device_ns


def _rank(profile: Profile, place: int) -> int:
    return profile.trace.ranks[0] if profile.trace.ranks else place


def _summed(records: Sequence[Record], fields: Iterable[str]) -> Record:
    """The first record with the sums of `fields` over all."""
    sums = {name: sum(getattr(record, name) for record in records) for name in fields}
    return msgspec.structs.replace(records[0], **sums)


def _grouped(tables: Iterable[Iterable[Record]], key: Callable[[Record], Hashable]) -> list[list[Record]]:
    groups: dict[Hashable, list[Record]] = {}
    for table in tables:
        for record in table:
            groups.setdefault(key(record), []).append(record)
    return list(groups.values())


def _merge(
    tables: Iterable[Iterable[Record]],
    key: Callable[[Record], Hashable],
    fields: Iterable[str],
    order: Callable[[Record], int] | None = None,
) -> list[Record]:
    merged = [_summed(group, fields) for group in _grouped(tables, key)]
    return merged if order is None else sorted(merged, key=order)


def _spread(values: dict[int, int], ranks: Sequence[int]) -> RankSpread:
    """`values` by rank, 0 for a rank that has none; the first rank wins a tie."""
    low = min(ranks, key=lambda rank: values.get(rank, 0))
    high = max(ranks, key=lambda rank: values.get(rank, 0))
    ordered = sorted(values.get(rank, 0) for rank in ranks)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2
    return RankSpread(values.get(low, 0), low, median, values.get(high, 0), high)


def _by_rank(
    tables: Iterable[Iterable[Record]], ranks: Sequence[int], key: Callable[[Record], Hashable], field: str
) -> dict[Hashable, dict[int, int]]:
    """For each record's key, `field` by rank."""
    values: dict[Hashable, dict[int, int]] = {}
    for rank, table in zip(ranks, tables, strict=True):
        for record in table:
            values.setdefault(key(record), {})[rank] = getattr(record, field)
    return values


def _merge_lines(profiles: Sequence[Profile], ranks: Sequence[int]) -> list[Line]:
    by_rank = _by_rank((profile.lines for profile in profiles), ranks, _line_key, "self_device_ns")
    merged = []
    for group in _grouped((profile.lines for profile in profiles), _line_key):
        line = _summed(group, _NUMBERS)
        line.in_compiled_region = any(one.in_compiled_region for one in group)
        line.text = next((one.text for one in group if one.text is not None), None)
        line.top_operators = _merge_tops([one.top_operators for one in group])
        line.top_kernels = _merge_tops([one.top_kernels for one in group])
        line.libraries = _merge_libraries([one.libraries for one in group])
        line.spread = _spread(by_rank[_line_key(line)], ranks)
        merged.append(line)
    return sorted(merged, key=_by_device)


def _merge_functions(tables: Sequence[list[Function]], ranks: Sequence[int]) -> list[Function]:
    by_rank = _by_rank(tables, ranks, _function_key, "self_device_ns")
    merged = _merge(tables, _function_key, _NUMBERS, _by_device)
    for function in merged:
        function.spread = _spread(by_rank[_function_key(function)], ranks)
    return merged


def _merge_tops(tables: Sequence[list[Top]]) -> list[Top]:
    merged = _merge(tables, lambda top: top.name, ("device_ns", "count"), lambda top: -top.device_ns)
    return merged[: max(map(len, tables))]


def _merge_libraries(tables: Sequence[list[Library]]) -> list[Library]:
    merged = _merge(
        tables,
        lambda one: (one.module, one.function, one.operator, one.include),
        ("device_ns", "include_ns"),
        lambda one: -one.device_ns,
    )
    return merged[: max(map(len, tables))]


def _merge_kernels(tables: Sequence[list[Kernel]]) -> list[Kernel]:
    merged = []
    for group in _grouped(tables, lambda one: (one.name, one.kind)):
        kernel = _summed(group, ("calls", "device_ns"))
        kernel.mean_ns = kernel.device_ns // kernel.calls if kernel.calls else 0
        kernel.max_ns = max(one.max_ns for one in group)
        kernel.operator = max(group, key=lambda one: one.device_ns).operator
        merged.append(kernel)
    return sorted(merged, key=lambda one: -one.device_ns)


def _merge_steps(tables: Sequence[list[Step]], ranks: Sequence[int]) -> list[Step]:
    durations = _by_rank(tables, ranks, lambda step: step.number, "duration_ns")
    merged = []
    for group in _grouped(tables, lambda step: step.number):
        step = _summed(group, _STEP)
        step.start_ns = min(one.start_ns for one in group)
        names = dict.fromkeys(name for one in group for name in one.phases)
        step.phases = {name: sum(one.phases.get(name, 0) for one in group) for name in names}
        step.spread = _spread(durations[step.number], ranks)
        merged.append(step)
    return sorted(merged, key=lambda step: step.number)


def _merge_totals(totals: Sequence[Totals], steps: Sequence[list[Step]]) -> Totals:
    merged = _summed(totals, _TOTALS)
    numbers = {step.number for table in steps for step in table}
    merged.steps = len(numbers) or max(one.steps for one in totals)
    merged.ranks = sum(one.ranks for one in totals)
    return merged


def _merge_info(infos: Sequence[TraceInfo], ranks: Sequence[int]) -> TraceInfo:
    devices = list(dict.fromkeys(info.device for info in infos if info.device))
    hosts = list(dict.fromkeys(info.hostname for info in infos if info.hostname))
    warnings = dict.fromkeys(warning for info in infos for warning in info.warnings)
    sources = {info.line_source for info in infos}
    return msgspec.structs.replace(
        infos[0],
        paths=[info.path for info in infos],
        ranks=list(ranks),
        world_size=max(*(info.world_size for info in infos), len(infos)),
        device=", ".join(devices),
        hostname=", ".join(hosts),
        line_source=next((name for name in ("scopes", "call_stack", "frames") if name in sources), "none"),
        truncated=any(info.truncated for info in infos),
        warnings=list(warnings),
    )


def _merge_files(tables: Iterable[dict[str, SourceFile]]) -> dict[str, SourceFile]:
    """By path, the first rank's text: ranks on other hosts may run another text, which then stays unseen here."""
    merged: dict[str, SourceFile] = {}
    for table in tables:
        for path, file in table.items():
            merged.setdefault(path, file)
    return merged


def _merge_call_trees(
    profiles: Sequence[Profile], line_places: dict[tuple[str, int, str, bool], int]
) -> list[CallNode]:
    """One tree: nodes with the same lines above them are one node."""
    nodes: list[CallNode] = []
    places: dict[tuple[int, int], int] = {}
    for profile in profiles:
        moved: list[int] = []
        for node in profile.call_tree:  # a parent stands before its children
            parent = moved[node.parent] if node.parent >= 0 else -1
            line = line_places[_line_key(profile.lines[node.line])] if node.line >= 0 else -1
            place = places.get((parent, line))
            if place is None:
                place = places[parent, line] = len(nodes)
                nodes.append(CallNode(parent, line, 0, 0, 0))
            merged = nodes[place]
            merged.self_device_ns += node.self_device_ns
            merged.self_cpu_ns += node.self_cpu_ns
            merged.backward_device_ns += node.backward_device_ns
            moved.append(place)
    return nodes
