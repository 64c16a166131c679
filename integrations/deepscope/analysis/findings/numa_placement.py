"""DS028: the process may run only far from its GPU, or has its memory there."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.trace.format.counters import MemoryNode

FAR_SHARE = 0.9
"""Of the process's memory must be on other nodes."""
LEAST_BYTES = 1 << 30
"""Of memory: the libraries of a process may lie on any node, and are of no account."""
NEAR = 15
"""A distance below it is within a socket: firmware tells 11 or 12 for its parts, and 20 or more for another socket."""


def _find(facts: Facts) -> Iterator[Finding]:
    account = facts.trace.header.counters
    if account is None or not facts.has_device or len(account.nodes) < 2:
        return
    homes = {device.numa_node for device in account.devices}
    home = homes.pop() if len(homes) == 1 else -1  # devices on several nodes: no place is right for all of them
    here = next((node for node in account.nodes if node.node == home), None)
    if here is None or not here.cpus:
        return
    far = [node for at, node in enumerate(account.nodes) if node is not here and not _is_near(here, at)]
    near = [node for node in account.nodes if node not in far]
    far_bytes = sum(node.process_bytes for node in far)
    all_bytes = sum(node.process_bytes for node in account.nodes)
    is_bound_away = not any(node.allowed_cpus for node in near) and any(node.allowed_cpus for node in far)
    is_far = far_bytes >= max(LEAST_BYTES, FAR_SHARE * all_bytes)
    if not is_bound_away and not is_far:
        return
    evidence: Evidence = {
        "device": ", ".join(device.series for device in account.devices),
        "device_node": str(home),
        "allowed_nodes": ", ".join(str(node.node) for node in account.nodes if node.allowed_cpus),
    }
    if all_bytes:
        evidence["far_memory_ratio"] = round(far_bytes / all_bytes, 3)
    yield RULE.finding(
        facts,
        location=-1,
        message=_message(home, far, is_bound_away=is_bound_away),
        evidence=evidence,
        saving_ns=0,
        remedy=f"Start the process on the device's node: numactl --cpunodebind={home} --membind={home} python …, "
        "torchrun --numa-binding=node (torch 2.9), or the scheduler's own binding (Slurm: --gpu-bind=closest).",
        severity="info" if is_bound_away else "hint",
    )


def _is_near(here: MemoryNode, at: int) -> bool:
    """Whether the node in this place lies in the same socket; not known is no."""
    return at < len(here.distances) and here.distances[at] < NEAR


def _message(home: int, far: list[MemoryNode], *, is_bound_away: bool) -> str:
    if is_bound_away:
        allowed = ", ".join(str(node.node) for node in far if node.allowed_cpus)
        return f"the process may run on NUMA node {allowed} alone, and its device hangs on node {home}"
    return f"nearly all memory of the process is on another NUMA node than its device, which hangs on node {home}"


RULE = Rule("DS028", "Process on the wrong NUMA node", _find)
