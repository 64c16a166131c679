"""Operators by name: calls, device and CPU time, FLOPs, bytes, tensor cores; on demand by shapes and stacks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Columns, commonest, distinct_rows, rows
from deepscope.analysis.numbers.operator_calls import OperatorCalls, operator_calls, output_shapes
from deepscope.analysis.ownership.owners import joined_paths
from deepscope.analysis.ownership.paths import PathBuilder
from deepscope.analysis.tables.why import WorkCauses, why_of_calls
from deepscope.records import NO_OPERATOR, Detail, Operator, OperatorInDetail
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64
from deepscope.trace.names import one_spelling

_Row = TypeVar("_Row", bound=Operator)


def calls_of_operators(analysis: Analysis, causes: WorkCauses, *, with_kinds: bool) -> OperatorCalls:
    """The numbers of each call of an operator within the extent."""
    of = analysis.attribution
    return operator_calls(
        of.trace,
        of.operators,
        of.work,
        flops=analysis.flops,
        roofline=causes.roofline,
        memory=analysis.memory,
        extent=analysis.extent,
        with_kinds=with_kinds,
    )


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
