"""Operators by name: calls, device and CPU time, FLOPs, bytes, tensor cores; on demand by shapes and stacks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, commonest, distinct_rows, of_kind, rows
from deepscope.analysis.numbers.arguments import output_shapes
from deepscope.analysis.numbers.flops import kernels_with_tensor_cores, operators_for_tensor_cores
from deepscope.analysis.ownership.owners import Operators, joined_paths
from deepscope.analysis.ownership.paths import PathBuilder, paths_of_forest
from deepscope.analysis.tables.why import WorkCauses, why_of_calls
from deepscope.records import NO_OPERATOR, Detail, Operator, OperatorInDetail
from deepscope.records.operators import CALL_NUMBERS
from deepscope.trace.arrays import distinct_places, nearest, pick, sums_with_callees
from deepscope.trace.kinds import OPERATOR_KINDS, Kind, operator_kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import one_spelling


@dataclass(frozen=True, slots=True)
class OperatorCalls:
    """All calls of operators; arrays of shape (k,), in the order of `Operators.nodes`.

    A call with a single call in it, of the same name, is one with it, as torch's `key_averages` has it: numbers of the
    inner one stand at the outer one.
    """

    call: Int64
    """The position of the outermost call that each is one with."""
    counted: Mask
    """Which calls there are, and start within the extent."""
    outermost: Mask
    """Which are in no other call of the same name."""
    of_kind: Mask
    """Which are in no other call of the same kind (`trace/kinds.py`)."""
    eligible: Mask
    """Which could use tensor cores, or call what could."""
    columns: Columns
    """Fields of `records.Operator`, each call's own; totals hold the calls below, of whatever name."""

    def sums(self, group: Int64, groups: int) -> Columns:
        """Sums by group, -1 for none; shape (groups,). A total counts a call in one of the same name once."""
        found = {"calls": by_line(group[self.counted], groups)[:groups]}
        for name, values in self.columns.items():
            rows = self.outermost if "total" in name else slice(None)
            found[name] = by_line(group[rows], groups, values[rows])[:groups]
        eligible = by_line(group[self.counted & self.eligible], groups)[:groups]
        return found | {"tensor_core_eligible": (eligible > 0).astype(np.int64)}

    def in_detail(self, group: Int64, groups: int) -> Columns:
        """The largest of a single call by group, as `max_…`, and totals within the kind; shape (groups,)."""
        found = {
            f"kind_{name}": by_line(group[self.of_kind], groups, self.columns[name][self.of_kind])[:groups]
            for name in ("total_device_ns", "total_cpu_ns")
        }
        for name in CALL_NUMBERS:
            largest = np.zeros(groups + 1, np.int64)
            np.maximum.at(largest, group, self.columns[name])
            found[f"max_{name}"] = largest[:groups]
        return found


def calls_of_operators(analysis: Analysis, causes: WorkCauses, *, with_kinds: bool) -> OperatorCalls:
    """The numbers of each call of an operator within the extent."""
    of, extent = analysis.attribution, analysis.extent
    flops, memory, roofline = analysis.flops, analysis.memory, causes.roofline
    trace, operators, work = of.trace, of.operators, of.work
    count = len(operators.nodes)
    counted = extent.begins(trace.events, operators.nodes)
    launched = analysis.counted
    is_one = _is_one_with_caller(trace, operators)
    call = nearest(operators.caller, ~is_one)
    unknown = counted & ~is_one & flops.unknown
    by = np.where(launched, pick(call, pick(operators.around, work.node)), -1)
    with_cores = kernels_with_tensor_cores(trace, of_kind(trace, Kind.KERNEL))[work.event]
    moved = launched & (roofline.unit >= 0) & (roofline.moved_bytes > 0)
    taken = memory.trace.memory.size_bytes[memory.rows]
    around = np.where(memory.counted & (taken > 0), pick(call, pick(operators.around, memory.event)), -1)
    own = {
        "device_ns": by_line(by, count, work.duration_ns)[:count],
        "cpu_ns": by_line(call, count, np.where(counted, operators.self_ns, 0))[:count],
        "tensor_core": by_line(by[with_cores], count, work.duration_ns[with_cores])[:count],
    }
    eligible = operators_for_tensor_cores(trace, of_kind(trace, Kind.OPERATOR))[operators.nodes] | (
        own["tensor_core"] > 0
    )
    table = np.stack([*own.values(), eligible.astype(np.int64)], axis=1)
    total = sums_with_callees(table, operators.caller)
    return OperatorCalls(
        call=call,
        counted=counted & ~is_one,
        outermost=_outermost(operators, distinct_places(trace.events.name[operators.nodes])[1]),
        of_kind=_outermost(operators, _kinds(trace, operators)) if with_kinds else np.ones(count, np.bool_),
        eligible=total[:, 3] > 0,
        columns={
            "self_device_ns": own["device_ns"],
            "total_device_ns": total[:, 0],
            "self_cpu_ns": own["cpu_ns"],
            "total_cpu_ns": total[:, 1],
            "flops": by_line(call, count, np.where(counted, flops.counted, 0))[:count],
            "calls_without_flops": by_line(call[unknown], count)[:count],
            "moved_bytes": by_line(pick(call, roofline.unit[moved]), count, roofline.moved_bytes[moved])[:count],
            "allocated_bytes": by_line(around, count, taken)[:count],
            "tensor_core_self_ns": own["tensor_core"],
            "tensor_core_total_ns": total[:, 2],
        },
    )


