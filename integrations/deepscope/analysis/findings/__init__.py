"""Rules that turn numbers into advice: one module a rule, each a pure function of an analysis (docs/findings)."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.findings import (
    anomaly_detection,
    broadcasts,
    changing_shapes,
    clipping,
    cpu_quota,
    data_loader,
    device_clock,
    device_sync,
    disk_queue,
    double_precision,
    exposed_collectives,
    float32_products,
    graph_breaks,
    host_copies,
    idle_device,
    kept_activations,
    kept_graphs,
    layout_conversions,
    logging_lines,
    many_threads,
    needless_copies,
    numa_placement,
    padded_batches,
    python_lines,
    recomputation,
    reduced_each_pass,
    repeated_casts,
    same_work,
    sanity_check,
    sliced_calls,
    small_collectives,
    stale_gradients,
    table_gradients,
    tiny_kernels,
    tiny_operators,
    unfused_attention,
    unfused_optimizer,
    unused_gradients,
    unused_graphs,
    unused_results,
    worker_restarts,
    zeroed_gradients,
)
from deepscope.analysis.findings.facts import Facts
from deepscope.records import Finding

__all__ = ["RULES", "find_all"]

RULES = (
    device_sync.RULE,
    host_copies.RULE,
    data_loader.RULE,
    tiny_kernels.RULE,
    idle_device.RULE,
    float32_products.RULE,
    tiny_operators.RULE,
    recomputation.RULE,
    zeroed_gradients.RULE,
    unfused_attention.RULE,
    unfused_optimizer.RULE,
    python_lines.RULE,
    exposed_collectives.RULE,
    small_collectives.RULE,
    reduced_each_pass.RULE,
    layout_conversions.RULE,
    repeated_casts.RULE,
    logging_lines.RULE,
    graph_breaks.RULE,
    worker_restarts.RULE,
    anomaly_detection.RULE,
    changing_shapes.RULE,
    clipping.RULE,
    sanity_check.RULE,
    device_clock.RULE,
    disk_queue.RULE,
    numa_placement.RULE,
    cpu_quota.RULE,
    kept_activations.RULE,
    stale_gradients.RULE,
    unused_gradients.RULE,
    sliced_calls.RULE,
    same_work.RULE,
    double_precision.RULE,
    unused_results.RULE,
    unused_graphs.RULE,
    many_threads.RULE,
    table_gradients.RULE,
    padded_batches.RULE,
    kept_graphs.RULE,
    broadcasts.RULE,
    needless_copies.RULE,
)
"""By code."""


def find_all(analysis: Analysis) -> list[Finding]:
    """Everything that the rules find, the largest saving first."""
    facts = Facts(analysis)
    found = [one for rule in RULES for one in rule.found(facts)] if facts.wall_ns else []
    return sorted(found, key=lambda one: (-one.saving_ns, one.code, one.file, one.line))
