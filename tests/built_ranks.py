"""Ranks side by side whose numbers are chosen: four of them full of everything, and a thousand."""

from __future__ import annotations

from deepscope.ranks.ranks_report import (
    CollectiveRow,
    DomainRow,
    Failure,
    GroupRow,
    LinkRow,
    PairRow,
    RankClock,
    RankFigure,
    RankRow,
    RanksReport,
    Straggler,
    VaryingLine,
    VaryingRow,
)
from deepscope.ranks.straggler_finding import clause
from deepscope.records import Finding, Remedy

__all__ = ["four", "row", "thousand"]

US, MS, MIB = 10**3, 10**6, 1 << 20
LATE = "Rank 2 comes last to 112 of 120 collectives, 38.0ms a step after the median of the others."
PARTS = ["kernel", "memcpy", "memset", "communication", "runtime", "data loader", "CPU", "other"]


def row(rank: int, own_ms: float = 80, communication_ms: float = 40, **changed: object) -> RankRow:
    """A rank with this much of its own in a step."""
    own, communication = round(own_ms * MS), round(communication_ms * MS)
    other = own * 3 // 4
    parts = dict.fromkeys(PARTS, 0) | {"kernel": own - other, "communication": communication, "CPU": other}
    numbers: dict[str, object] = {
        "host": f"node{rank // 8}", "device": "NVIDIA H100 80GB HBM3", "path": f"/runs/big/rank{rank}.pt.trace.json.gz",
        "steps": 4, "step_ns": own + communication, "own_ns": own, "parts": parts, "compute_ns": own - 10 * MS,
        "communication_ns": communication + 5 * MS, "exposed_ns": communication, "overlapped_ns": 5 * MS,
        "idle_ns": 6 * MS, "data_ns": 2 * MS, "sync_ns": 400 * US, "peak_bytes": 30 << 30,
        "waited_ns": max(round((120 - own_ms) * MS) // 2, 0), "last": 0, "matched": 120,
    }  # fmt: skip
    return RankRow(rank=rank, **(numbers | changed))  # type: ignore[arg-type]


def four() -> RanksReport:
    """Rank 2 is late by one line; every table has rows."""
    rows = [
        row(0, 80, 40),
        row(1, 82, 38, last=5),
        row(2, 118, 2, last=112, waited_ns=MS, host="node1"),
        row(3, 79, 41, last=3, host="node1"),
    ]
    return RanksReport(
        path="/runs/big",
        project_root="/home/me/project",
        world_size=6,
        missing="4-5",
        failures=[
            Failure(path="/runs/big/rank4.pt.trace.json.gz", rank=4,
                    message="/runs/big/rank4.pt.trace.json.gz: ends in the middle of event 81,204"),
        ],
        ranks=rows,
        part_names=PARTS,
        slowest=[2, 1, 0, 3],
        clocks=[
            RankClock(rank=0, offset_ns=0, residual_ns=0, calls=120),
            RankClock(rank=1, offset_ns=-1_204 * US, residual_ns=3_200, calls=120),
            RankClock(rank=2, offset_ns=88 * MS, residual_ns=5_100, calls=120),
            RankClock(rank=3),
        ],
        groups=[
            GroupRow(name="0", description="default_pg", role="world", ranks="0-5", size=6, here=4, calls=480,
                     time_ns=400 * MS, exposed_ns=300 * MS, bytes=900 * MIB, wait_ns=250 * MS),
            GroupRow(name="1", description="tp", role="tensor", ranks="0-1", size=2, here=2, calls=80,
                     time_ns=60 * MS, exposed_ns=10 * MS, bytes=90 * MIB, wait_ns=5 * MS),
            GroupRow(name="3", description="pp", role="pipeline", ranks="1-2", size=2, here=2, calls=16,
                     time_ns=8 * MS, exposed_ns=8 * MS, bytes=64 * MIB),
        ],
        domains=[
            DomainRow(domain="dp", role="data", group="2017209321082550496", ranks="0, 2", size=2, here=2,
                      kind="all_reduce", calls=40, elapsed_ns=200 * MS, transit_ns=80 * MS, wait_ns=118 * MS,
                      synchronization_ns=110 * MS, idle_ns=2 * MS, awaited_rank=2),
            DomainRow(domain="tp", role="tensor", group="1885577914565411887", ranks="0-1", size=2, here=1,
                      kind="all_gather", calls=80, elapsed_ns=20 * MS, transit_ns=20 * MS),
        ],
        links=[
            LinkRow(source=0, target=2, transport="RDMA", domains=["dp", "pp"], bytes=900 * 10**6, time_ns=400 * MS,
                    bytes_per_s=2_250_000_000, typical_bytes_per_s=9_000_000_000),
            LinkRow(source=0, target=1, transport="HCCS", domains=["tp"], bytes=900 * 10**6, time_ns=50 * MS,
                    bytes_per_s=18_000_000_000, typical_bytes_per_s=18_000_000_000),
        ],
        collectives=[
            CollectiveRow(kind="all_reduce", library="nccl", group="0", group_ranks="0-5", role="world",
                          dtype="bfloat16", size_class_bytes=32 * MIB, on_device=True, ranks=4, calls=96,
                          matched=96, by_sequence=True,
                          bytes=96 * 25 * MIB, time_ns=380 * MS, transfer_ns=30 * MS, wait_ns=250 * MS,
                          spread_ns=9 * MS, max_spread_ns=31 * MS, bus_bytes_per_s=128 * 10**9,
                          last_rank=2, last_calls=90),
            CollectiveRow(kind="reduce_scatter", library="nccl", group="1", group_ranks="0-1", role="tensor",
                          dtype="bfloat16", size_class_bytes=4 * MIB, on_device=True, ranks=2, calls=24, matched=24,
                          bytes=24 * 3 * MIB, time_ns=60 * MS, transfer_ns=25 * MS, wait_ns=5 * MS, spread_ns=200 * US,
                          max_spread_ns=900 * US, bus_bytes_per_s=40 * 10**9, last_rank=1, last_calls=13),
            CollectiveRow(kind="barrier", library="gloo", group="0", group_ranks="0-5", ranks=4, calls=1, time_ns=MS),
        ],
        pairs=[
            PairRow(source=1, target=2, messages=8, bytes=64 * MIB, time_ns=6 * MS, transfer_ns=5 * MS,
                    bytes_per_s=64 * MIB * 200),
            PairRow(source=2, target=1, messages=8, bytes=64 * MIB, time_ns=2 * MS, bytes_per_s=64 * MIB * 500),
        ],
        stragglers=[
            Straggler(
                rank=2, late_calls=112, calls=120, excess_ns=38 * MS, held_ns=110 * MS, cause="work",
                figures=[
                    RankFigure(label="calls of aten::mm", kind="count", value=640, typical=480),
                    RankFigure(label="time of a call", kind="time", value=52 * US, typical=51 * US),
                ],
                part="CPU", part_ns=28 * MS, file="/home/me/project/train.py", line=14, function="augment",
                text="batch = torch.relu(batch @ noise)", line_ns=36 * MS,
                message=LATE,
            ),
        ],
        varying=[
            VaryingRow(kind="operator", name="aten::mm", median_ns=24 * MS, min_ns=23 * MS, min_rank=3, max_ns=58 * MS,
                       max_rank=2, calls_differ=True),
            VaryingRow(kind="kernel", name="void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)",
                       median_ns=12 * MS, min_ns=11 * MS, min_rank=0, max_ns=14 * MS, max_rank=1),
        ],
        lines=[
            VaryingLine(file="/home/me/project/train.py", line=14, function="augment", median_ns=MS, min_ns=0,
                        min_rank=1, max_ns=37 * MS, max_rank=2),
        ],
        findings=[
            Finding(code="DS032", title="A rank that the others wait for", severity="warning",
                    file="/home/me/project/train.py", line=14, saving_ns=152 * MS, doc="docs/findings/DS032.md",
                    message=clause(LATE), evidence={}, remedy=Remedy("give each rank the same work")),
        ],
    )  # fmt: skip


def thousand(count: int = 1024) -> RanksReport:
    """So many ranks on hosts of eight; ranks 17 and 900 are late, rank 5 has less to do."""
    own = {17: 140.0, 900: 105.0, 5: 60.0}
    rows = [row(rank, own.get(rank, 80 + rank % 7 * 0.3), 40) for rank in range(count)]
    slowest = sorted(rows, key=lambda one: (-one.own_ns, one.rank))[:5]
    return RanksReport(
        path="/runs/huge",
        world_size=count,
        ranks=rows,
        part_names=PARTS,
        slowest=[one.rank for one in slowest],
        clocks=[
            RankClock(rank=rank, offset_ns=rank * US, residual_ns=rank % 97 * 100, calls=40) for rank in range(count)
        ],
        groups=[
            GroupRow(name=str(host), description=f"tp_{host}", role="tensor", ranks=f"{8 * host}-{8 * host + 7}",
                     size=8, here=8, calls=96, time_ns=(200 - host) * MS, exposed_ns=20 * MS,
                     bytes=90 * MIB, wait_ns=MS)
            for host in range(count // 8)
        ],
        pairs=[
            PairRow(source=rank, target=rank + 8, messages=8, bytes=64 * MIB, time_ns=(2000 - rank) * US,
                    bytes_per_s=64 * MIB * 10**6 // (2000 - rank))
            for rank in range(count - 8)
        ],
        stragglers=[
            Straggler(rank=17, late_calls=38, calls=40, excess_ns=59 * MS, held_ns=1023 * 59 * MS, cause="hardware",
                      part="kernel", part_ns=50 * MS),
            Straggler(rank=900, late_calls=2, calls=40, excess_ns=24 * MS, held_ns=MS, part="other", part_ns=20 * MS),
        ],
    )  # fmt: skip
