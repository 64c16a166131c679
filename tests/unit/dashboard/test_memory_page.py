"""The memory page: equal to the report, and at every point of its curve what was live sums to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import Asking
from deepscope.report.json_report import report_object
from deepscope.store.load import load_profile
from recorded_traces import needs_shared_traces, own_paths, shared_paths

NAMES = ("resnet50_num_workers", "particle_transformer", "bs_32_rank0", "normalization")
PATHS = [path for path in [*shared_paths(), *own_paths()] if any(name in path.name for name in (*NAMES, "with-stack"))]


@pytest.fixture(scope="module", params=PATHS, ids=lambda path: path.name[:40])
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


@needs_shared_traces
def test_without_memory_events_there_is_no_device() -> None:
    (path,) = [path for path in shared_paths() if "torch-profile-trace_05" in path.name]
    asking = Asking(path)
    try:
        page = asking("memory")
        assert (page["devices"], page["figures"], page["failure"]) == ([], [], None)
        status, _ = asking.status("memory_at", at=0)
        assert status == 400
    finally:
        asking.close()
