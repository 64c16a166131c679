"""The critical path beside HTA's, on its own traces, where both know the same dependencies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepscope.analysis.array_ops.intervals import union
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.critical.path import Path as CriticalPath
from deepscope.analysis.critical.path import PathKind, critical_path
from deepscope.analysis.critical.tables import find_dependencies
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.names import is_backward_root
from deepscope.trace.read import read_trace
from recorded_traces import SHARED_TRACES, needs_shared_traces

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "hta_critical_paths.json").read_text(encoding="utf-8")
)
"""What HTA 0.5 says; `tests/hta_critical_paths.py` writes it."""
ALIKE = [one for one in RECORDED if one["alike"]]
UNLIKE = [one for one in RECORDED if not one["alike"]]


def path_of(theirs: dict[str, Any]) -> tuple[Trace, CriticalPath]:
    """The trace, and the path of one annotation in it."""
    assert SHARED_TRACES is not None
    trace = read_trace(SHARED_TRACES / theirs["trace"])
    events = trace.events
    names = [i for i, text in enumerate(trace.strings) if theirs["annotation"] in text]
    found = np.flatnonzero(np.isin(events.name, names) & (events.kind == Kind.ANNOTATION))[theirs["instance"]]
    of = attribute(trace)
    start, end = int(events.start_ns[found]), int(events.end_ns[found])
    return trace, critical_path(find_dependencies(of), int(events.thread[found]), start, end, ran_until=end)


def ours(theirs: dict[str, Any]) -> dict[str, float]:
    """The path in microseconds, by HTA's words; CPU time is that within operators and calls."""
    trace, path = path_of(theirs)
    events = trace.events
    length = path.end - path.start
    result = {
        "gpu_compute_bound": length[path.kind == PathKind.WORK].sum() / 1e3,
        "gpu_kernel_kernel_overhead": length[path.kind == PathKind.GAP].sum() / 1e3,
        "gpu_kernel_launch_overhead": length[path.kind == PathKind.LAUNCH].sum() / 1e3,
    }
    work = np.isin(events.kind, (Kind.OPERATOR, Kind.RUNTIME))
    result["cpu_bound"] = 0.0
    for thread in set(path.where[path.kind == PathKind.THREAD].tolist()):
        rows = (path.kind == PathKind.THREAD) & (path.where == thread)
        here = work & (events.thread == thread)
        covered = union(events.start_ns[here], events.end_ns[here])
        result["cpu_bound"] += union(path.start[rows], path.end[rows]).intersection(covered).total_ns / 1e3
    return result


@needs_shared_traces
@pytest.mark.parametrize("theirs", ALIKE, ids=[f"{one['trace'][:60]}-{one['instance']}" for one in ALIKE])
def test_the_path_is_that_of_hta_within_a_hundredth_of_its_length(theirs: dict[str, Any]) -> None:
    found = ours(theirs)
    length = theirs["length_us"]
    assert sum(found.values()) == pytest.approx(length, rel=0.01)
    for word, share in theirs["percent"].items():
        assert found[word] == pytest.approx(share / 100 * length, abs=0.01 * length), word
    words = max(theirs["percent"], key=theirs["percent"].__getitem__)
    assert max(found, key=found.__getitem__) == words


@needs_shared_traces
def test_kernels_of_a_step_with_all_spans_of_synchronisation_are_those_of_hta_exactly() -> None:
    (theirs,) = (one for one in RECORDED if "benchmark_result_2869224" in one["trace"])
    found = ours(theirs)
    assert found["gpu_compute_bound"] == round(theirs["percent"]["gpu_compute_bound"] / 100 * theirs["length_us"])


@needs_shared_traces
@pytest.mark.parametrize("theirs", UNLIKE, ids=[one["trace"][:60] for one in UNLIKE])
def test_where_the_step_goes_on_behind_the_thread_of_autograd_the_path_of_hta_is_shorter(
    theirs: dict[str, Any],
) -> None:
    """HTA joins no threads: its path is the operators of one."""
    assert set(theirs["percent"]) == {"cpu_bound"}
    trace, path = path_of(theirs)
    threads = path.where[path.kind == PathKind.THREAD]
    runs_backward = named(trace, of_kind(trace, Kind.OPERATOR), is_backward_root)
    assert runs_backward[np.isin(trace.events.thread, threads)].any()
    assert len(set(threads.tolist())) == 2
    assert sum(ours(theirs).values()) > 1.1 * theirs["length_us"]
