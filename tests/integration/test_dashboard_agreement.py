"""The overview beside torch-tb-profiler's own code, on every recorded trace that it can read."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.ownership.attribution import attribute
from deepscope.analysis.tables.overview import ROLES, find_roles, overview_table, step_time
from deepscope.trace.communication import is_collective
from deepscope.trace.names import is_communication_span, is_loading_span
from deepscope.trace.read import read_trace
from recorded_traces import each, each_trace, shared_paths

pytest.importorskip("torch_tb_profiler")

UNREADABLE = ("msprof-analyze",)
"""A bare array of events, which it does not take."""
NO_HOST = ("gpu_only",)
"""Without events on the CPU it shows steps of nonsense length."""
OTHER_CATEGORIES = ("mtia",)
"""Their work has categories that it does not know, whatever it is told."""


def readable() -> list[Any]:
    return [one for one in each_trace() if not any(word in str(one.id) for word in (*UNREADABLE, *NO_HOST))]


@pytest.fixture(scope="module", params=readable())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@lru_cache(maxsize=1)
def document(path: Path) -> dict[str, Any]:
    text = gzip.decompress(path.read_bytes())
    found = json.loads(text, strict=False)
    starts = [event["ts"] for event in found["traceEvents"] if event.get("ph") == "X"]
    if max(starts) < 1e12 or all(isinstance(start, int) for start in starts):
        return found
    # Microseconds since 1970 with a fraction are more than a float holds: it is given times from the first event on.
    found = json.loads(text, strict=False, parse_float=Decimal)
    first = int(min(starts))
    for event in found["traceEvents"]:
        if "ts" in event:
            event["ts"] = float(Decimal(event["ts"]) - first)
        if "dur" in event:
            event["dur"] = float(event["dur"])
        for name, value in (event.get("args") or {}).items():
            if isinstance(value, Decimal):
                event["args"][name] = float(value)
    return found


@lru_cache(maxsize=1)
def analysed(path: Path) -> Analysis:
    return analyse(attribute(read_trace(path)))


def peer(found: dict[str, Any]) -> Any:
    from torch_tb_profiler.profiler.data import RunProfileData

    return RunProfileData.from_json("worker", "1", found)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


TOLD = 10**9
"""An `External id` that all collectives are given."""


def told(found: dict[str, Any]) -> dict[str, Any]:
    """The trace as it would be if it were written in the words that torch-tb-profiler knows."""
    events = []
    training = _training_thread(found["traceEvents"])
    for event in found["traceEvents"]:
        if event.get("ph") != "X":
            events.append(event)
            continue
        category, name = str(event.get("cat", "")).lower(), event.get("name", "")
        args = dict(event.get("args") or {})
        changed = {**event, "args": args}
        if category == "gpu_user_annotation":
            continue
        if category in {"user_annotation", "cpu_op", "operator"}:
            if name.startswith("ProfilerStep#") and (event["pid"], event["tid"]) != training:
                continue
            if is_loading_span(name):
                changed["cat"] = "cpu_op"
            elif is_communication_span(name):
                changed |= {"cat": "user_annotation", "name": "nccl:all_reduce"}
                args["external id"] = TOLD
        elif category.endswith(("_runtime", "_driver")):
            changed["cat"] = "Runtime"
        elif category == "kernel":
            args["external id"] = TOLD if is_collective(name) else -7
        events.append(changed)
    first = min(event["ts"] for event in events if event.get("ph") == "X")
    events.append({"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 0, "tid": 0, "ts": first,
                   "dur": 0, "args": {"external id": TOLD}})  # fmt: skip
    return {**found, "traceEvents": events}


def _training_thread(events: list[dict[str, Any]]) -> tuple[Any, Any]:
    """The thread with most steps on the CPU."""
    steps = [
        (event["pid"], event["tid"])
        for event in events
        if str(event.get("name", "")).startswith("ProfilerStep#") and event.get("cat") != "gpu_user_annotation"
    ]
    return max(steps, key=steps.count, default=(None, None))


def assert_steps_are_alike(path: Path, theirs: list[Any]) -> None:
    """Its split of each step, in microseconds, is ours."""
    of = analysed(path).attribution
    ours = step_time(of.trace.events, of.work, find_roles(of))
    found = np.column_stack([ours.parts, ours.end - ours.start]) / 1000
    costs = np.array([one.costs for one in theirs], np.float64)
    assert found.shape == costs.shape
    # It adds microseconds in floats, one for each end of an interval.
    assert np.abs(found - costs).max() < 0.1


def test_told_what_it_does_not_know_it_splits_steps_and_uses_devices_as_here(path):
    if any(word in path.name for word in OTHER_CATEGORIES):
        return
    data = peer(told(document(path)))
    assert_steps_are_alike(path, data.steps_costs)
    rows = overview_table(analysed(path))
    split = {row.name: row for row in rows if row.section == "step"}
    if split and analysed(path).attribution.work.metric == "device":
        assert list(split) == list(ROLES)
        for row, average in zip(split.values(), data.avg_costs.costs, strict=False):
            assert row.time_ns / row.steps / 1000 == pytest.approx(average, rel=1e-6, abs=0.1)
    metrics = data.gpu_metrics_parser
    shares = {(row.device, row.name): _share(row.time_ns, row.whole_ns) for row in rows}
    for gpu in metrics.gpu_ids:
        device = f"device:{gpu}"
        assert shares[device, "utilisation"] == pytest.approx(metrics.gpu_utilization[gpu], rel=1e-4, abs=1e-6)
        efficiency = metrics.avg_approximated_sm_efficiency_per_device[gpu]
        assert shares.get((device, "SM efficiency")) == (
            None if efficiency is None else pytest.approx(efficiency, rel=1e-4, abs=1e-6)
        )
        occupancy = metrics.avg_occupancy_per_device[gpu]
        assert shares.get((device, "occupancy")) == (
            None if occupancy is None else pytest.approx(occupancy / 100, rel=1e-4, abs=1e-6)
        )
    if data.tc_used_ratio is not None:
        tensor = [row for row in rows if row.name == "tensor cores"]
        used, whole = sum(row.time_ns for row in tensor), sum(row.whole_ns for row in tensor)
        assert _share(used, whole) == pytest.approx(data.tc_used_ratio, rel=1e-6)


@pytest.mark.parametrize("path", each([one for one in shared_paths() if "kineto-" in one.name]))
def test_on_traces_in_its_own_words_both_splits_are_one(path):
    assert_steps_are_alike(path, peer(document(path)).steps_costs)
