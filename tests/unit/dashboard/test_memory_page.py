"""The memory page: equal to the report, and at every point of its curve what was live sums to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import Asking
from deepscope.report.json_csv import report_object
from deepscope.store.load import load_profile
from recorded_traces import OWN_TRACES, each, shared_paths
from trace_builder import TraceBuilder

NAMES = ("resnet50_num_workers", "particle_transformer", "bs_32_rank0", "normalization")
OWN = ("torch-with-stack", "threads-out-of-memory")
PATHS = [
    *(pytest.param(OWN_TRACES / f"{name}.json.gz", id=name) for name in OWN),
    *each([path for path in shared_paths() if any(name in path.name for name in NAMES)]),
]


@pytest.fixture(scope="module", params=PATHS)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def ask(path: Path) -> Iterator[Asking]:
    asking = Asking(path)
    yield asking
    asking.close()


def cells(table: Any, key: str) -> list[Any]:
    at = [column["key"] for column in table["columns"]].index(key)
    return [row[at] for row in table["rows"]]


def test_it_is_the_report_of_the_trace(ask: Asking, path: Path) -> None:
    page, report = ask("memory"), report_object(load_profile(path))
    devices = report["memory"]["devices"]
    assert [one["device"] for one in page["devices"]] == [one["device"] for one in devices]
    for shown, known in zip(page["devices"], devices, strict=True):
        begin = int(shown["begin"])
        assert shown["peakBytes"] == known["peak"]["size_bytes"]
        assert begin + shown["peakAtNs"] == known["peak_at_ns"]
        assert sum(part["sizeBytes"] for part in shown["held"]) == shown["peakBytes"]
        assert {part["kind"]: part["sizeBytes"] for part in shown["held"]} == {
            ("optimizer state" if kind == "optimizer" else kind): known["peak"][f"{kind}_bytes"]
            for kind in ("parameters", "gradients", "optimizer", "inputs", "activations", "temporaries", "unknown")
        }
    assert sum(cells(page["atPeak"], "size_bytes")) == report["totals"]["peak_bytes"]
    by_line = {
        (line["file"], line["line"]): line["bytes_allocated"] for line in report["lines"] if line["bytes_allocated"]
    }
    table = page["lines"]
    shown_lines = {
        (table["files"][file], line): size
        for (file, line), size in zip(table["places"], cells(table, "bytes_allocated"), strict=True)
        if file >= 0 and size
    }
    assert shown_lines == by_line


def test_what_was_live_sums_to_the_curve_at_each_of_its_points(ask: Asking) -> None:
    for device in ask("memory")["devices"]:
        begin, curve = int(device["begin"]), device["curve"]
        last_of = dict(zip(curve["atNs"], curve["allocatedBytes"], strict=True))
        for at_ns in list(last_of)[:: max(len(last_of) // 25, 1)]:
            moment = ask("memory_at", device=device["device"], at=begin + at_ns)
            # A point may be followed by another event in the same nanosecond, which the drawn curve leaves out.
            zoomed = ask("memory_curve", device=device["device"], zero=begin, beginNs=at_ns, endNs=at_ns)
            exact = dict(zip(zoomed["atNs"], zoomed["allocatedBytes"], strict=True))[at_ns]
            assert moment["allocatedBytes"] == exact
            assert moment["sizeBytes"] >= moment["allocatedBytes"]
            assert int(moment["at"]) == begin + at_ns
            for sizes in (
                [part["sizeBytes"] for part in moment["held"]],
                cells(moment["lines"], "size_bytes"),
                cells(moment["modules"], "size_bytes"),
            ):
                assert sum(sizes) == moment["sizeBytes"]


def test_the_curve_has_as_much_reserved_as_the_trace_tells(ask: Asking, path: Path) -> None:
    known = load_profile(path).memory.devices
    for shown, device in zip(ask("memory")["devices"], known, strict=True):
        reserved = [point.reserved_bytes for point in device.curve]
        assert shown["curve"]["reservedBytes"] == (reserved if max(reserved) >= 0 else [])


@pytest.mark.parametrize(
    "words", [{"at": "soon"}, {"at": "1" * 40}, {"at": "0", "device": "cuda:99"}, {"at": "0", "rank": 77}]
)
def test_a_question_that_makes_no_sense_is_answered_so(ask: Asking, words: dict[str, Any]) -> None:
    status, answer = ask.status("memory_at", **words)
    assert (status, bool(answer["error"])) == (400, True)


def test_without_memory_events_there_is_no_device() -> None:
    asking = Asking(OWN_TRACES / "compiled.json.gz")
    try:
        page = asking("memory")
        assert (page["devices"], page["figures"], page["failure"]) == ([], [], None)
        status, _ = asking.status("memory_at", at=0)
        assert status == 400
    finally:
        asking.close()


def device_run(at: int, size: int, *, device: int = 0, **header: Any) -> TraceBuilder:
    """A step in which one line allocates so much on a device, and another one a tenth of it."""
    builder = TraceBuilder(**header)
    builder.step(5, 0, 1000).line("/job/train.py", 3, "main", 10, 400).line("/job/train.py", 4, "main", 500, 300)
    builder.kernel("gemm", 20, 40, 100)
    builder.memory(at, size, address=1, device=device).memory(at + 500, size // 10, address=2, device=device)
    return builder.memory(at + 600, -size, address=1, device=device)


def test_each_device_has_its_own_curve_and_moments(tmp_path: Path) -> None:
    builder = device_run(30, 1000)
    builder.memory(40, 5000, address=9, device=1).memory(700, -5000, address=9, device=1)
    builder.write(tmp_path / "two.json")
    asking = Asking(tmp_path)
    try:
        larger, smaller = asking("memory")["devices"]
        assert [(one["device"], one["peakBytes"], one["atPeak"]) for one in (larger, smaller)] == [
            ("cuda:1", 5000, None),
            ("cuda:0", 1100, None),
        ]
        begin = int(smaller["begin"])
        moments = [
            asking("memory_at", device="cuda:0", at=begin + at)["allocatedBytes"] for at in (0, 499, 500, 600, 9999)
        ]
        assert moments == [1000, 1000, 1100, 100, 100]
        assert asking("memory_at", device="cuda:1", at=int(larger["begin"]))["sizeBytes"] == 5000
        lines = asking("memory_at", device="cuda:0", at=begin + 600)["lines"]
        assert [(line, row[-1]) for (_, line), row in zip(lines["places"], lines["rows"], strict=True)] == [(4, 100)]
        assert [(step["number"], step["endNs"] - step["beginNs"]) for step in smaller["steps"]] == [(5, 1000)]
    finally:
        asking.close()


def test_of_several_ranks_the_one_with_the_largest_peak_is_shown_and_asked(tmp_path: Path) -> None:
    for rank, size in enumerate((1000, 4000, 2000)):
        info = {"distributedInfo": {"rank": rank, "world_size": 3, "backend": "nccl"}}
        device_run(30 + rank, size, **info).write(tmp_path / f"worker.rank{rank}.json")
    asking = Asking(tmp_path)
    try:
        page = asking("memory")
        (device,) = page["devices"]
        assert (device["rank"], device["peakBytes"]) == (1, 4400)
        assert sum(cells(page["atPeak"], "size_bytes")) == 7700
        assert sum(cells(device["atPeak"], "size_bytes")) == 4400
        moment = asking("memory_at", rank=device["rank"], device=device["device"], at=device["begin"])
        assert (moment["allocatedBytes"], moment["at"]) == (4000, device["begin"])
        own = asking("memory", rank=2)["devices"][0]
        assert (own["rank"], own["peakBytes"]) == (2, 2200)
    finally:
        asking.close()
