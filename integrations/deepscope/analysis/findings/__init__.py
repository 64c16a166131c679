"""Rules that turn numbers into advice, each a pure function of an analysis (docs/findings)."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.findings import (
    backward_passes,
    cheaper_operators,
    collectives,
    convolutions,
    data_loader,
    device_waits,
    embeddings,
    gradients,
    graph_breaks,
    launches,
    machine,
    memory,
    monitoring,
    needless_tensors,
    optimizer,
    precision,
    python_lines,
    same_work,
    sliced_calls,
    tiny_operators,
    unfused_attention,
    unused_results,
    value_checks,
)
from deepscope.analysis.findings.facts import Facts
from deepscope.records import Finding
from deepscope.records.profile import by_saving

__all__ = ["RULES", "find_all"]

RULES = (
    device_waits.DEVICE_SYNC,
    device_waits.HOST_COPIES,
    data_loader.DATA_LOADER,
    launches.TINY_KERNELS,
    launches.IDLE_DEVICE,
    precision.FLOAT32_PRODUCTS,
    tiny_operators.RULE,
    memory.RULE,
    optimizer.ZEROED_GRADIENTS,
    unfused_attention.RULE,
    optimizer.UNFUSED_OPTIMIZER,
    python_lines.RULE,
    collectives.EXPOSED_COLLECTIVES,
    collectives.SMALL_COLLECTIVES,
    collectives.REDUCED_EACH_PASS,
    convolutions.LAYOUT_CONVERSIONS,
    precision.REPEATED_CASTS,
    monitoring.LOGGING_LINES,
    graph_breaks.RULE,
    data_loader.WORKER_RESTARTS,
    value_checks.ANOMALY_DETECTION,
    convolutions.CHANGING_SHAPES,
    device_waits.CLIPPING,
    monitoring.SANITY_CHECK,
    launches.RULE,
    machine.DISK_QUEUE,
    machine.NUMA_PLACEMENT,
    machine.CPU_QUOTA,
    memory.KEPT_ACTIVATIONS,
    memory.STALE_GRADIENTS,
    gradients.UNUSED_GRADIENTS,
    sliced_calls.RULE,
    same_work.RULE,
    precision.DOUBLE_PRECISION,
    unused_results.RULE,
    gradients.UNUSED_GRAPHS,
    machine.MANY_THREADS,
    embeddings.WHOLE_TABLES,
    embeddings.PADDED_BATCHES,
    gradients.KEPT_GRAPHS,
    needless_tensors.BROADCASTS,
    needless_tensors.NEEDLESS_COPIES,
    backward_passes.RULE,
    sliced_calls.ALIKE_MODULES,
    cheaper_operators.RULE,
    value_checks.DISTRIBUTION_CHECKS,
)
"""By code."""


def find_all(analysis: Analysis, *, serving_steps: int = 0) -> list[Finding]:
    """Everything that the rules find, the largest saving first; `serving_steps` are those of a server of models."""
    facts = Facts(analysis, serving_steps)
    found = [one for rule in RULES for one in rule.found(facts)] if facts.wall_ns else []
    return sorted(found, key=by_saving)
