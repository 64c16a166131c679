"""The Memory page's section on torch's snapshot beside the trace: equal to the command's report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import Asking
from deepscope.report.snapshot_report import snapshot_json
from deepscope.store.companion_files import load_snapshot
from deepscope.trace.format.run_account import snapshot_path
from memory_snapshots import BACKWARD, Allocator, of_line, write
from recorded_traces import OWN_TRACES


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return Path(shutil.copy(OWN_TRACES / "torch-with-stack.json.gz", tmp_path / "a.pt.trace.json.gz"))


@pytest.fixture
def ask(trace: Path) -> Iterator[Asking]:
    asking = Asking(trace)
    yield asking
    asking.close()


def taken() -> Allocator:
    allocator = Allocator()
    for step in range(7):
        allocator.annotate(f"ProfilerStep#{step}", "START")
        allocator.alloc(1000, of_line(20))
        allocator.free(allocator.alloc(5000, BACKWARD))
    allocator.fail(1 << 40, 0, of_line(30))
    return allocator


def test_its_rows_are_those_of_the_report(ask: Asking, trace: Path) -> None:
    path = write(snapshot_path(trace), taken().snapshot())
    (device,) = json.loads(snapshot_json(load_snapshot(str(path))))["devices"]
    page = ask("memory_snapshot")
    (part,) = page["devices"]
    assert ask("memory")["hasSnapshot"]
    assert page["file"] == "a.memory.pickle"
    for table, rows in (
        (part["live"], device["peak"]["holders"]),
        (part["failed"], device["failures"][0]["holders"]),
        (part["growing"], device["growth"]["holders"]),
    ):
        at = [column["key"] for column in table["columns"]].index("size_bytes")
        assert [row[at] for row in table["rows"]] == [row["size_bytes"] for row in rows]
    assert part["live"]["files"] == ["/home/me/train.py"]
    assert [fact["label"] for fact in part["facts"]] == ["device 0", "failed", "fragments", "grows"]


def test_without_one_the_page_has_no_such_section(ask: Asking) -> None:
    assert not ask("memory")["hasSnapshot"]
    assert ask("memory_snapshot") == {"file": "", "devices": []}


def test_one_that_cannot_be_read_costs_its_section_alone(ask: Asking, trace: Path) -> None:
    write(snapshot_path(trace), {"segments": [trace]})
    status, answer = ask.status("memory_snapshot")
    assert status == 422
    assert "more than plain values" in answer["error"]
    assert ask("memory")["hasSnapshot"]
