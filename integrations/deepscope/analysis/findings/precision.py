"""Numbers that are wider than they need to be, or cast again and again (DS006, DS018, DS036)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, distinct, named, of_kind
from deepscope.analysis.findings.audited_work import both_passes_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option, has_faster_products, in_modules, product_type
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.peaks import peak_of
from deepscope.records import PHASES, Finding
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import ACCUMULATES_GRADIENT, evaluates, stepped_optimizer

AMPERE = 8
"""The first major compute capability with TF32 and bfloat16."""

# Products on tensor cores say so in their names (`tensorop`, `s1688gemm`, `tf32f32`); these are what cuBLAS, cuDNN and
# CUTLASS call those that do without: `ampere_sgemm_128x64_tn`, `cutlass_80_simt_sgemm_…`, `…_scudnn_…`.
_FLOAT32_PRODUCT = re.compile(r"sgemm|scudnn|f32f32_f32f32_f32|convolve_sgemm")
_OTHERWISE = re.compile(r"tensorop|tf32|bf16")


def is_float32_product(kernel: str) -> bool:
    """Whether a kernel of NVIDIA's libraries multiplies float32 matrices (or convolves) without tensor cores."""
    return _FLOAT32_PRODUCT.search(kernel) is not None and _OTHERWISE.search(kernel) is None


_AUTOCAST = "Compute in mixed precision (`torch.autocast` with bfloat16)."
_WITHIN = "Autocast is on elsewhere (`{}`): compute these within it, too, unless they need all digits."
_REMEDY = (
    'Call `torch.set_float32_matmul_precision("high")` at the start, or compute in mixed precision '
    "(`torch.autocast` with bfloat16)."
)


def _remedy(trace: Trace) -> str:
    """What is not done already."""
    if type_ := product_type(trace):
        return _WITHIN.format(type_)
    return _AUTOCAST if has_faster_products(trace) else _REMEDY


def _find_float32_products(facts: Facts) -> Iterator[Finding]:
    trace, work = facts.trace, facts.work
    device, has_tensor_cores = _device(trace)
    if not facts.has_device or not has_tensor_cores:
        return
    rows = _products(facts)
    if not len(rows):
        return
    peak = peak_of(device)
    rate = 1 - peak.float32 / peak.best_for_float32 if peak else 0.5
    location = facts.work.location[rows]
    duration = by_line(location, facts.lines, work.duration_ns[rows])
    count = by_line(location[work.counts[rows]], facts.lines)
    # Where the device is behind the CPU, its work outlasts the window: then the wall time is all the device's.
    whole = int(work.duration_ns[facts.analysis.counted].sum())
    rate_of_wall = rate * min(1.0, facts.wall_ns * facts.devices / max(whole, 1))
    saving = (duration * rate_of_wall).astype(np.int64) // facts.devices
    for line in np.flatnonzero(saving >= FLOAT32_PRODUCTS.worth_ns(facts)).tolist():
        yield FLOAT32_PRODUCTS.finding(
            facts,
            location=line,
            message="float32 products run without tensor cores, which would do them in TF32 or bfloat16",
            evidence={
                "float32_products_ns": int(duration[line]),
                "kernels": int(count[line]),
                "faster_by": round(1 / (1 - rate), 1),
            },
            saving_ns=int(saving[line]),
            remedy=_remedy(trace) + framework_option(facts, FLOAT32_PRODUCTS.code),
        )


def _products(facts: Facts) -> Int64:
    trace, work = facts.trace, facts.work
    kernels = np.flatnonzero(facts.analysis.counted & (work.kind == Kind.KERNEL))
    names = trace.events.name[work.event[kernels]]
    table = np.zeros(len(trace.strings) + 1, np.bool_)
    for name in distinct(names, len(trace.strings)):
        table[name] = is_float32_product(trace.strings[name])
    return np.asarray(kernels[table[names]])


def _device(trace: Trace) -> tuple[str, bool]:
    """The device's name, and whether it is NVIDIA's Ampere or later."""
    listed = trace.metadata.get("deviceProperties")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    name = str(first.get("name") or trace.header.device.name)
    major = first.get("computeMajor")
    is_amd = "AMD" in name or "Instinct" in name or "Radeon" in name
    if is_amd:
        return name, False
    if isinstance(major, int):
        return name, major >= AMPERE
    peak = peak_of(name)
    return name, peak is not None and peak.bfloat16 is not None


FLOAT32_PRODUCTS = Rule(
    "DS006",
    "float32 products without tensor cores",
    _find_float32_products,
    shortens_work=True,
    measured_on=("device",),
)


_SHARE = 0.5
"""Of the time: half of the bytes, and on CPUs half of the arithmetic; GPUs may save more."""


