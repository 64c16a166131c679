"""`deepscope export` as it is used: each form from a real trace, read back by its own readers, and what it refuses."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from deepscope.store import load_profile
from recorded_traces import OWN_TRACES
from trace_builder import TraceBuilder
from warm_python import run_command

DEVICE = OWN_TRACES / "grafted-device.json.gz"
CPU = OWN_TRACES / "torch-with-stack.json.gz"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return run_command("export", *words, COLUMNS="80")


def standard_output(*words: str) -> bytes:
    """Of a Python that starts."""
    command = [sys.executable, "-m", "deepscope", "export", *words]
    return subprocess.run(command, capture_output=True, check=True, timeout=300).stdout


def test_csv_and_parquet_are_the_same_tables(tmp_path: Path) -> None:
    import pyarrow.parquet

    for form in ("csv", "parquet"):
        done = run("--format", form, str(DEVICE), "-o", str(tmp_path / form))
        assert done.returncode == 0, done.stderr
    names = sorted(path.stem for path in (tmp_path / "csv").iterdir())
    assert names == sorted(path.stem for path in (tmp_path / "parquet").iterdir())
    assert {"lines", "operator_details", "kernel_details", "step_trace_time", "op_statistic"} <= set(names)
    assert {"memory_record", "operator_memory", "communication", "findings", "parts"} <= set(names)
    for name in names:
        with (tmp_path / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        table = pyarrow.parquet.read_table(tmp_path / "parquet" / f"{name}.parquet")
        assert len(rows) == table.num_rows
        if rows:
            assert list(rows[0]) == table.column_names


@pytest.mark.parametrize("trace", [DEVICE, CPU], ids=["device", "cpu"])
@pytest.mark.parametrize("metric", ["device", "cpu"])
@pytest.mark.parametrize("depth", ["line", "kernel"])
def test_folded_and_speedscope_hold_the_metrics_time(trace: Path, metric: str, depth: str) -> None:
    profile = load_profile(trace)
    rows = [*profile.lines, profile.no_line]
    expected = sum(row.self_device_ns if metric == "device" else row.self_cpu_ns for row in rows)
    folded = run("--format", "folded", "--metric", metric, "--depth", depth, str(trace)).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == expected
    assert (";aten::" in folded) is (metric == "device" and depth == "kernel")
    shown = json.loads(run("--format", "speedscope", "--metric", metric, "--depth", depth, str(trace)).stdout)
    assert shown["profiles"][0]["endValue"] == expected
    assert all(("CPU time of" in one["name"]) is (metric == "cpu") for one in shown["profiles"])


def peaks_of_steps(trace: Path) -> dict[int, int]:
    """The most that the file says was allocated in each step, or as it began."""
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    memory = sorted((one["ts"], one["args"]["Total Allocated"]) for one in events if one["name"] == "[memory]")
    found = {}
    for one in events:
        if one["name"].startswith("ProfilerStep#") and one["ph"] == "X":
            before = [level for ts, level in memory if ts < one["ts"]]
            inside = [level for ts, level in memory if one["ts"] <= ts < one["ts"] + one["dur"]]
            found[int(one["name"][13:])] = max(before[-1:] + inside)
    return found


def test_scalars_are_read_back_by_tensorboard(tmp_path: Path) -> None:
    done = run("--format", "tensorboard", str(CPU), "-o", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    found = EventAccumulator(str(tmp_path / "runs"))
    found.Reload()
    profile = load_profile(CPU)
    tags = found.Tags()["scalars"]
    assert {"deepscope/step_ms", "deepscope/busy_percent", "deepscope/memory_cpu_peak_mib"} <= set(tags)
    points = {one.step: one for one in found.Scalars("deepscope/step_ms")}
    assert {step: one.value for step, one in points.items()} == pytest.approx(
        {step.number: step.duration_ns / 1e6 for step in profile.steps}
    )
    peaks = {one.step: one.value * (1 << 20) for one in found.Scalars("deepscope/memory_cpu_peak_mib")}
    assert peaks == pytest.approx(peaks_of_steps(CPU), abs=1)
    waits = {step.number: step.phases.get("data", 0) / 1e6 for step in profile.steps}
    assert {one.step: one.value for one in found.Scalars("deepscope/phase_data_ms")} == pytest.approx(waits)


def test_what_is_one_file_goes_to_standard_output_or_to_the_file(tmp_path: Path) -> None:
    for form in ("json", "pprof", "perfetto", "html"):
        written = tmp_path / form
        assert run("--format", form, str(DEVICE), "-o", str(written)).returncode == 0
        assert standard_output("--format", form, str(DEVICE)) == written.read_bytes()
    assert json.loads((tmp_path / "json").read_text())["totals"]["device_ns"] == load_profile(DEVICE).totals.device_ns
    assert gzip.decompress((tmp_path / "pprof").read_bytes())
    assert json.loads((tmp_path / "perfetto").read_text())["traceEvents"]
    assert (tmp_path / "html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("form", ["csv", "parquet", "tensorboard"])
def test_a_form_of_many_files_wants_a_folder(form: str, tmp_path: Path) -> None:
    done = run("--format", form, str(DEVICE))
    assert done.returncode == 2
    assert done.stderr == f"deepscope: --format {form}: a folder of files; name it with -o FOLDER\n"
    (tmp_path / "taken").write_text("")
    done = run("--format", form, str(DEVICE), "-o", str(tmp_path / "taken"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_step_is_exported_alone(tmp_path: Path) -> None:
    step = load_profile(DEVICE).steps[0].number
    assert run("--format", "csv", str(DEVICE), "--step", str(step), "-o", str(tmp_path)).returncode == 0
    expected = load_profile(DEVICE, step=step).totals.device_ns
    with (tmp_path / "kernel_details.csv").open(newline="") as stream:
        assert sum(int(row["duration_ns"]) for row in csv.DictReader(stream)) == expected
    done = run("--format", "perfetto", str(DEVICE), "--step", "77")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_several_ranks_stand_below_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    document = json.loads(gzip.decompress(DEVICE.read_bytes()))
    for rank in (0, 1):
        document["deepscope"]["rank"], document["deepscope"]["world_size"] = rank, 2
        stamp = f"run.rank{rank}.1795337125791926736.pt.trace.json"
        (folder / stamp).write_text(json.dumps(document))
    assert run("--format", "csv", str(folder), "-o", str(tmp_path / "csv")).returncode == 0
    with (tmp_path / "csv" / "kernel_details.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [sum(row["rank"] == rank for row in rows) for rank in "01"] == [len(rows) // 2] * 2
    assert sum(int(row["duration_ns"]) for row in rows) == load_profile(folder).totals.device_ns
    shown = json.loads(run("--format", "perfetto", str(folder)).stdout)
    processes = [one["args"]["name"] for one in shown["traceEvents"] if one["name"] == "process_name"]
    assert {"rank 0: Training", "rank 1: Training"} <= set(processes)
    assert run("--format", "tensorboard", str(folder), "-o", str(tmp_path / "tb")).returncode == 0
    assert sorted(path.name for path in (tmp_path / "tb").iterdir()) == ["rank0", "rank1"]


def test_counters_are_scalars_of_each_step(tmp_path: Path) -> None:
    builder = TraceBuilder().step(7, 0, 100_000).step(8, 100_000, 100_000).op("aten::mm", 10_000, 5_000)
    for at, value in ((0, 10.0), (150_000, 30.0), (200_000, 30.0)):
        builder.counter("DeepScope: GPU SM clock", at, **{"0": value}).counter("theirs", at, x=1)
    done = run("--format", "tensorboard", str(builder.write(tmp_path / "a.json")), "-o", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    found = EventAccumulator(str(tmp_path / "runs"))
    found.Reload()
    assert [tag for tag in found.Tags()["scalars"] if "counter" in tag] == ["deepscope/counter/GPU_SM_clock/0"]
    assert {one.step: one.value for one in found.Scalars("deepscope/counter/GPU_SM_clock/0")} == {7: 10.0, 8: 20.0}


def test_counters_of_a_whole_run_have_one_scale(tmp_path: Path) -> None:
    second = 1_000_000_000
    builder = TraceBuilder(deepscope={"counters": {"interval_ns": second, "samples": 61}})
    for number in range(61):
        builder.counter("DeepScope: GPU SM clock", number * second + number, **{"0": 1980.0 - number})
    for number in (0, 50, 60):  # what does not change is not written
        builder.counter("DeepScope: memory", number * second + 500, used=1e9 + number)
    done = run("--format", "tensorboard", str(builder.write(tmp_path / "a.json")), "-o", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    found = EventAccumulator(str(tmp_path / "runs"))
    found.Reload()
    assert [one.step for one in found.Scalars("deepscope/counter/GPU_SM_clock/0")] == list(range(61))
    assert [one.step for one in found.Scalars("deepscope/counter/memory/used")] == [0, 50, 60]
