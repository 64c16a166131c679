"""DS021, worker processes of a loader that are started anew."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
MS = 1_000_000
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def epochs(*, start: int = 30, usual: int = 1, first: int = 11, last: int = 6, between: int = 0, step: int = 0,
           loader: dict[str, Any] | None = None, seed: str = "aten::random_") -> TraceBuilder:  # fmt: skip
    """Two epochs of five steps of 20 ms; the workers of the second take `start` ms, all in ms."""
    known = (
        {"settings": {"loaders": [{"num_workers": 2, "prefetch_factor": 2, **loader}]}} if loader is not None else {}
    )
    builder = TraceBuilder(deepscope=known)
    at = 0
    for epoch in range(2):
        for number in range(5):
            begin = at
            if number == 0:
                length = start * MS + first * MS
                builder.line(FILE, 5, "main", at, length)
                builder.op(seed, at + MS // 10, 1000).op("aten::item", at + MS // 5, 1000)
                for row in range(between):
                    builder.op("aten::mm", at + MS // 2 + row * 1000, 900)
                builder.annotation(NEXT, at + start * MS, first * MS)
            else:
                length = (last if number == 4 else usual) * MS
                builder.line(FILE, 5, "main", at, length).annotation(NEXT, at, length)
            at += length
            builder.line(FILE, 6, "main", at, 19 * MS).op("aten::mm", at, 18 * MS)
            at += 19 * MS
            builder.step(step + epoch * 5 + number, begin, at - begin)
    return builder


def test_starts_but_the_first_are_found_with_the_batches_that_waited(findings_of):
    (found,) = findings_of(epochs(), "DS021")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence["restarts"] == 1
    assert found.evidence["starting_ns"] == 30 * MS - MS // 10
    assert found.evidence["batches_longer_ns"] == 5 * MS + 10 * MS
    assert found.saving_ns == 30 * MS - MS // 10 + 15 * MS
    assert "persistent_workers=True" in found.remedy.text


def test_the_first_start_of_a_window_counts_where_steps_came_before(findings_of):
    (found,) = findings_of(epochs(step=40), "DS021")
    assert found.evidence["restarts"] == 2
    assert found.evidence["batches_longer_ns"] == 10 * MS + (5 + 10) * MS


@pytest.mark.parametrize("loader", [{}, {"persistent_workers": False}])
def test_the_settings_may_say_that_workers_are_not_kept(findings_of, loader):
    assert len(findings_of(epochs(loader=loader), "DS021")) == 1


def test_workers_that_are_kept_are_not_found(findings_of):
    assert findings_of(epochs(loader={"persistent_workers": True}), "DS021") == []
    assert findings_of(epochs(start=0, first=2), "DS021") == []


def test_other_random_numbers_are_no_seed_of_a_loader(findings_of):
    assert findings_of(epochs(between=12), "DS021") == []
    assert findings_of(epochs(seed="aten::uniform_"), "DS021") == []


def test_the_same_time_is_promised_once(findings_of):
    builder = epochs()
    loading = sum(found.saving_ns for found in findings_of(builder, "DS003"))
    whole = (11 + 11 + 3 + 3 + 6 + 6) * MS
    assert loading <= whole - 15 * MS


def test_with_a_device_its_idle_time_counts_and_stands_here_alone(findings_of):
    builder = epochs()
    for begin in range(0, 320, 10):
        builder.kernel("gemm", begin * MS, begin * MS + 1000, (9 if not 120 < begin < 150 else 0) * MS + 1000)
    (found,) = findings_of(builder, "DS021")
    idle = sum(one.saving_ns for one in findings_of(builder, "DS005"))
    assert 0 < found.saving_ns <= 30 * MS
    assert idle + found.saving_ns <= 70 * MS