def _find_double_precision(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.double:
        double_ns = both_passes_ns(facts, one)
        saving_ns = int(_SHARE * double_ns)
        elsewhere = f" and goes on at {one.lines - 1} more line{'s' * (one.lines > 2)}" if one.lines > 1 else ""
        yield from DOUBLE_PRECISION.found_at(
            facts,
            one.place,
            takes_ns=saving_ns,
            message=f"work with float64, 64 bits a number, begins here{elsewhere}",
            evidence={
                "double_ns": double_ns,
                "operators_per_step": sum(use.unused for use in (*one.operators, *one.backward)),
                "result_bytes_per_step": one.result_bytes,
            },
            remedy="Unless the precision is meant: make the data float32 where it comes from (NumPy's is float64): "
            "`torch.from_numpy(a).float()`, `torch.tensor(a, dtype=torch.float32)`; and take `.double()` and "
            "`set_default_dtype(torch.float64)` away.",
        )


DOUBLE_PRECISION = Rule(
    "DS036", "Computed with 64 bits", _find_double_precision, shortens_work=True, measured_on=("cpu",)
)


_AGAIN = (
    "Enter `torch.autocast` once, around all that uses them: it keeps each cast until the outermost region ends, and "
    "a region for each call forgets it."
)
_FROZEN = (
    "They are not trained, so that autocast keeps no cast of them: convert them once (`module.to(torch.bfloat16)`), "
    "as they are used in that type alone."
)


@dataclass(frozen=True, slots=True)
class _Casts:
    """Casts of parameters in forward passes; arrays of shape (k,)."""

    event: Int64
    """The `aten::to`, ascending."""
    backward: Int64
    """The engine's span of the cast's node, -1 where it has none."""
    needless: Int64
    """Its share that is needless, in a million."""
    trained: Mask
    """Whether a gradient reaches the parameter."""


def _find_repeated_casts(facts: Facts) -> Iterator[Finding]:
    casts = _casts(facts)
    if not len(casts.event):
        return
    spent = facts.cost_ns(casts.event)
    with_backward = casts.backward >= 0
    roots = casts.backward[with_backward]
    order = np.argsort(roots)
    behind = np.zeros(len(roots), np.int64)
    behind[order] = facts.cost_ns(roots[order])
    spent[with_backward] += behind
    location = facts.attribution.owners.location[casts.event]
    casting = by_line(location, facts.lines, spent)
    saving = by_line(location, facts.lines, spent * casts.needless // 1_000_000)
    count = by_line(location, facts.lines)
    frozen = by_line(location, facts.lines, np.where(casts.trained, 0, spent))
    for line in np.flatnonzero(saving >= REPEATED_CASTS.worth_ns(facts)).tolist():
        is_frozen = 2 * int(frozen[line]) > int(casting[line])
        here = casts.event[(location == (line if line < facts.lines else -1)) & ~casts.trained]
        module, option = in_modules(facts, REPEATED_CASTS.code, here if is_frozen else here[:0])
        yield REPEATED_CASTS.finding(
            facts,
            location=line,
            message="the same parameters are cast to a lower precision over and over" + module,
            evidence={
                "casting_ns": int(casting[line]),
                **facts.counted("casts", int(count[line])),
            },
            saving_ns=int(saving[line]),
            remedy=(_FROZEN if is_frozen else _AGAIN) + option,
        )


def _casts(facts: Facts) -> _Casts:
    """The casts of parameters, with what of each is needless.

    A parameter need be cast once a backward pass if it is trained, and never if it is not. Casts at the same place of
    a module (without modules: of a line) are of one parameter.
    """
    events, calls = facts.trace.events, facts.attribution.calls
    found, index, count = _of_autocast(facts)
    backward, gathered = _nodes(facts, found)
    modules, location = facts.analysis.modules, facts.attribution.owners.location
    inside = modules.of_event[found]
    place = np.where(inside >= 0, facts.lines + 1 + pick(modules.module, inside), location[found] + 1)
    _, group = distinct_places((place * 4 + np.minimum(count, 3)) * 4 + np.minimum(index, 3))
    trained = np.zeros(int(group.max(initial=-1)) + 1, np.bool_)
    trained[group[gathered]] = True
    # Of input, weight and bias the weight is the second, whichever way the compiler goes through arguments. Of two
    # casts one at least is a parameter's, it may be the cheaper one. Outside modules only a gradient tells.
    of_weight = (count == 3) & (index == 1)
    is_parameter = trained[group] | ((of_weight | _cheaper_of_two(facts, found, trained[group], count)) & (inside >= 0))
    # What is computed again in the backward pass is cast again, and cannot help it.
    keep = is_parameter & ~calls.backward[found] & facts.analysis.extent.holds(events.start_ns[found])
    order = np.flatnonzero(keep)[np.argsort(found[keep])]
    found, group, backward = found[order], group[order], backward[order]
    times = np.bincount(group, minlength=len(trained))[group]
    once = np.where(trained[group], np.minimum(_turns(facts), times), 0)
    needless = (times - once) * 1_000_000 // np.maximum(times, 1)
    return _Casts(found, backward, needless, trained[group])


def _cheaper_of_two(facts: Facts, found: Int64, trained: Mask, count: Int64) -> Mask:
    """Of each operator with two casts, neither of which a gradient reaches, the shorter one; shape of `found`."""
    result = np.zeros(len(found), np.bool_)
    first = np.flatnonzero(count == 2)[::2]
    first = first[~trained[first] & ~trained[first + 1]]
    lengths = facts.trace.events.duration_ns[found]
    result[np.where(lengths[first] <= lengths[first + 1], first, first + 1)] = True
    return result


def _of_autocast(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """Casts that autocast makes before an operator: event, which of that operator's casts it is, and how many it has.

    Autocast's version of an operator casts what it is given, then calls the operator again by the same name. Those of
    one operator stand together, in the order of time.
    """
    operators, events = facts.attribution.operators, facts.trace.events
    name = events.name[operators.nodes]
    called = operators.caller >= 0
    again = np.zeros(len(operators.nodes), np.bool_)
    same = np.flatnonzero(called & (name == name[operators.caller]))
    again[operators.caller[same]] = True
    to = operators.around[facts.operators_named("aten::to")]
    copies = named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), "aten::_to_copy".__eq__)[operators.nodes]
    casting = np.zeros(len(operators.nodes), np.bool_)
    casting[operators.caller[np.flatnonzero(copies & called)]] = True
    caller = operators.caller[to]
    to = to[casting[to] & (caller >= 0) & again[caller] & _has_parameters(facts)[operators.caller[to]]]
    caller = operators.caller[to]
    order = np.lexsort((events.start_ns[operators.nodes[to]], caller))
    to, caller = to[order], caller[order]
    _, which = distinct_places(caller)
    count = np.bincount(which, minlength=1)[which]
    first = np.searchsorted(which, which)
    index = np.arange(len(which)) - first
    return operators.nodes[to], index, count


_WITH_PARAMETERS = frozenset(
    f"aten::{name}"
    for name in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
)


def _has_parameters(facts: Facts) -> Mask:
    """Which operators (positions) take an input, a weight and perhaps a bias."""
    which = named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), _WITH_PARAMETERS.__contains__)
    return np.asarray(which[facts.attribution.operators.nodes])


