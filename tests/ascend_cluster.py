"""Folders of a run on Ascend devices, as torch_npu's profiler and msprof-analyze write them, with known content.

Two nodes of two devices: tensor-parallel pairs (0, 1) and (2, 3), data-parallel pairs (0, 2) and (1, 3).
"""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["GROUPS", "STEP_COLUMNS", "key_of", "rank_folder", "write_cluster", "write_database", "write_output"]

STEP_COLUMNS = [
    "Device_id", "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage",
    "Bubble", "Communication(Not Overlapped and Exclude Receive)", "Preparing",
]  # fmt: skip
GROUPS = {"tp": [[0, 1], [2, 3]], "dp": [[0, 2], [1, 3]]}
START_US = 1_704_161_511_000_000


def key_of(name: str) -> str:
    """HCCL's number of a communicator, as msprof's hash_data.cpp makes it of 32-bit words."""
    words = []
    for prime in (29, 131):
        word = 0
        for byte in name.encode():
            word = (word * prime + byte) % 2**32
        words.append(word)
    return str(words[0] * 2**32 + words[1])


def comm_name(word: str, ranks: list[int]) -> str:
    return f"10.1.{ranks[0]}.{ranks[1]}%eth0_55000_0_17041615{word}"


def rank_folder(root: Path, rank: int, time: str = "20240102021151") -> Path:
    return root / f"node{rank // 2}_{4000 + rank}_{time}_ascend_pt"


def step_row(rank: int, step: int) -> list[Any]:
    """Rank 3 computes for longer, and all others wait for it."""
    computing, exposed = (9_000.5, 1_000.0) if rank == 3 else (6_000.25, 4_000.25)
    free = 500.125
    total = computing + exposed + free
    return [rank % 2, step, computing, exposed, 200.0, exposed + 200.0, free, total, 0, exposed, 300.0]


def times(rank: int, transit: float) -> dict[str, float]:
    wait = 0.1 if rank == 3 else 1.5
    return {
        "Start Timestamp(us)": START_US + 10.5,
        "Elapse Time(ms)": transit + wait + 0.05,
        "Transit Time(ms)": transit,
        "Wait Time(ms)": wait,
        "Synchronization Time(ms)": wait - 0.05,
        "Idle Time(ms)": 0.05,
        "Wait Time Ratio": 0.5,
        "Synchronization Time Ratio": 0.5,
    }


def communication(rank: int, steps: list[int]) -> dict[str, Any]:
    """`communication.json`: two all-reduces of the tensor-parallel group and one of the data-parallel one a step."""
    document = {}
    for step in steps:
        found = {}
        for word, count, transit in (("tp", 2, 1.0), ("dp", 1, 4.0)):
            key = key_of(comm_name(word, mine(word, rank)))
            for number in range(count):
                found[f"hcom_allReduce__{key[-3:]}_{step}_{number}@{key}"] = {
                    "Communication Time Info": times(rank, transit),
                    "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": 10.0, "Transit Time(ms)": transit}},
                }
        total = {"Communication Time Info": times(rank, 99.0), "Communication Bandwidth Info": {}}
        document[f"step{step}"] = {"p2p": {}, "collective": {**found, "Total Op Info": total}}
    return document


def mine(word: str, rank: int) -> list[int]:
    return next(ranks for ranks in GROUPS[word] if rank in ranks)


def link(word: str, rank: int) -> tuple[str, float]:
    """Transport and milliseconds of 10 MB: RDMA between nodes, and the link 1-3 is slow."""
    return ("HCCS", 0.5) if word == "tp" else ("RDMA", 4.0 if rank in (1, 3) else 1.0)


