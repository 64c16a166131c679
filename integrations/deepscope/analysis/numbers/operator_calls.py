"""The numbers of each single call of an operator, from which all tables of operators are summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest
from deepscope.analysis.array_ops.extent import Extent
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, of_kind
from deepscope.analysis.numbers.flops import OperatorFlops
from deepscope.analysis.numbers.memory import MemoryUse
from deepscope.analysis.numbers.roofline import Roofline
from deepscope.analysis.numbers.tensor_cores import kernels_with_tensor_cores, operators_for_tensor_cores
from deepscope.analysis.ownership.operators import Operators
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.analysis.ownership.paths import PathTable, paths_of_forest
from deepscope.records.tables import CALL_NUMBERS
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.operator_kinds import OPERATOR_KINDS, operator_kind


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
    """Which are in no other call of the same kind (`trace/operator_kinds.py`)."""
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


def operator_calls(
    trace: Trace,
    operators: Operators,
    work: OwnedWork,
    *,
    flops: OperatorFlops,
    roofline: Roofline,
    memory: MemoryUse,
    extent: Extent,
    with_kinds: bool,
) -> OperatorCalls:
    """The numbers of each call. `flops` are those of each operator, `roofline` has the bytes of each piece of work."""
    count = len(operators.nodes)
    counted = extent.begins(trace.events, operators.nodes)
    launched = extent.launched(work.launch_ns)
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
    total = PathTable(operators.caller, operators.caller).subtree_sums(table) if count else table
    return OperatorCalls(
        call=call,
        counted=counted & ~is_one,
        outermost=_outermost(operators, _names(trace, operators)),
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


def _names(trace: Trace, operators: Operators) -> Int64:
    return distinct_places(trace.events.name[operators.nodes])[1]


def _kinds(trace: Trace, operators: Operators) -> Int64:
    """The kind of each call, a place in `OPERATOR_KINDS`."""
    names, place = distinct_places(trace.events.name[operators.nodes])
    kinds = [OPERATOR_KINDS.index(operator_kind(trace.strings[name])) for name in names.tolist()]
    return np.array(kinds, np.int64)[place]


def _outermost(operators: Operators, group: Int64) -> Mask:
    """Which calls are in no other one of the same group."""
    paths, path = paths_of_forest(operators.caller, group)
    outermost = np.ones(len(paths), np.bool_)
    above = paths.parent
    while (above > 0).any():
        outermost &= (above <= 0) | (paths.location[above] != paths.location)
        above = np.where(above > 0, paths.parent[above], 0)
    return np.asarray(outermost[path])
