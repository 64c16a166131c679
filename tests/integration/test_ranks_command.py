"""`deepscope ranks` as a user runs it: whole processes, real traces, bad input."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deepscope.report.ranks import BY
from deepscope.store.load import load_profile
from recorded_traces import each_trace
from trace_builder import TraceBuilder
from warm_python import run_command

US = 1000


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command("ranks", *arguments, **{"COLUMNS": "80", **environment})


def fails(*arguments: str) -> str:
    """What must fail: one line on standard error, nothing on standard output, exit code 1, or 2 for an option."""
    done = run(*arguments)
    code = 2 if done.stderr.startswith("deepscope: --") else 1
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    (message,) = done.stderr.splitlines()
    assert message.startswith("deepscope: ")
    return message


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three ranks of four; rank 1 has 300 µs more to do in each of its two steps."""
    found = tmp_path_factory.mktemp("run")
    for number in range(3):
        built = TraceBuilder(distributedInfo={"rank": number, "world_size": 4})
        for step in range(2):
            at = 1000 * US * step
            built.step(step, at, 900 * US)
            built.line("/p/net.py", 7, "f", at, (200 + 300 * (number == 1)) * US)
            built.op("aten::mm", at + 10 * US, (100 + 300 * (number == 1)) * US)
        built.write(found / f"rank{number}.json")
    return found


def test_the_ranks_of_a_folder_are_shown_with_the_slowest_first(folder: Path) -> None:
    done = run(str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 of 4 (0-2) · no trace of 3" in done.stdout
    lines = done.stdout.splitlines()
    first = next(at for at, line in enumerate(lines) if line.lstrip().startswith("rank "))
    assert [line.split()[0] for line in lines[first + 1 : first + 5]] == [
        "0",
        "1",
        "2",
        "median",
    ]  # steps of equal length
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout


def test_the_numbers_are_those_of_each_ranks_own_report(folder: Path) -> None:
    told = json.loads(run(str(folder), "--format", "json").stdout)
    assert [row["rank"] for row in told["ranks"]] == [0, 1, 2]
    for row in told["ranks"]:
        profile = load_profile(folder, rank=row["rank"])
        assert row["compute_ns"] == profile.totals.device_ns // 2
        assert row["steps"] == 2
    assert [row["compute_ns"] for row in told["ranks"]] == [100 * US, 400 * US, 100 * US]
    assert [(row["line"], row["min_ns"], row["max_ns"], row["max_rank"]) for row in told["lines"]] == [
        (7, 200 * US, 500 * US, 1)
    ]


def test_one_step_can_be_chosen(folder: Path) -> None:
    told = json.loads(run(str(folder), "--step", "1", "--format", "json").stdout)
    assert {row["steps"] for row in told["ranks"]} == {1}
    assert "--step 9" in fails(str(folder), "--step", "9")


def test_one_rank_is_shown_in_detail(folder: Path) -> None:
    done = run(str(folder), "--rank", "1")
    assert re.search(r"aten::mm +400µs +100µs +\+300µs", done.stdout)
    assert "--rank 3: no trace of this rank; there are: 0-2" in fails(str(folder), "--rank", "3")
    assert "--by clock: one rank has no such table" in fails(str(folder), "--rank", "1", "--by", "clock")


def test_every_table_can_be_had_alone_and_as_csv(folder: Path) -> None:
    told = json.loads(run(str(folder), "--format", "json").stdout)
    keys = {by: {"operator": "varying"}.get(by, f"{by}s") for by in BY}
    for by in ("rank", "line", "operator"):
        assert run(str(folder), "--by", by).returncode == 0
        rows = list(csv.DictReader(io.StringIO(run(str(folder), "--by", by, "--format", "csv").stdout)))
        assert len(rows) == len(told[keys[by]])
    assert keys.keys() == set(choices())


def choices() -> tuple[str, ...]:
    """The words of `--by` that the command takes."""
    from deepscope.cli.ranks import BY as TAKEN

    return TAKEN


def test_what_is_no_run_is_told_in_a_line(tmp_path: Path) -> None:
    assert "no trace in this folder" in fails(str(tmp_path))
    (tmp_path / "x.json").write_text('{"traceEvents": [')
    fails(str(tmp_path / "x.json"))
    fails(str(tmp_path / "none"))


def test_a_rank_that_cannot_be_read_is_told_and_the_others_are_shown(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    whole = (tmp_path / "rank2.json").read_text()
    (tmp_path / "rank2.json").write_text(whole[: len(whole) - 300])
    done = run(str(tmp_path))
    assert done.returncode == 0
    assert "1 trace could not be used; see the end" in done.stdout
    assert "rank2.json" in done.stdout.partition("Left out")[2]
    assert "2 of 4 (0-1)" in done.stdout
    assert "3 of 4 (0-2)" in run(str(tmp_path), "--partial").stdout


@pytest.mark.parametrize("path", each_trace())
def test_a_single_trace_tells_what_it_can(path: Path) -> None:
    from deepscope.ranks.rank_detail import rank_detail
    from deepscope.ranks.side_by_side import side_by_side
    from deepscope.report.ranks import rank_text, ranks_text
    from deepscope.store.ranks import read_ranks

    read = read_ranks(path)
    report = side_by_side(read.summaries, read.failures, str(path))
    (row,) = report.ranks
    for text in (
        ranks_text(report, width=80),
        rank_text(rank_detail(read.summaries, report, row.rank), report, width=80),
    ):
        assert all(line.isprintable() for line in text.split("\n"))
        assert max(map(len, text.splitlines())) <= 80
    assert "is the only one here" in ranks_text(report, width=200)


def test_ranks_with_and_without_a_device_stand_side_by_side(tmp_path: Path) -> None:
    for number in range(2):
        built = TraceBuilder(
            distributedInfo={"rank": number, "world_size": 2},
            deviceProperties=[{"id": 0, "name": "NVIDIA H100"}] if number else [],
        )
        built.step(0, 0, 900 * US).op("aten::mm", 10 * US, 100 * US)
        if number:
            built.kernel("gemm", 20 * US, 200 * US, 300 * US)
        built.write(tmp_path / f"rank{number}.json")
    done = run(str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "NVIDIA H100 on 1" in done.stdout
    rows = json.loads(run(str(tmp_path), "--format", "json").stdout)["ranks"]
    assert [row["compute_ns"] for row in rows] == [100 * US, 300 * US]
    assert run(str(tmp_path), "--rank", "0").returncode == 0
