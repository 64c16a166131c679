"""A case by its number: a good trace, mutated, written in some style, damaged, and how it is to be read."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.damage import damage_file, damage_text
from fuzz.documents import mutate_document
from random_traces import random_trace
from trace_builder import TraceBuilder

__all__ = ["Case", "built_documents", "make_case", "recorded_documents"]

_MOST_EVENTS = 400


@dataclass(frozen=True)
class Case:
    """A file's bytes, and how to read it."""

    number: int
    data: bytes
    partial: bool
    step: int | None
    story: list[str]
    """What was done to the trace, for whoever reads of the failure."""

    @property
    def name(self) -> str:
        """Of the file that it is written to."""
        return f"case-{self.number}.pt.trace.json"


@cache
def built_documents() -> tuple[bytes, ...]:
    """Good traces of every kind that the test's builders make, pickled: a copy for each case is soon made."""
    builders = [_everything(), _with_header(), *(random_trace(seed) for seed in range(6))]
    return tuple(pickle.dumps(builder.document()) for builder in builders)


def recorded_documents(folder: Path) -> tuple[bytes, ...]:
    """The recorded traces of a folder, a stretch of some hundred events of each; none where it is not there."""
    return tuple(pickle.dumps(_stretch(path)) for path in sorted(folder.glob("*.json.gz")))


def make_case(number: int, documents: Sequence[bytes]) -> Case:
    """The case of this number, the same each time for the same documents."""
    dice = random.Random(number)
    document = pickle.loads(dice.choice(documents))
    story = mutate_document(dice, document)
    content: Any = document["traceEvents"] if dice.random() < 0.05 else document
    style = dice.choice([{}, {}, {}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    text = json.dumps(content, **style).encode("utf-8", "surrogatepass")
    text, damage = damage_text(dice, text)
    data, container = damage_file(dice, text)
    step = dice.choice([0, 1, 2, 3]) if dice.random() < 0.1 else None
    return Case(number, data, dice.random() < 0.3, step, [*story, *damage, container])


def _stretch(path: Path) -> dict[str, Any]:
    document = json.loads(gzip.decompress(path.read_bytes()), strict=False)
    document = document if isinstance(document, dict) else {"traceEvents": document}
    events = document["traceEvents"]
    begin = max(0, len(events) // 2 - _MOST_EVENTS // 2)
    document["traceEvents"] = events[begin : begin + _MOST_EVENTS]
    return document


def _everything() -> TraceBuilder:
    """One of each kind of event, with all that is said of it."""
    builder = TraceBuilder(
        deviceProperties=[{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
        distributedInfo={"backend": "nccl", "rank": 1, "world_size": 2},
        baseTimeNanoseconds=1_700_000_000_000_000_000,
    )
    builder.step(1, 0, 100_000).step(2, 100_000, 100_000).name_process(100, "python").name_thread(100, 101, "main")
    for at in (0, 100_000):
        builder.frame("train.py(12): main", at + 5, 90_000).frame("model.py(40): forward", at + 10, 50_000)
        builder.op(
            "aten::mm", at + 20, 3_000, sequence=5, dims=[[64, 32], [32, 16]], stack="/a/m.py(41): f;/a/t.py(9): g"
        )
        builder.kernel("gemm", at + 30, at + 5_000, 9_000).kernel(
            "ncclDevKernel_AllReduce", at + 40, at + 6_000, 9_000, stream=9
        )
        builder.memcpy("HtoD", 4096, at + 50, at + 15_000, 700).memcpy("DtoH", 64, at + 60, at + 16_000, 10)
        builder.runtime("cudaStreamSynchronize", at + 20_000, 10_000).memory(at + 25, 4096, total=8192)
        builder.memory(at + 35_000, -4096, total=4096).counter("GPU power", at + 1, w=300.5)
        builder.backward("MmBackward0", at + 40_000, 9_000, 5).flow(at + 20, at + 40_000)
        builder.annotation("Optimizer.step#SGD.step", at + 60_000, 9_000)
        builder.event("gpu_user_annotation", "region", at + 5_000, 9_000, pid=0, tid=7)
        builder.event("Trace", "PyTorch Profiler (0)", at, 99_000, pid="Spans", tid="PyTorch Profiler")
    return builder


def _with_header() -> TraceBuilder:
    """What DeepScope's own recorder writes, every part of it."""
    builder = TraceBuilder(
        deepscope={
            "version": "0.1.0",
            "run_id": "abc",
            "stage": "fit",
            "window": 1,
            "rank": 0,
            "world_size": 1,
            "hostname": "h",
            "recorded_at": "2026-01-01T00:00:00+00:00",
            "project_root": "/home/me",
            "complete": True,
            "command": ["python", "t.py"],
            "git": {"commit": "a" * 40, "dirty": True},
            "versions": {"python": "3.11", "torch": "2.9", "lightning": None},
            "device": {"name": "NVIDIA H100", "count": 1},
            "schedule": {"wait": 1, "warmup": 1, "active": 2},
            "lines": {
                "backend": "settrace",
                "entries": 10,
                "cost_ns": 100,
                "warnings": ["something"],
                "quiet": [[0, 3, 100]],
                "slowest": [[0, 1, 2]],
            },
            "workers": [{"pid": 9, "lines": [[0, 7, "collate", 5_000], [0, 8, "load", 7_000]]}],
        }
    )
    builder.step(1, 0, 50_000).step(2, 50_000, 50_000)
    for at in (0, 50_000):
        builder.line("/home/me/t.py", 12, "main", at + 10, 40_000, first_line=3)
        builder.line("/home/me/m.py", 7, "forward", at + 20, 9_000, first_line=5)
        builder.module(
            "Linear",
            "encoder.fc",
            at + 30,
            8_000,
            python_module="torch.nn.modules.linear",
            file="/home/me/m.py",
            line=5,
        )
        builder.op("aten::addmm", at + 40, 7_000, sequence=3, dims=[[8], [4, 8], [8, 8]]).kernel(
            "gemm", at + 50, at + 600, 900
        )
        builder.op("aten::_local_scalar_dense", at + 9_500, 300).memory(at + 60, 512)
        builder.line("/home/me/t.py", 14, "main", at + 42_000, 7_000).backward("AddmmBackward0", at + 43_000, 2_000, 3)
        builder.flow(at + 40, at + 43_000)
    builder.files[0] |= {"sha256": "0" * 64, "text": "import torch\n" * 20}
    return builder
