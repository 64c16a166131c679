"""The overview and the streams beside HolisticTraceAnalysis, on the recorded traces that it can read.

HTA takes a second for each megabyte or so: the small traces are compared.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.ownership.attribution import attribute
from deepscope.analysis.tables.overview import overview_table
from deepscope.analysis.tables.threads import stream_table
from deepscope.trace.read import read_trace
from recorded_traces import each_trace

pytest.importorskip("hta")
pytestmark = pytest.mark.filterwarnings("ignore")

LARGEST = 240_000
"""Bytes of a compressed trace."""
UNREADABLE = (
    "msprof-analyze",  # a bare array of events
    "torch_compile_triton",  # one graph's kernels share a correlation
    "rank-34", "benchmark_result_924719", "distributed_info_not_found",  # no work of a device
)  # fmt: skip


def readable() -> list[Any]:
    return [
        one
        for one in each_trace()
        if one.values[0].stat().st_size <= LARGEST and not any(word in str(one.id) for word in UNREADABLE)
    ]


@pytest.fixture(scope="module", params=readable())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@lru_cache(maxsize=1)
def analysed(path: Path) -> Analysis:
    return analyse(attribute(read_trace(path)))


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")  # else it rounds each event inward to whole microseconds
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def peer(path: Path, tmp_path: Path) -> Any:
    from hta.trace_analysis import TraceAnalysis

    if analysed(path).attribution.work.metric != "device":
        return None
    found = json.loads(gzip.decompress(path.read_bytes()), strict=False)
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(without_its_errors(found)))
    return TraceAnalysis(trace_files={0: str(file)}, trace_dir=str(tmp_path), include_last_profiler_step=True)


def without_its_errors(found: dict[str, Any]) -> dict[str, Any]:
    """The trace without what HTA takes for work by mistake, and what docs/other-tools.md says of it.

    Synchronisation (`cuda_sync`) and operators with an argument `stream` (Triton's) count as work. Work whose launch
    is not in the file counts as launched when the file's first event began: an event that begins first is put there.
    """
    events = []
    for event in found["traceEvents"]:
        if event.get("cat") == "cuda_sync":
            continue
        args = event.get("args")
        if event.get("cat") == "cpu_op" and isinstance(args, dict) and "stream" in args:
            event = {**event, "args": {name: value for name, value in args.items() if name != "stream"}}
        events.append(event)
    first = min(event["ts"] for event in events if event.get("ph") == "X")
    begin = {"ph": "X", "cat": "overhead", "name": "begin", "pid": 0, "tid": 0, "ts": first, "dur": 0, "args": {}}
    return {**found, "traceEvents": [begin, *events]}


def test_the_time_from_first_to_last_work_is_divided_as_hta_divides_it(path, peer):
    if peer is None:
        return
    rows = {(row.section, row.name): row for row in overview_table(analysed(path))}
    theirs = peer.get_temporal_breakdown(visualize=False).iloc[0]
    for name, key in (
        ("idle", "idle_time(us)"),
        ("compute", "compute_time(us)"),
        ("non-compute", "non_compute_time(us)"),
    ):
        row = rows["span", name]
        assert row.time_ns / 1000 == pytest.approx(float(theirs[key]), abs=0.1), name
        assert row.whole_ns / 1000 == pytest.approx(float(theirs["kernel_time(us)"]), abs=0.1)


def test_computation_overlaps_collectives_as_hta_says(path, peer):
    if peer is None:
        return
    theirs = float(peer.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"])
    row = next((row for row in overview_table(analysed(path)) if row.section == "overlap"), None)
    if row is None:
        assert theirs != theirs  # no number: it divides by 0
    else:
        assert 100 * row.time_ns / row.whole_ns == pytest.approx(theirs, abs=0.01)


def test_gaps_of_each_stream_have_htas_causes(path, peer):
    if peer is None:
        return
    theirs = peer.get_idle_time_breakdown(visualize=False)[0]
    of_stream = {(int(row["stream"]), row["idle_category"]): float(row["idle_time"]) for _, row in theirs.iterrows()}
    for stream, us in overlapping_us(peer).items():  # HTA takes it off, so that it may have less than no time
        of_stream[stream, "kernel_wait"] = of_stream.get((stream, "kernel_wait"), 0) + us
    whole = {name: sum(us for (_, cause), us in of_stream.items() if cause == name) for name in CAUSES.values()}
    rows = {row.name: row.time_ns / 1000 for row in overview_table(analysed(path)) if row.section == "idle"}
    for name, cause in CAUSES.items():
        assert rows.get(name, 0) == pytest.approx(whole[cause], abs=0.1), name
    if len(analysed(path).attribution.training.steps) < 2:  # with steps HTA leaves out what came after the last
        for stream in stream_table(analysed(path)):
            for ours, cause in (
                (stream.host_wait_ns, "host_wait"),
                (stream.kernel_wait_ns, "kernel_wait"),
                (stream.other_wait_ns, "other"),
            ):
                assert ours / 1000 == pytest.approx(of_stream.get((stream.stream, cause), 0), abs=0.1)


def overlapping_us(peer: Any) -> dict[int, float]:
    """By stream, how long work began before the work before it had ended."""
    events, symbols = peer.t.get_trace(0), peer.t.symbol_table.get_sym_table()
    found: dict[int, float] = {}
    ended: dict[int, float] = {}
    for _, row in events.sort_values("ts", kind="stable").iterrows():
        if row["stream"] == -1 or symbols[row["cat"]].lower().removeprefix("gpu_") not in {
            "kernel",
            "memcpy",
            "memset",
        }:
            continue
        stream = int(row["stream"])
        found[stream] = found.get(stream, 0) + max(ended.get(stream, row["ts"]) - row["ts"], 0)
        ended[stream] = row["ts"] + row["dur"]
    return found


CAUSES = {"host wait": "host_wait", "kernel wait": "kernel_wait", "other wait": "other"}
