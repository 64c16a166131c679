"""The report of a snapshot of torch's memory, as the command writes it."""

from __future__ import annotations

import csv
import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deepscope.cli.entry import deepscope
from memory_snapshots import BACKWARD, Allocator, of_line, write
from warm_python import run_command


def report(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(deepscope, ["report", str(path), *arguments], env={"COLUMNS": "300"})


def refused(path: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the only line of the command's messages."""
    done = run_command("report", str(path), *arguments, folder=path.parent)
    assert (done.stdout, done.stderr.count("\n")) == ("", 1), done.stderr
    return done.returncode, done.stderr


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    allocator = Allocator()
    for step in range(7):
        allocator.annotate(f"ProfilerStep#{step}", "START")
        activation = allocator.alloc(3 << 20, of_line(10), "activations\x1b[31m")
        allocator.alloc(1 << 20, of_line(20))
        gradient = allocator.alloc(2 << 20, BACKWARD)
        allocator.free(activation)
        allocator.free(gradient)
    allocator.fail(1 << 30, 5 << 20, of_line(30))
    taken = allocator.snapshot()
    taken["device_traces"][0] = allocator.entries[3:]  # the first activation is released in the history alone
    return write(tmp_path / "gpu.pickle", taken)


def test_the_text_says_who_held_what(snapshot: Path) -> None:
    done = report(snapshot, "-n", "2", "--by", "stack")
    assert done.exit_code == 0
    text = " ".join(done.output.split())
    for words in (
        "12MiB live at the peak",
        "1GiB were asked for",
        "5MiB free on the device, 7MiB live, 20MiB reserved",
        "most of it at /home/me/train.py:20 (7MiB)",
        "/home/me/train.py:20: 1MiB a step",
        "4 steps by the annotation ProfilerStep",
        "2 of 3 rows shown",
        "device 0: live when the last allocation failed",
        "at::_ops::mm::call(at::Tensor const&, at::Tensor const&) /usr/lib",
        "linear /home/me/train.py(20): step",
    ):
        assert words in text, text
    assert "\x1b" not in done.output
    assert "torch::unwind" not in text


def test_what_came_before_the_history_is_told(snapshot: Path) -> None:
    words = "3MiB of it were allocated before the history begins: their lines are not known"
    assert words not in report(snapshot).output
    content = pickle.loads(snapshot.read_bytes())
    content["device_traces"][0] = content["device_traces"][0][-6:]  # the last activation is only released in it
    assert words in report(write(snapshot, content)).output


def test_json_is_the_whole_report(snapshot: Path) -> None:
    found = json.loads(report(snapshot, "--format", "json").output)
    (device,) = found["devices"]
    peak = device["peak"]
    assert found["snapshot_format"] == 1
    assert sum(row["size_bytes"] for row in peak["holders"]) == peak["allocated_bytes"] == 12 << 20
    assert device["failures"][0]["asked_bytes"] == 1 << 30
    assert "stacks" not in peak["holders"][0]
    short = json.loads(report(snapshot, "--format", "json", "-n", "1", "--by", "stack").output)["devices"][0]["peak"]
    assert (len(short["holders"]), short["count"]) == (1, 3)
    assert short["holders"][0]["stacks"][0]["blocks"] == 7


def test_csv_is_one_table_of_whole_numbers(snapshot: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(report(snapshot, "--format", "csv").output)))
    peak = [row for row in rows if row["moment"] == "peak"]
    assert sum(int(row["size_bytes"]) for row in peak) == 12 << 20
    assert {row["moment"] for row in rows} == {"peak", "failure"}
    assert [row["category"] for row in peak if row["line"] == "10"] == ["activations\\x1b[31m"]


@pytest.mark.parametrize("arguments", [["--by", "operator"], ["--sort", "self"], ["--line", "a.py:1"], ["--rank", "0"]])
def test_options_of_traces_do_not_go_with_it(snapshot: Path, arguments: list[str]) -> None:
    code, words = refused(snapshot, *arguments)
    assert code == 2
    assert f"{arguments[0]} {arguments[1]}: goes with traces, not with memory snapshots" in words


class Harm:
    """Writes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_hostile_snapshot_runs_nothing_and_is_told_in_a_line(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    path = write(tmp_path / "a.pickle", {"segments": [Harm(harm)]})
    code, words = refused(path)
    assert code == 1
    assert "more than plain values" in words
    assert not harm.exists()
    pickle.loads(path.read_bytes())
    assert harm.exists()


def test_a_snapshot_is_known_by_its_first_byte(snapshot: Path) -> None:
    other = snapshot.rename(snapshot.with_name("snapshot"))
    assert "live at the peak" in report(other).output


@pytest.mark.parametrize("content", [b"", b"\x80\x04", b"nothing"])
def test_what_is_no_snapshot_is_told_in_a_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(content)
    code, words = refused(path)
    assert code == 1
    assert words.startswith("deepscope: ")