def matrix(rank: int, steps: list[int], *, new: bool = True) -> dict[str, Any]:
    """`communication_matrix.json`: links between places in the group."""
    document = {}
    for step in steps:
        found = {}
        for word in ("tp", "dp"):
            ranks = mine(word, rank)
            here = ranks.index(rank)
            transport, time = link(word, rank)
            links = {
                f"{here}-{here}": {"Transport Type": "LOCAL", "Transit Time(ms)": 0.02, "Transit Size(MB)": 10.0,
                                   "Bandwidth(GB/s)": 500.0},
                f"{here}-{1 - here}": {"Transport Type": transport, "Transit Time(ms)": time, "Transit Size(MB)": 10.0,
                                       "Bandwidth(GB/s)": 10.0 / time},
            }  # fmt: skip
            key = key_of(comm_name(word, ranks))
            if new:
                for part in ("total", "top1", "middle", "bottom1"):
                    found[f"allreduce-{part}@{key}"] = links
            else:
                found[f"hcom_allReduce__{key[-3:]}_{step}_0@{key}"] = links
        document[f"step{step}"] = {"p2p": {}, "collective": {**found, "Total Op Info": links}}
    return document


def metadata(rank: int) -> dict[str, Any]:
    groups: dict[str, Any] = {
        comm_name(word, mine(word, rank)): {
            "group_name": word, "group_rank": mine(word, rank).index(rank), "global_ranks": mine(word, rank)
        }
        for word in GROUPS
    }  # fmt: skip
    return {"parallel_group_info": groups, "distributed_args": {"rank": rank, "world_size": 4}}


def trace_view(rank: int, steps: list[int]) -> list[dict[str, Any]]:
    """A bare array whose times are texts; each step computes, then communicates, as `step_row` says."""
    host, device, overlap = 4376 + rank, 800, 4376751100
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": host, "tid": 0, "args": {"name": "Python"}},
        {"ph": "M", "name": "process_labels", "pid": host, "tid": 0, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "process_name", "pid": device, "tid": 0, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "process_labels", "pid": device, "tid": 0, "args": {"labels": f"NPU {rank % 2}"}},
        {"ph": "M", "name": "process_name", "pid": overlap, "tid": 0, "args": {"name": "Overlap Analysis"}},
        {"ph": "M", "name": "process_labels", "pid": overlap, "tid": 0, "args": {"labels": f"NPU {rank % 2}"}},
    ]
    at = START_US * 1.0
    for step in steps:
        _, _, computing, exposed, _, _, free, *_ = step_row(rank, step)
        length = computing + exposed + free

        def event(name: str, start: float, duration: float, pid: int, tid: int, **more: Any) -> None:
            events.append(
                {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{start:.3f}", "dur": duration, **more}
            )

        event(f"ProfilerStep#{step}", at, length, host, host, cat="cpu_op", args={"Sequence number": -1})
        event("aten::mm", at + 10, 50.0, host, host, cat="cpu_op", args={"Sequence number": -1, "Fwd thread id": 0})
        event("Node@launch", at + 20, 10.0, 43767502, host, args={"connection_id": step})
        events.append({"ph": "s", "bp": "e", "name": "torch_to_npu", "cat": "async_npu", "id": str(step), "pid": host,
                       "tid": host, "ts": f"{at + 10:.3f}"})  # fmt: skip
        events.append({"ph": "f", "bp": "e", "name": "torch_to_npu", "cat": "async_npu", "id": str(step), "pid": device,
                       "tid": 3, "ts": f"{at + free:.3f}"})  # fmt: skip
        event("MatMul", at + free, computing, device, 3, args={"Task Type": "AI_CORE", "Stream Id": 3})
        event("Free", at, free, overlap, 3)
        event("Computing", at + free, computing, overlap, 0)
        event("Communication(Not Overlapped)", at + free + computing, exposed, overlap, 2)
        at += length
    return events


def write_csv(path: Path, rows: list[list[Any]], columns: list[str]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def write_cluster(root: Path, *, ranks: tuple[int, ...] = (0, 1, 2, 3), traces: bool = True, tables: bool = True,
                  new: bool = True) -> Path:  # fmt: skip
    """A folder a rank."""
    steps = [7, 8]
    for rank in ranks:
        folder = rank_folder(root, rank)
        output = folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (folder / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank, "config": {}}))
        (folder / "profiler_metadata.json").write_text(json.dumps(metadata(rank)))
        if traces:
            (output / "trace_view.json").write_text(json.dumps(trace_view(rank, steps)))
        if tables:
            write_csv(output / "step_trace_time.csv", [step_row(rank, step) for step in steps], STEP_COLUMNS)
            (output / "communication.json").write_text(json.dumps(communication(rank, steps)))
            (output / "communication_matrix.json").write_text(json.dumps(matrix(rank, steps, new=new)))
    return root