def _is_one_with_caller(trace: Trace, operators: Operators) -> Mask:
    """Which calls are the only one in their caller, and of its name."""
    name, caller = trace.events.name[operators.nodes], operators.caller
    within = by_line(caller, len(caller))[:-1]
    return np.asarray((caller >= 0) & (name[caller] == name) & (within[caller] == 1))


def _kinds(trace: Trace, operators: Operators) -> Int64:
    """The kind of each call, a place in `OPERATOR_KINDS`."""
    names, place = distinct_places(trace.events.name[operators.nodes])
    kinds = [OPERATOR_KINDS.index(operator_kind(trace.strings[name])) for name in names.tolist()]
    return np.array(kinds, np.int64)[place]


def _outermost(operators: Operators, group: Int64) -> Mask:
    """Which calls are in no other one of the same group."""
    paths, path = paths_of_forest(operators.caller, group)
    return paths.outermost(paths.location)[path]


_Row = TypeVar("_Row", bound=Operator)


def operator_table(analysis: Analysis, calls: OperatorCalls, causes: WorkCauses) -> list[Operator]:
    """All operators of a trace by name, the largest device time first.

    A total holds the operators called from it; an operator that calls itself counts once.
    """
    of = analysis.attribution
    name, group = distinct_places(of.trace.events.name[of.operators.nodes])
    group = group[calls.call]
    columns = calls.sums(group, len(name))
    whys = why_of_calls(analysis, causes, group, len(name))
    order = _order(columns)
    found = [
        Operator(name=of.trace.strings[int(name[i])], why=whys[i], **row)
        for i, row in zip(order.tolist(), _rows(columns, order), strict=True)
    ]
    return _with_rest(analysis, found, Operator)


def detailed_operator_table(
    analysis: Analysis, calls: OperatorCalls, causes: WorkCauses, details: Collection[Detail]
) -> list[OperatorInDetail]:
    """Operators by name and by the shapes of their arguments, by the lines that led to them, or by both."""
    of = analysis.attribution
    events, strings, nodes = of.trace.events, of.trace.strings, of.operators.nodes
    shapes = events.shapes[nodes] if "shapes" in details else np.full(len(nodes), -1, np.int32)
    stack, stacks = _stacks(analysis) if "stacks" in details else (np.zeros(len(nodes), np.int64), [""])
    keys, group = distinct_rows(events.name[nodes], shapes, stack)
    count, group = len(keys), group[calls.call]
    columns = calls.sums(group, count) | calls.in_detail(group, count)
    whys = why_of_calls(analysis, causes, group, count)
    counted = np.where(calls.counted, group, -1)
    dtypes = commonest(counted, events.dtypes[nodes], count)
    results = output_shapes(of.trace, nodes, commonest(counted, np.arange(len(nodes)), count)) if count else []
    texts = [*strings, ""]  # the last place is for none
    order = _order(columns)
    found = [
        OperatorInDetail(
            name=strings[keys[i][0]],
            in_shapes=one_spelling(texts[keys[i][1]]),
            stack=stacks[keys[i][2]],
            dtypes=one_spelling(texts[dtypes[i]]),
            out_shapes=results[i] if "shapes" in details else "",
            why=whys[i],
            **row,
        )
        for i, row in zip(order.tolist(), _rows(columns, order), strict=True)
    ]
    return _with_rest(analysis, found, OperatorInDetail)


def _with_rest(analysis: Analysis, found: list[_Row], made: type[_Row]) -> list[_Row]:
    """The rows and, where there is any, the device work that no operator launched, as `NO_OPERATOR`."""
    work = analysis.attribution.work
    rest_ns = int(work.duration_ns[analysis.counted].sum()) - sum(row.self_device_ns for row in found)
    if work.metric != "device" or rest_ns <= 0:
        return found
    rest = made(
        name=NO_OPERATOR, calls=0, self_device_ns=rest_ns, total_device_ns=rest_ns, self_cpu_ns=0, total_cpu_ns=0
    )
    if isinstance(rest, OperatorInDetail):
        rest.kind_total_device_ns = rest_ns
    return sorted([*found, rest], key=lambda row: -row.self_device_ns)


_TELLING = ("calls", "self_device_ns", "total_device_ns", "self_cpu_ns", "total_cpu_ns")
"""A row has one of these."""


def _order(columns: Columns) -> Int64:
    order = np.lexsort((-columns["total_cpu_ns"], -columns["self_device_ns"]))
    # What began before the step has no call in it, but may have launched work there.
    some = np.any([columns[name] > 0 for name in _TELLING], axis=0)
    return np.asarray(order[some[order]])


def _rows(columns: Columns, order: Int64) -> list[dict[str, Any]]:
    found = rows(columns, order)
    for row in found:
        row["tensor_core_eligible"] = bool(row["tensor_core_eligible"])
    return found


def _stacks(analysis: Analysis) -> tuple[Int64, list[str]]:
    """The user's lines that led to each operator (a place in the list), as texts of call stacks, innermost first."""
    of = analysis.attribution
    builder = PathBuilder(of.paths)
    paths, place = distinct_places(joined_paths(builder, of.calls, of.owners.path, of.operators.nodes))
    known = of.scopes.locations
    texts = []
    for path in paths.tolist():
        lines = [known[location] for location in reversed(builder.locations(path))]
        texts.append(";".join(f"{one.file}({one.line}): {one.function}" for one in lines))
    return place, texts
