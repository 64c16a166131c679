"""Traces of two steps with an audit's account, for tests of what findings make of it."""

from __future__ import annotations

from typing import Any

from deepscope.records import Finding
from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def recorded(audit: dict[str, Any], **header: Any) -> TraceBuilder:
    """Two steps of a millisecond. Line 10 calls lines 20 and 21, and line 11 differentiates: 240 µs for line 20, two
    products and a threshold, and 60 µs for line 21."""
    builder = TraceBuilder(deepscope={"audit": {"format": 1, "steps": 2, "operators": 9, **audit}, **header})
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 10, "main", at, 400 * US)
        builder.line(FILE, 20, "forward", at + 10 * US, 180 * US)
        builder.op("aten::mm", at + 20 * US, 100 * US, sequence=5)
        builder.op("aten::relu", at + 130 * US, 50 * US, sequence=6)
        builder.line(FILE, 21, "forward", at + 200 * US, 190 * US)
        builder.op("aten::mul", at + 210 * US, 150 * US, sequence=7)
        builder.line(FILE, 11, "main", at + 400 * US, 500 * US)
        builder.backward("MulBackward0", at + 410 * US, 60 * US, 7, tid=MAIN)
        builder.op("aten::mul", at + 411 * US, 58 * US)
        builder.backward("ReluBackward0", at + 480 * US, 40 * US, 6, tid=MAIN)
        builder.op("aten::threshold_backward", at + 481 * US, 38 * US)
        builder.backward("MmBackward0", at + 530 * US, 200 * US, 5, tid=MAIN)
        builder.op("aten::mm", at + 531 * US, 99 * US).op("aten::mm", at + 630 * US, 99 * US)
    return builder


PLACES = [[0, 20, "forward"], [0, 11, "main"], [0, 21, "forward"], [0, 10, "main"], [7, 99, "elsewhere"]]


def found_in(findings_of: Any, audit: dict[str, Any], code: str = "DS033") -> Finding:
    (found,) = findings_of(recorded(audit), code)
    return found


def sliced(**changes: Any) -> dict[str, Any]:
    row = {"place": 3, "slicing": 3, "times": 16, "dimension": 0, "shape": [16, 8], "module": "Net", "operators": 160}
    return {"places": PLACES, "slices": [row | changes]}


def partly(**changes: Any) -> dict[str, Any]:
    row = {"place": 0, "first": 2, "rows": 768, "read_rows": 192, "whole": True, "result_bytes": 64}
    row["operators"] = [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 0], [2, "aten::mul", 1, 0]]
    row["backward"] = [[0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1]]
    return {"places": PLACES, "partly_read": [row | changes]}
