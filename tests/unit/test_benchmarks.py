"""The benchmark programs run at a tiny size, and what they measure with is right."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recorded_traces import needs_shared_traces

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def run(program: str, *arguments: object) -> str:
    command = [sys.executable, str(BENCHMARKS / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def event(category: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def small_trace(folder: Path) -> Path:
    """One step: a function that runs an operator, which launches a kernel; backward's arrow; an instant; a name."""
    # Epoch microseconds with nanoseconds, where float64 is too coarse.
    start = 1712195495519689
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": start, "args": {"name": "100% python"}},
        event("user_annotation", "ProfilerStep#5", start, 100),
        event("python_function", "train.py(7): step", start + 1, 90, **{"Python id": 3, "Python parent id": None}),
        event(
            "cpu_op", "aten::mul", start + 5, 20, **{"External id": 11, "Sequence number": 4, "Input Dims": [[2, 2]]}
        ),
        event("cuda_runtime", "cudaLaunchKernel", start + 8, 2, **{"correlation": 21, "External id": 11}),
        event("kernel", "mul_kernel", start + 30, 7.013, 7, correlation=21, device=0, stream=7),
        {"ph": "s", "id": 4, "pid": 1, "tid": 1, "ts": start + 5, "cat": "fwdbwd", "name": "fwdbwd"},
        {"ph": "f", "id": 4, "pid": 1, "tid": 1, "ts": start + 40, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": start + 101, "s": "g"},
    ]
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}).replace(f'"ts": {start},', f'"ts": {start}.047,')
    path = folder / "small.pt.trace.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def events_of(path: Path, name: str) -> list[dict[str, Any]]:
    content = json.loads(path.read_text(), parse_float=str)
    return [event for event in content["traceEvents"] if event["name"] == name]


