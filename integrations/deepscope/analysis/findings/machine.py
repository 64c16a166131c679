"""What the machine holds a run up by: quotas, cores, sockets, disks (DS027, 028, 029, 039)."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.tables.counters import Level
from deepscope.records import Evidence, Finding
from deepscope.records.findings import severity_of
from deepscope.trace.format.counters import MemoryNode

LEAST_PERIODS = 10
"""That must have passed in the window: a second, as containers have it."""
LEAST_SHARE = 0.1
"""Of the periods the process must have been stopped in."""


def _find_cpu_quota(facts: Facts) -> Iterator[Finding]:
    account = facts.trace.header.counters
    periods = facts.levels.get(("container periods", "all"))
    stopped = facts.levels.get(("container periods", "throttled"))
    if account is None or periods is None or stopped is None or not account.container.cpus:
        return
    window = facts.analysis.window
    passed, stops = _count(periods, window), _count(stopped, window)
    if passed < LEAST_PERIODS or stops < LEAST_SHARE * passed:
        return
    share = min(stops / passed, 1.0)
    quota = account.container.cpus
    evidence: Evidence = {
        "quota_cpus": quota,
        "machine_cpus": float(account.cores),
        "stopped_ratio": round(share, 3),
        "periods": round(passed, 1),
    }
    used = facts.levels.get(("container CPU", "used"))
    if used is not None:
        evidence["used_cpus"] = round(_count(used, window) / max(_seconds(used, window), 1e-9) / 100, 2)
    settings = facts.trace.header.settings
    threads = settings.threads if settings is not None else 0
    if threads:
        evidence["torch_threads"] = float(threads)
    # In a period in which it was stopped it was so for a part of it, which is not known: at most all of it.
    saving = share * facts.wall_ns
    if facts.has_device:
        saving = min(saving, facts.idle_ns)
    fewer = (
        f"torch.set_num_threads({max(int(quota), 1)}) and fewer loader workers" if threads > quota else "Fewer threads"
    )
    yield CPU_QUOTA.finding(
        facts,
        location=-1,
        message=f"the container's CPU quota, {quota:g} cores, stops the process in {share:.0%} of the periods",
        evidence=evidence,
        saving_ns=int(saving),
        remedy=f"Ask for more CPU (Kubernetes: resources.limits.cpu; Docker: --cpus). {fewer} share the quota without "
        "being stopped: many threads use it up at the beginning of each period.",
    )


def _count(level: Level, window: Intervals) -> float:
    """What a rate sums to in the window."""
    parts = level.within(window.start, window.end)
    return float((parts.mean * parts.covered_ns).sum() / 1e9)


def _seconds(level: Level, window: Intervals) -> float:
    return float(level.within(window.start, window.end).covered_ns.sum() / 1e9)


CPU_QUOTA = Rule("DS029", "CPU quota of the container", _find_cpu_quota)


LEAST_WAIT = 0.15
"""Of the time in which the process's threads could run they must have waited for a core."""


def _find_many_threads(facts: Facts) -> Iterator[Finding]:
    machine, settings = facts.trace.header.machine, facts.trace.header.settings
    if machine is None or settings is None or not machine.cores:
        return
    waited = machine.core_wait_ratio or 0.0
    free = facts.free_cores
    if waited < LEAST_WAIT or settings.threads <= free:
        return
    saving_ns = waited * facts.wall_ns
    if facts.has_device:
        saving_ns = min(saving_ns, facts.idle_ns)
    others = machine.others_cores or 0.0
    evidence: Evidence = {
        "threads": settings.threads,
        "cores": machine.cores,
        "others_cores": others,
        "core_wait_ratio": waited,
    }
    yield MANY_THREADS.finding(
        facts,
        location=-1,
        message=f"each operator of the CPU runs on {settings.threads} threads, and {_cores(free)} free: "
        f"the process waits for a core {waited:.0%} of the time that it could run",
        evidence=evidence,
        saving_ns=int(saving_ns),
        remedy=f"`torch.set_num_threads({free})`, or `OMP_NUM_THREADS={free}` for the whole process. Threads that wait "
        f"for each other keep cores busy; loader workers and other ranks need cores of their own{_used(others)}.",
        is_bound=True,
    )