def write_database(root: Path) -> Path:
    """The same with databases in place of text."""
    write_cluster(root, traces=False, tables=False)
    for rank in range(4):
        path = rank_folder(root, rank) / "ASCEND_PROFILER_OUTPUT" / "analysis.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(
                "create table StepTraceTime (step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC,"
                " overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC,"
                " communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC)"
            )
            rows = [[str(step), *step_row(rank, step)[2:]] for step in (7, 8)]
            database.executemany(f"insert into StepTraceTime values ({','.join('?' * 10)})", rows)
            database.execute(
                "create table CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC,"
                " elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC,"
                " idle_time NUMERIC, step TEXT, type TEXT)"
            )
            database.execute(
                "create table CommAnalyzerMatrix (hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT,"
                " transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type"
                " TEXT, op_name TEXT)"
            )
            for step, kinds in communication(rank, [7, 8]).items():
                for operator, info in kinds["collective"].items():
                    name, _, key = operator.partition("@")
                    told = list(info["Communication Time Info"].values())[:6]
                    row = [name, key, *told, step, "collective"]
                    database.execute(f"insert into CommAnalyzerTime values ({','.join('?' * 10)})", row)
            for step, kinds in matrix(rank, [7, 8]).items():
                for operator, links in kinds["collective"].items():
                    name, _, key = operator.partition("@")
                    for ends, one in links.items():
                        row = [name, key, *ends.split("-"), one["Transport Type"], one["Transit Size(MB)"],
                               one["Transit Time(ms)"], one["Bandwidth(GB/s)"], step, "collective", ""]  # fmt: skip
                        database.execute(f"insert into CommAnalyzerMatrix values ({','.join('?' * 11)})", row)
    return root


def write_output(root: Path) -> Path:
    """`cluster_analysis_output`, as msprof-analyze makes it of the four ranks; nothing else."""
    folder = root / "cluster_analysis_output"
    folder.mkdir(parents=True)
    rows = [[step, "rank", rank, *step_row(rank, step)[2:]] for rank in range(4) for step in (7, 8)]
    rows.append([7, "stage", "(0, 1, 2, 3)", *step_row(3, 7)[2:]])
    write_csv(folder / "cluster_step_trace_time.csv", rows, ["Step", "Type", "Index", *STEP_COLUMNS[2:]])
    calls: dict[str, Any] = {}
    links: dict[str, Any] = {}
    for word, groups in GROUPS.items():
        for ranks in groups:
            key = key_of(comm_name(word, ranks))
            for rank in ranks:
                for step, kinds in communication(rank, [7, 8]).items():
                    found = calls.setdefault(str(tuple(ranks)), {}).setdefault(step, {})
                    for operator, info in kinds["collective"].items():
                        if operator.endswith(key):
                            found.setdefault(operator, {})[str(rank)] = info
                            found.setdefault(f"Total Op Info@{key}", {})[str(rank)] = info
                for step, kinds in matrix(rank, [7, 8]).items():
                    found = links.setdefault(str(tuple(ranks)), {}).setdefault(step, {})
                    for operator, one in kinds["collective"].items():
                        if operator.endswith(key):
                            for ends, values in one.items():
                                source, target = (ranks[int(place)] for place in ends.split("-"))
                                found.setdefault(operator, {})[f"{source}-{target}"] = values
    (folder / "cluster_communication.json").write_text(json.dumps(calls))
    (folder / "cluster_communication_matrix.json").write_text(json.dumps(links))
    parallel = [
        {"type": "collective", "rank_set": ranks, "group_name": key_of(comm_name(word, ranks)),
         "group_id": comm_name(word, ranks), "pg_name": word}
        for word, groups in GROUPS.items() for ranks in groups
    ]  # fmt: skip
    groups = {"collective": [ranks for one in GROUPS.values() for ranks in one], "p2p": []}
    (folder / "communication_group.json").write_text(json.dumps({**groups, "comm_group_parallel_info": parallel}))
    return root