def test_a_larger_trace_moves_each_copy_in_time_and_gives_it_identifiers_of_its_own(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    run("larger_trace.py", small_trace(tmp_path), large, "--copies", 3)
    steps = events_of(large, "ProfilerStep#5") + events_of(large, "ProfilerStep#6") + events_of(large, "ProfilerStep#7")
    # The window of 100 µs, then a pause of 1 ms; to the nanosecond.
    assert [step["ts"] for step in steps] == [f"{1712195495519689 + 1100 * copy}.047" for copy in range(3)]
    for key, name in [("correlation", "mul_kernel"), ("External id", "aten::mul"), ("Python id", "train.py(7): step")]:
        assert len({event["args"][key] for event in events_of(large, name)}) == 3
    launches, kernels = events_of(large, "cudaLaunchKernel"), events_of(large, "mul_kernel")
    assert [at["args"]["correlation"] for at in launches] == [at["args"]["correlation"] for at in kernels]
    assert [at["args"]["External id"] for at in launches] == [
        at["args"]["External id"] for at in events_of(large, "aten::mul")
    ]
    assert len({arrow["id"] for arrow in events_of(large, "fwdbwd")}) == 3
    assert {at["args"]["Python parent id"] for at in events_of(large, "train.py(7): step")} == {None}
    assert [at["args"]["name"] for at in events_of(large, "process_name")] == ["100% python"]


MEASURE_TWO = """
import json, sys
from measure import Program, run_once
small = run_once(Program("small", [sys.executable, "-c", "print('done')"]))
large = run_once(Program("large", [sys.executable, "-c", "print(len(bytearray(300_000_000)))"]))
print(json.dumps([small.output, small.peak_bytes, large.peak_bytes]))
"""


def test_a_sample_holds_the_peak_of_the_process_it_measured() -> None:
    # In a process of its own: a child's peak starts at the size of the process that forks it.
    done = subprocess.run([sys.executable, "-c", MEASURE_TWO], cwd=BENCHMARKS, capture_output=True, check=True)
    output, small, large = json.loads(done.stdout)
    assert output == "done\n"
    assert small < 300_000_000 < large < 600_000_000


@pytest.mark.usefixtures("on_path")
def test_a_program_that_fails_is_no_sample() -> None:
    from measure import Program, run_once

    with pytest.raises(RuntimeError, match=r"exit code 3(.|\n)*no such trace"):
        run_once(
            Program("bad", [sys.executable, "-c", "import sys; print('no such trace', file=sys.stderr); sys.exit(3)"])
        )


@pytest.mark.usefixtures("on_path")
def test_every_round_runs_every_program_once_and_the_order_turns(tmp_path: Path) -> None:
    from measure import Program, run_rounds

    log = tmp_path / "log"
    code = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"
    programs = [Program(name, [sys.executable, "-c", code, str(log), name]) for name in "abc"]
    runs = run_rounds(programs, 3)
    assert {name: len(samples) for name, samples in runs.samples.items()} == {"a": 3, "b": 3, "c": 3}
    orders = [log.read_text()[at : at + 3] for at in range(0, 12, 3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)
    assert {order[0] for order in orders[1:]} == {"a", "b", "c"}


@pytest.mark.usefixtures("on_path")
def test_ratios_compare_runs_of_one_round() -> None:
    from measure import Runs, Sample, Spread

    def samples(*seconds: float) -> list[Sample]:
        return [Sample(wall, wall, 0, "") for wall in seconds]

    # The machine was ten times slower in round 2, for both.
    runs = Runs({"slow": samples(4, 40, 6), "quick": samples(2, 20, 2)})
    assert runs.ratio("slow", "quick", lambda sample: sample.wall_s) == Spread(2, 2, 3)


@pytest.mark.usefixtures("on_path")
def test_growth_is_one_where_each_further_megabyte_costs_the_same() -> None:
    from reading import marginal_growth

    start_up = 0.5
    sizes = [1.0, 2.0, 4.0]
    assert marginal_growth(sizes, [[start_up + 0.1 * size] for size in sizes]).median == pytest.approx(1)
    assert marginal_growth(sizes, [[start_up + 0.1 * size**2] for size in sizes]).median == pytest.approx(2)


@pytest.mark.usefixtures("on_path")
def test_a_report_that_lost_device_time_is_refused() -> None:
    from reading import check_copies

    def report(total: int, placed: int) -> dict[str, Any]:
        return {
            "totals": {"device_ns": total},
            "lines": [{"self_device_ns": placed}],
            "no_line": {"self_device_ns": 0},
        }

    check_copies({1: report(5, 5), 2: report(10, 10)})
    for wrong in ({1: report(5, 4)}, {1: report(0, 0)}, {1: report(5, 5), 2: report(9, 9)}):
        with pytest.raises(RuntimeError, match="device time"):
            check_copies(wrong)


def test_the_timelines_figures_are_measured(tmp_path: Path) -> None:
    result = tmp_path / "timeline.json"
    sizes = ["--events", "1,6", "--windows", 5, "--repeats", 1]
    printed = run("timeline.py", "--trace", small_trace(tmp_path), "--json", result, *sizes)
    assert "window, p95, CPU ms" in printed
    goals = json.loads(result.read_text())["goals"]
    assert len(goals) == 8
    assert all(goal["measured"]["median"] > 0 for goal in goals)


def test_reading_runs_and_its_figures_reach_the_page(tmp_path: Path) -> None:
    result = tmp_path / "reading.json"
    options = ["--repeats", 1, "--large-mb", 0.001, "--forms", "json.gz", "--growth", "1,2,3", "--work", tmp_path]
    options += ["--training-steps", 1]
    printed = run("reading.py", "--trace", small_trace(tmp_path), "--json", result, *options)
    assert "times faster than HTA parse" in printed
    measured = json.loads(result.read_text())
    assert all(goal["measured"]["median"] > 0 for goal in measured["goals"] if "faster" in goal["claim"])
    for kind in ("inference", "training"):
        assert set(measured["samples"][f"{kind}, growth"]) == {"1", "2", "3"}
        assert any(goal["claim"].startswith(f"{kind}, ") and "faster" in goal["claim"] for goal in measured["goals"])
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []

    page = tmp_path / "page.md"
    page.write_text("prose\n<!-- figures -->\nold figures\n")
    run("figures.py", result, "--page", page)
    assert page.read_text().startswith("prose\n<!-- figures -->\n\n## Reading, Python 3.")
    assert "old figures" not in page.read_text()
    assert "| torch-tb-profiler load |" in page.read_text()


def test_the_language_server_is_measured_beside_one_that_does_nothing(tmp_path: Path) -> None:
    result, trace = tmp_path / "lsp.json", small_trace(tmp_path)
    sizes = ["--repeats", 1, "--rounds", 3, "--starts", 1]
    printed = run("lsp_latency.py", *sizes, "--trace", trace, "--json", result)
    claims = [goal["claim"] for goal in json.loads(result.read_text())["goals"]]
    assert claims == [
        "hover on a hot line: p99, ms", "hover on a function of 2,000 lines: p99, ms", "inlay hints, 60 lines: p99, ms",
        "keystroke: p99, ms", "inlay hints after the keystrokes: p99, ms",
        "first annotations, profile in the cache, ms", "the same from the start of the process, ms",
        "new trace of 62 MB to annotations, s", "memory after that, MB",
    ]  # fmt: skip
    assert all(claim in printed for claim in claims)
    assert "idle, p99" in printed


@needs_shared_traces
@pytest.mark.shared_traces
def test_ranks_are_made_read_and_measured_beside_hta(tmp_path: Path) -> None:
    result = tmp_path / "ranks.json"
    printed = run("ranks.py", "--quick", "--json", result, "--work", tmp_path)
    assert "2 ranks: times faster than HTA" in printed
    measured = json.loads(result.read_text())
    assert set(measured["samples"]) == {"2 ranks", "4 ranks"}
    for samples in measured["samples"].values():
        assert all(one["peak_bytes"] > 0 < one["cpu_s"] for runs in samples.values() for one in runs)
    assert [path.name for path in tmp_path.iterdir()] == ["ranks.json"]


@pytest.mark.usefixtures("on_path")
def test_a_straggler_counts_as_found_with_its_cause_and_line_alone() -> None:
    from ranks import found_share

    truth = {
        "stragglers": [
            {"rank": 3, "cause": "work", "file": "/a/model.py", "line": 7},
            {"rank": 5, "cause": "hardware", "file": "", "line": 0},
        ]
    }
    right = [
        {"rank": 3, "cause": "work", "file": "/a/model.py", "line": 7},
        {"rank": 5, "cause": "hardware", "file": "/a/model.py", "line": 9},
    ]
    assert found_share({"stragglers": right}, truth) == (1.0, [])
    for change in ({"cause": "host"}, {"line": 8}, {"rank": 4}):
        share, wrong = found_share({"stragglers": [right[0] | change, right[1]]}, truth)
        assert (share, len(wrong)) == (0.5, 1)


@pytest.mark.usefixtures("on_path")
def test_the_memory_of_a_program_is_that_of_all_its_processes() -> None:
    from measure import Program
    from tree import run_tree

    hold = "held = bytearray(b'x') * 100_000_000; import time; time.sleep(1)"
    code = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {hold!r}]); {hold}; child.wait()"
    sample = run_tree(Program("two", [sys.executable, "-c", code]))
    assert 200_000_000 < sample.peak_bytes < 300_000_000