def _nodes(facts: Facts, casts: Int64) -> tuple[Int64, Mask]:
    """The engine's span of each cast's node (-1 for none), and whether the next one gathers the gradient of a leaf."""
    trace, events, calls = facts.trace, facts.trace.events, facts.attribution.calls
    roots = facts.backward_nodes
    roots = roots[np.lexsort((events.start_ns[roots], events.thread[roots]))]
    casting, gathering = (
        named(trace, facts.marked(roots), partial(evaluates, node))[roots]
        for node in ("ToCopyBackward0", ACCUMULATES_GRADIENT)
    )
    leaf = np.append(gathering[1:], False)
    forward = pick(calls.up, roots)
    operators = facts.attribution.operators
    of_event = np.full(len(events) + 1, -1, np.int64)
    is_leaf = np.zeros(len(events) + 1, np.bool_)
    chosen = np.flatnonzero(casting & (forward >= 0))
    # The node's forward operator may be the copy that `aten::to` calls.
    around = operators.around[forward[chosen]]
    for _ in range(2):
        node = pick(operators.nodes, around)
        of_event[node], is_leaf[node] = roots[chosen], leaf[chosen]
        around = pick(operators.caller, around)
    return of_event[casts], is_leaf[casts]


def _turns(facts: Facts) -> int:
    """How often parameters change, for all that the trace says, or a backward pass ends what autocast keeps."""
    trace, events = facts.trace, facts.trace.events
    steps = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION), stepped_optimizer))
    inside = int(facts.analysis.extent.holds(events.start_ns[steps]).sum())
    backward = int(facts.analysis.phases.calls(facts.analysis.extent)[PHASES.index("backward")])
    return max(inside or facts.steps, backward, 1)


REPEATED_CASTS = Rule(
    "DS018", "Parameters cast over and over", _find_repeated_casts, shortens_work=True, measured_on=("cpu", "device")
)