def _cores(count: int) -> str:
    return "1 core is" if count == 1 else f"{count} cores are"


def _used(others: float) -> str:
    return f" (other processes used {others:.1f})" if others >= 0.1 else ""


MANY_THREADS = Rule("DS039", "More threads than free cores", _find_many_threads)


FAR_SHARE = 0.9
"""Of the process's memory must be on other nodes."""
LEAST_BYTES = 1 << 30
"""Of memory: the libraries of a process may lie on any node, and are of no account."""
NEAR = 15
"""A distance below it is within a socket: firmware tells 11 or 12 for its parts, and 20 or more for another socket."""


def _find_numa_placement(facts: Facts) -> Iterator[Finding]:
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
    yield NUMA_PLACEMENT.finding(
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


NUMA_PLACEMENT = Rule("DS028", "Process on the wrong NUMA node", _find_numa_placement)


LEAST_NS = 300_000_000
"""Of loading must have been sampled."""
LEAST_SAMPLES = 5
BUSY = 90.0
"""Percent of the time in which the disk has a request."""
QUEUE = 4.0
"""Requests at the disk at a time: with fewer, more readers would still get more out of it."""
SLOW_NS = 2_000_000
"""Time of a request, waiting in the queue included: a flash disk serves many at a time, and one that is far from its
limit answers each in a tenth of that."""


def _find_disk_queue(facts: Facts) -> Iterator[Finding]:
    loading = facts.loading
    if not len(loading.start) or facts.loading_ns < DISK_QUEUE.worth_ns(facts):
        return
    found = []
    for (counter, disk), level in facts.levels.items():
        queue = facts.levels.get(("disk queue", disk))
        if counter != "disk busy" or queue is None or facts.samples(level) < LEAST_SAMPLES:
            continue
        busy, covered_ns = _mean(facts, level)
        depth, _ = _mean(facts, queue)
        request_ns = _request_ns(facts, disk, depth)
        is_slow = request_ns is None or request_ns >= SLOW_NS
        if covered_ns >= LEAST_NS and busy >= BUSY and depth >= QUEUE and is_slow:
            found.append((depth, disk, busy, request_ns))
    if not found:
        return
    depth, disk, busy, request_ns = max(found, key=lambda one: one[:2])
    evidence: Evidence = {
        "disk": disk,
        "busy_ratio": round(busy / 100, 3),
        "queue": round(depth, 1),
        "loading_ns": facts.loading_ns,
    }
    if request_ns is not None:
        evidence["request_us"] = round(request_ns / 1000, 1)
    for counter, name in (("disk read", "read_bytes_per_s"), ("disk written", "written_bytes_per_s")):
        if (rate := facts.levels.get((counter, disk))) is not None:
            evidence[name] = round(_mean(facts, rate)[0], 1)
    by_line = facts.by_line_of_cpu(loading)
    yield DISK_QUEUE.finding(
        facts,
        location=int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message=f"while data is awaited, disk {disk} is busy {busy:.0f}% of the time, with {depth:.0f} requests at it",
        evidence=evidence,
        saving_ns=0,  # what could be saved DS003 says
        remedy="More loader workers make the queue longer and nothing faster. Read less, or in larger pieces (shards "
        "in place of single files, smaller formats, a cache in memory), or put the data on a faster disk.",
        severity=severity_of(facts.loading_ns, facts.wall_ns),
    )


def _request_ns(facts: Facts, disk: str, depth: float) -> float | None:
    """How long a request took, by Little's law; None where requests were not counted or none was done."""
    requests = facts.levels.get(("disk requests", disk))
    rate = _mean(facts, requests)[0] if requests is not None else 0.0
    return depth / rate * 1e9 if rate > 0 else None


def _mean(facts: Facts, level: Level) -> tuple[float, int]:
    """The level while data is loaded, and how much of that time it is known."""
    parts = level.within(facts.loading.start, facts.loading.end)
    covered_ns = int(parts.covered_ns.sum())
    return float((parts.mean * parts.covered_ns).sum() / max(covered_ns, 1)), covered_ns


DISK_QUEUE = Rule("DS027", "Disk queue is full", _find_disk_queue, worth=0.05)
