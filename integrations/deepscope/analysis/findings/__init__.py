"""Rules that turn numbers into advice, each a pure function of an analysis (docs/findings)."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.findings import (
    anomaly_detection,
    beside_training,
    changing_shapes,
    clipping,
    data_loader,
    device_clock,
    device_sync,
    double_precision,
    exposed_collectives,
    float32_products,
    graph_breaks,
    host_copies,
    launches,
    layout_conversions,
    machine,
    memory,
    needless_gradients,
    needless_work,
    optimizer,
    python_lines,
    recomputation,
    reduced_each_pass,
    repeated_casts,
    sliced_calls,
    small_collectives,
    tiny_operators,
    unfused_attention,
    worker_restarts,
)
from deepscope.analysis.findings.facts import Facts
from deepscope.records import Finding

__all__ = ["RULES", "find_all"]

RULES = (
    device_sync.RULE,
    host_copies.RULE,
    data_loader.RULE,
    launches.TINY_KERNELS,
    launches.IDLE_DEVICE,
    float32_products.RULE,
    tiny_operators.RULE,
    recomputation.RULE,
    optimizer.ZEROED_GRADIENTS,
    unfused_attention.RULE,
    optimizer.UNFUSED_OPTIMIZER,
    python_lines.RULE,
    exposed_collectives.RULE,
    small_collectives.RULE,
    reduced_each_pass.RULE,
    layout_conversions.RULE,
    repeated_casts.RULE,
    beside_training.LOGGING_LINES,
    graph_breaks.RULE,
    worker_restarts.RULE,
    anomaly_detection.RULE,
    changing_shapes.RULE,
    clipping.RULE,
    beside_training.SANITY_CHECK,
    device_clock.RULE,
    machine.DISK_QUEUE,
    machine.NUMA_PLACEMENT,
    machine.CPU_QUOTA,
    memory.KEPT_ACTIVATIONS,
    memory.STALE_GRADIENTS,
    needless_gradients.UNUSED_GRADIENTS,
    sliced_calls.RULE,
    needless_work.SAME_WORK,
    double_precision.RULE,
    needless_work.UNUSED_RESULTS,
    needless_gradients.UNUSED_GRAPHS,
    machine.MANY_THREADS,
    needless_gradients.TABLE_GRADIENTS,
    needless_work.PADDED_BATCHES,
    needless_gradients.KEPT_GRAPHS,
    needless_work.BROADCASTS,
    needless_work.NEEDLESS_COPIES,
)
"""By code."""


def find_all(analysis: Analysis) -> list[Finding]:
    """Everything that the rules find, the largest saving first."""
    facts = Facts(analysis)
    found = [one for rule in RULES for one in rule.found(facts)] if facts.wall_ns else []
    return sorted(found, key=lambda one: (-one.saving_ns, one.code, one.file, one.line))