@pytest.mark.slow
def test_steps_dense_in_lines_are_recorded_with_and_without_lines(tmp_path: Path) -> None:
    result = tmp_path / "dense.json"
    printed = run("dense.py", "--repeats", 1, "--kind", "loop", "--json", result)
    assert "loop: stated cost / what lines added" in printed
    (pair,) = json.loads(result.read_text())["samples"]["loop"]
    assert pair["lines"]["inside_ms"] > pair["torch"]["inside_ms"] > 0
    assert pair["lines"]["lowered"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny"])
def test_recording_runs_every_profiler_and_each_leaves_a_trace(model: str, tmp_path: Path) -> None:
    result = tmp_path / "recording.json"
    sizes = ["--tiny-steps", 40, "--tiny-active", 4]
    printed = run("recording.py", "--repeats", 1, "--model", model, *sizes, "--json", result)
    assert "step outside the window" in printed
    (fits,) = json.loads(result.read_text())["samples"][model]
    assert set(fits) == {"none", "torch", "torch-stacks", "deep"}
    assert all(len(fit["step_ms"]) == 39 for fit in fits.values())
    assert {name for name, fit in fits.items() if fit["trace_bytes"] > 0} == {"torch", "torch-stacks", "deep"}
    recorded = {name: sum(all(flags) for flags in fit["recording"]) for name, fit in fits.items()}
    assert recorded["none"] == 0
    assert 3 <= recorded["deep"] <= 4


@pytest.mark.slow
def test_what_advice_promises_stands_beside_what_the_mended_program_saves(tmp_path: Path) -> None:
    output = run("advice.py", "--rule", "DS013", "--repeats", 1, "--steps", 4, "--json", tmp_path / "advice.json")
    assert "error of the estimated savings" in output
    ((found,),) = json.loads((tmp_path / "advice.json").read_text())["samples"].values()
    assert 0 < found["estimated"] < 1
    assert found["mended_ms"] < found["bad_ms"]


@pytest.mark.usefixtures("on_path")
def test_the_measured_saving_is_the_part_of_the_bad_step_that_the_mended_one_lacks() -> None:
    from advice import Round, middle

    rounds = [Round(10.0, 6.0, 0.5, []), Round(20.0, 15.0, 0.3, []), Round(30.0, 15.0, 0.4, [])]
    assert rounds[0].measured == 0.4
    assert middle(rounds) == (20.0, 15.0, 0.4, 0.25)


@pytest.mark.usefixtures("on_path")
def test_frames_are_summed_up_over_all_motions() -> None:
    from frames import add_motions, percentile
    from results import Result

    quick, slow = {"intervals": [16.0] * 95, "work": [2.0] * 95}, {"intervals": [50.0] * 5, "work": [40.0] * 5}
    result = Result("frames", {}, {}, {}, [], {}, {})
    add_motions(
        result, [{"frames": {"zooming": quick, "panning": slow}, "cpu": {"page": [4, 5, 20], "compositor": [3]}}]
    )
    page, page_p95, _, _, median, p95, rate = result.goals
    assert (page.measured.median, page.is_met, page_p95.measured.median, page_p95.is_met) == (5, True, 20, False)
    assert (median.measured.median, p95.measured.median) == (16, 50)
    assert rate.measured.median == pytest.approx(100 / (0.095 * 16 + 0.005 * 50))
    assert (median.is_met, rate.is_met) == (True, False)
    ((_, first, second),) = result.tables.values()
    assert first[:3] == ["zooming", "62.5", "16.0"]
    assert second[:3] == ["panning", "20.0", "50.0"]
    assert percentile([1, 2, 3], 1.0) == 3


def test_many_ranks_are_measured_with_none_one_and_all_of_them_recorded(tmp_path: Path) -> None:
    told = run("many_ranks.py", "--quick", "--json", tmp_path / "told.json")
    assert [line.split("|")[1].strip() for line in told.splitlines()[2:]] == ["none", "first", "all"]
    rows = json.loads((tmp_path / "told.json").read_text())
    assert rows["none"]["step"] == 1.0
    assert rows["all"]["window_ms"] > rows["none"]["window_ms"]


def test_dormant_steps_are_measured(tmp_path: Path) -> None:
    out = run("on_demand.py", "--pairs", 2, "--json", tmp_path / "out.json", "--folder", tmp_path / "traces")
    assert "transformer: CPU time of a step, dormant / without" in out
    assert len(json.loads((tmp_path / "out.json").read_text())["samples"]["tiny"]) == 2
    assert not (tmp_path / "traces").exists()
