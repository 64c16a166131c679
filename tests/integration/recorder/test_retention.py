"""The trace folder's bounds: the oldest windows go, and nothing that is not DeepScope's own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.saving import retention
from deepscope.errors import OptionError
from deepscope.trace.format.run_account import account_path
from recorded import load, run_python, step_names, steps

EACH_STEP: dict[str, Any] = {"wait": 0, "warmup": 0, "active": 1, "repeat": 0}


def windows(folder: Path) -> list[int]:
    return sorted(load(path)["deepscope"]["window"] for path in folder.glob("*.gz"))


def test_by_default_all_is_kept(record: Callable[..., Recorder], tmp_path: Path) -> None:
    record(4, **EACH_STEP)
    assert windows(tmp_path / "runs") == [0, 1, 2, 3]


def test_keep_last_keeps_the_newest_windows_and_the_recorder_names_no_other(
    record: Callable[..., Recorder], tmp_path: Path
) -> None:
    recorder = record(5, keep_last=2, **EACH_STEP)
    assert windows(tmp_path / "runs") == [3, 4]
    assert [step_names(path) for path in recorder.traces] == [steps(3), steps(4)]


def test_the_account_of_a_run_goes_with_its_trace(record: Callable[..., Recorder], tmp_path: Path) -> None:
    first, second = record(2, **EACH_STEP).traces
    for path in (first, second):
        account_path(path).touch()
    (third,) = record(1, keep_last=2, **EACH_STEP).traces
    assert not account_path(first).exists()
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {second.name, account_path(second).name, third.name}


def test_a_total_size_is_kept_and_the_newest_window_in_any_case(
    record: Callable[..., Recorder], tmp_path: Path
) -> None:
    (first,) = record(1, scheduled=False).traces
    bound = 3 * first.stat().st_size
    record(6, max_total_size=bound, **EACH_STEP)
    left = windows(tmp_path / "runs")
    assert left == list(range(6))[-len(left) :]
    assert sum(path.stat().st_size for path in (tmp_path / "runs").iterdir()) <= bound
    assert 2 <= len(left) < 6
    record(1, scheduled=False, max_total_size="1 KB")
    assert windows(tmp_path / "runs") == [0]


def test_nothing_is_removed_that_is_not_deepscopes_own(record: Callable[..., Recorder], tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    foreign = {
        folder / "host_1.1700000000000000000.pt.trace.json": '{"schemaVersion":1,"traceEvents":[]}',
        folder / "quoted.pt.trace.json": '{"schemaVersion":1,"note":"x","deepscope":{"format":1,"run_id":"a"}}',
        folder / "notes.txt": "mine",
    }
    for path, text in foreign.items():
        path.write_text(text)
        os.utime(path, (0, 0))
    record(3, keep_last=1, **EACH_STEP)
    assert {path: path.read_text() for path in foreign} == foreign
    assert len(windows(folder)) == 1


@contextmanager
def another_process(folder: Path, *, ends: bool) -> Iterator[None]:
    """While two windows of another process are there, which goes on meanwhile unless it ends."""
    recorded, over = folder.with_name("recorded"), folder.with_name("over")
    program = f"""
        import pathlib, time, torch, deepscope
        for _ in range(2):
            with deepscope.profile({str(folder)!r}):
                torch.ones(3).sum()
        pathlib.Path({str(recorded)!r}).touch()
        while not {ends} and not pathlib.Path({str(over)!r}).exists():
            time.sleep(0.01)
    """
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(run_python, program)
        try:
            while not other.done() and (ends or not recorded.exists()):
                time.sleep(0.01)
            yield
        finally:
            over.touch()
    done = other.result()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ends", [True, False])
def test_what_a_process_that_still_runs_has_recorded_is_left_to_it(
    record: Callable[..., Recorder], tmp_path: Path, ends: bool
) -> None:
    folder = tmp_path / "runs"
    with another_process(folder, ends=ends):
        theirs = set(folder.glob("*.gz"))
        record(3, keep_last=1, **EACH_STEP)
    assert len(theirs) == 2
    assert {path for path in theirs if path.exists()} == (set() if ends else theirs)
    assert len(set(folder.glob("*.gz")) - theirs) == 1


def test_a_folder_past_five_gigabytes_is_spoken_of_once(record: Callable[..., Recorder], tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    large = tmp_path / "runs" / "large.pt.trace.json"
    with large.open("wb") as stream:
        stream.truncate(retention.LARGE_BYTES)  # one hole: it takes no room
    with pytest.warns(RecordingWarning, match=r"5\.0 GB of traces; max_total_size= or keep_last=") as caught:
        record(3, **EACH_STEP)
    assert len(caught) == 1
    record(1, **EACH_STEP)
    assert large.exists()


@pytest.mark.parametrize(
    ("option", "value"), [("keep_last", 0), ("max_total_size", "much"), ("max_total_size", 0), ("max_total_size", True)]
)
def test_bounds_that_cannot_be_used_are_refused(option: str, value: object) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(OptionError, match=option):
        RecordingOptions(**options)


def test_sizes_may_be_words() -> None:
    words = (5, "5", "2 KB", "1.5GB", "3 tb", "20 GiB", "1 kib", "3 M")
    sizes = [RecordingOptions(max_total_size=word).max_total_size for word in words]
    assert sizes == [5, 5, 2_000, 1_500_000_000, 3_000_000_000_000, 21_474_836_480, 1_024, 3_000_000]
