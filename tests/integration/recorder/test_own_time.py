"""What the recorder does to open and close a window is done while no line is open, so that none of it is a line's time.

The first step's mark is set when all else is open. The last step's mark ends before anything is closed, and all else
ends with it (test_window_end.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import deepscope
from deepscope.lightning import DeepProfiler
from lightning_runs import PACKAGES, QUIET_MARKS, make_model, trainer
from lightning_runs import loader as lightning_loader
from recorded import TESTS, Net, load, loader, train_step

pytestmark = QUIET_MARKS


def in_a_block(folder: Path) -> None:
    with deepscope.profile(folder, root=TESTS) as prof:
        for _ in range(2):
            torch.ones(8).sum()
            prof.step()


def by_steps(folder: Path) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with deepscope.profile(folder, root=TESTS, wait=1, warmup=1, active=2, total_steps=6) as prof:
        for _ in range(6):
            train_step(net, optimizer, torch.randn(4, 8))
            prof.step()


def by_iterating(folder: Path) -> None:
    with deepscope.profile(folder, root=TESTS, wait=1, warmup=1, active=2) as prof:
        for batch in prof.iterate(loader()):
            batch.sum()


def by_callback(folder: Path) -> None:
    with deepscope.callback(folder, root=TESTS, warmup=1, active=2) as on_step:
        for _ in range(6):
            torch.ones(8).sum()
            on_step()


FLOAT_NS = 2
WAYS = [in_a_block, by_steps, by_iterating, by_callback]


def lines_and(folder: Path, name: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where the lines of the training thread begin and end (ns); likewise `name`."""
    (path,) = folder.rglob("*.pt.trace.json*")
    events = [event for event in load(path)["traceEvents"] if event.get("ph") == "X"]
    marks = [event for event in events if event["name"].startswith(name) and event["cat"] == "user_annotation"]
    lines = [event for event in events if event["cat"] == "python_line" and event["tid"] == marks[0]["tid"]]
    assert lines
    return interval_ns(lines), interval_ns(marks)


def interval_ns(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Starts and ends. A float of so many microseconds is off by up to a nanosecond: `FLOAT_NS`."""
    starts = [(round(one["ts"] * 1000), round(one["dur"] * 1000)) for one in events]
    return [(start, start + duration) for start, duration in starts]


@pytest.mark.parametrize("record", WAYS)
def test_no_line_is_open_while_a_window_opens(record: Callable[[Path], None], tmp_path: Path) -> None:
    record(tmp_path)
    lines, marks = lines_and(tmp_path, "ProfilerStep#")
    assert min(lines)[0] >= min(marks)[0]


@pytest.mark.parametrize("record", WAYS[1:])
def test_nor_while_one_closes(record: Callable[[Path], None], tmp_path: Path) -> None:
    record(tmp_path)
    lines, marks = lines_and(tmp_path, "ProfilerStep#")
    assert max(end for _, end in lines) <= max(end for _, end in marks) + FLOAT_NS


@pytest.mark.parametrize("package", PACKAGES)
def test_nor_in_lightnings_hooks(package: str, tmp_path: Path) -> None:
    profiler = DeepProfiler(tmp_path, root=TESTS)
    trainer(package, max_epochs=1, limit_train_batches=8, profiler=profiler).fit(
        make_model(package), lightning_loader()
    )
    lines, marks = lines_and(tmp_path, "ProfilerStep#")
    assert min(lines)[0] >= min(marks)[0]
    assert max(end for _, end in lines) <= max(end for _, end in marks) + FLOAT_NS
