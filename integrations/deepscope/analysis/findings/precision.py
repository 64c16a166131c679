"""Numbers that are wider than they need to be (DS006, DS036)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import by_line, distinct
from deepscope.analysis.findings.audited_work import audit_of, both_passes_ns, found_at
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option, has_faster_products, product_type
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.peaks import peak_of
from deepscope.records import Finding
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
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
    for line in np.flatnonzero(saving >= max(WORTH * facts.wall_ns, 1)).tolist():
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
    for one in audit_of(facts).double:
        double_ns = both_passes_ns(facts, one.operators, one.backward)
        saving_ns = int(_SHARE * double_ns)
        elsewhere = f" and goes on at {one.lines - 1} more line{'s' * (one.lines > 2)}" if one.lines > 1 else ""
        yield from found_at(
            one.place,
            DOUBLE_PRECISION,
            facts,
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
