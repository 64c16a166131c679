"""The numbers of each call of an operator, from which all tables of operators are summed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest, sums_with_callees
from deepscope.analysis.array_ops.intervals import Extent
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, of_kind
from deepscope.analysis.numbers.arguments import broadcast
from deepscope.analysis.numbers.flop_formulas import UNREADABLE, Shapes, Words, output_sizes
from deepscope.analysis.numbers.flops import OperatorFlops, kernels_with_tensor_cores, operators_for_tensor_cores
from deepscope.analysis.numbers.memory import MemoryUse
from deepscope.analysis.numbers.roofline import Roofline
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.owners import Operators
from deepscope.analysis.ownership.paths import paths_of_forest
from deepscope.records.tables import CALL_NUMBERS
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import OPERATOR_KINDS, Kind, operator_kind
from deepscope.trace.model import Int64, Trace


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
    total = sums_with_callees(table, operators.caller)
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
    return paths.outermost(paths.location)[path]


Output = Callable[[Shapes, Words], list[list[int]]]
"""Raises IndexError, TypeError or ValueError for arguments of a form that it does not know."""


def output_shapes(trace: Trace, nodes: Int64, positions: list[int]) -> list[str]:
    """The results' shapes of some calls of operators as JSON, "" where they are not known.

    Args:
        trace: any trace.
        nodes: the events of all calls.
        positions: of the calls in `nodes`, -1 for none.
    """
    events, strings = trace.events, trace.strings
    found = []
    for position in positions:
        event = int(nodes[position])
        formula = OUTPUTS.get(strings[events.name[event]]) if position >= 0 else None
        shapes, concrete = int(events.shapes[event]), int(events.concrete[event])
        found.append("" if formula is None or shapes < 0 else _of_call(formula, strings, shapes, concrete))
    return found


def _of_call(formula: Output, strings: list[str], shapes: int, concrete: int) -> str:
    try:
        words = json.loads(strings[concrete]) if concrete >= 0 else []
        found = formula(json.loads(strings[shapes]), words)
        return json.dumps(found) if all(isinstance(size, int) for one in found for size in one) else ""
    except UNREADABLE:
        return ""


def _product(first: int, second: int) -> Output:
    """Of matrices, batched or not, and of vectors, as `torch.matmul` multiplies them."""

    def sizes(shapes: Shapes, _words: Words) -> list[list[int]]:
        a, b = shapes[first], shapes[second]
        if not a or not b or a[-1] != b[-2 if len(b) > 1 else -1]:
            raise ValueError("no product of these shapes")
        batch = broadcast(a[:-2], b[:-2])
        return [[*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else [])]]

    return sizes


def _pointwise(count: int) -> Output:
    return lambda shapes, _words: [broadcast(*shapes[:count])]


def _like(*places: int) -> Output:
    """Each result has the shape of an argument."""
    return lambda shapes, _words: [list(shapes[place]) for place in places]


def _linear(shapes: Shapes, _words: Words) -> list[list[int]]:
    """`(input, weight, …)`: the weight's rows are the results' columns."""
    x, weight = shapes[0], shapes[1]
    if x[-1] != weight[-1]:
        raise ValueError("no product of these shapes")
    return [[*x[:-1], *weight[:-1]]]


def _convolution(stride: int, padding: int, dilation: int, transposed: int | None) -> Output:
    def sizes(shapes: Shapes, words: Words) -> list[list[int]]:
        x, weight = shapes[0], shapes[1]
        if transposed is not None and words[transposed] == "True":
            raise ValueError("depends on more")
        return [[x[0], weight[0], *output_sizes(x, weight, words[stride], words[padding], words[dilation])]]

    return sizes


def _attention(shapes: Shapes, _words: Words) -> list[list[int]]:
    query, _, value = shapes[:3]
    return [[*query[:-1], value[-1]]]


def _embedding(shapes: Shapes, _words: Words) -> list[list[int]]:
    weight, indices = shapes[0], shapes[1]
    return [[*indices, weight[1]]]


_UNARY = (
    "abs ceil clamp clamp_min clamp_max clone contiguous cos dropout elu erf exp floor gelu hardtanh isnan leaky_relu "
    "log log_softmax _log_softmax mish native_dropout neg pow relu round rsqrt sigmoid sign silu sin softmax _softmax "
    "softplus sqrt square tanh tril triu layer_norm native_layer_norm group_norm native_group_norm batch_norm "
    "native_batch_norm cudnn_batch_norm miopen_batch_norm instance_norm rms_norm _fused_rms_norm cumsum "
    "masked_fill zeros_like ones_like empty_like zero_ fill_ copy_ detach constant _to_copy "
    "normal_ uniform_ bernoulli_ relu_"
)
_BINARY = "add sub mul div maximum minimum eq ne lt le gt ge remainder floor_divide logical_and logical_or where atan2"
_IN_PLACE = "add_ sub_ mul_ div_ addcmul_ addcdiv_ lerp_ masked_fill_ clamp_ sqrt_ pow_ neg_ exp_ sigmoid_ tanh_"
_GRADIENTS = "threshold_backward gelu_backward silu_backward tanh_backward sigmoid_backward _softmax_backward_data"

OUTPUTS: dict[str, Output] = {
    **{f"aten::{name}": _like(0) for name in (_UNARY + " " + _IN_PLACE + " " + _GRADIENTS).split()},
    **{f"aten::{name}": _pointwise(2) for name in _BINARY.split()},
    "aten::where": _pointwise(3),
    "aten::addcmul": _pointwise(3),
    "aten::addcdiv": _pointwise(3),
    "aten::_log_softmax_backward_data": _like(0),
    "aten::native_layer_norm_backward": _like(1),
    "aten::native_batch_norm_backward": _like(1),
    "aten::cudnn_batch_norm_backward": _like(0),
    "aten::mm": _product(0, 1),
    "aten::bmm": _product(0, 1),
    "aten::matmul": _product(0, 1),
    "aten::mv": _product(0, 1),
    "aten::addmm": _product(1, 2),
    "aten::addmm_": _like(0),
    "aten::_addmm_activation": _product(1, 2),
    "aten::baddbmm": _product(1, 2),
    "aten::_scaled_mm": _product(0, 1),
    "aten::linear": _linear,
    "aten::embedding": _embedding,
    "aten::convolution": _convolution(3, 4, 5, 6),
    "aten::_convolution": _convolution(3, 4, 5, 6),
    "aten::convolution_overrideable": _convolution(3, 4, 5, 6),
    "aten::cudnn_convolution": _convolution(3, 2, 4, None),
    "aten::miopen_convolution": _convolution(4, 3, 5, None),
    "aten::mkldnn_convolution": _convolution(4, 3, 5, None),
    "aten::convolution_backward": _like(1, 2),
    "aten::scaled_dot_product_attention": _attention,
    **{f"aten::_scaled_dot_product_{name}_attention": _attention for name in ("efficient", "flash", "cudnn")},
    "aten::_scaled_dot_product_fused_attention_overrideable": _attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
}
"""By the operator's name as a trace has it; of operators with several results those whose shapes are known."""
