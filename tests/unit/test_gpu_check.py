"""`scripts/gpu-check` and the checks that it runs, as far as they can be tested without a device."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope.records import Line, Numbers, Profile, Resolved, Totals, TraceInfo
from gpu.recorded import Recorded, line_of, union_ns

WITHOUT_MARKS = {"test_compiled", "test_counters", "test_models"}
"""Checks of lines that something else than a mark names, and of no line."""

GPU = Path(__file__).resolve().parents[1] / "gpu"


def cuda_is_available() -> bool:
    import torch

    return torch.cuda.is_available()


def marks_used(path: Path) -> set[str]:
    """The marks that a module asks for with `.at("mark")`, `check_wait(found, "mark", …)`, `line_of(HERE, "mark")`."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    at = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "at"]
    second = {"check_wait", "line_of"}
    waits = [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id in second]
    return {node.value for node in [*at, *waits] if isinstance(node, ast.Constant)}


@pytest.mark.parametrize("path", sorted(GPU.glob("test_*.py")), ids=lambda path: path.stem)
def test_every_mark_that_a_gpu_check_asks_for_stands_on_one_line(path: Path) -> None:
    if path.stem == "test_advice":  # its marks stand in its programs
        for program in (GPU.parent / "targets" / "advice" / "device").glob("ds*.py"):
            line_of(program, "mistake")
        return
    marks = marks_used(path)
    assert marks or path.stem in WITHOUT_MARKS
    for mark in marks:
        assert line_of(path, mark) > 0


def trace_file(folder: Path) -> Path:
    """Two operators on one thread, a launch in each, work on two streams that overlaps by 2 µs."""
    text = """{"traceEvents": [
      {"ph": "X", "cat": "cpu_op", "name": "aten::sin", "pid": 1, "tid": 1, "ts": 0.5, "dur": 10, "args": {}},
      {"ph": "X", "cat": "cpu_op", "name": "aten::cos", "pid": 1, "tid": 1, "ts": 20, "dur": 10.001, "args": {}},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
       "args": {"correlation": 7}},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 21, "dur": 2,
       "args": {"correlation": 8}},
      {"ph": "X", "cat": "kernel", "name": "sin", "pid": 0, "tid": 7, "ts": 30, "dur": 5.003,
       "args": {"correlation": 7}},
      {"ph": "X", "cat": "kernel", "name": "cos", "pid": 0, "tid": 9, "ts": 33.003, "dur": 4,
       "args": {"correlation": 8}}
    ]}"""
    path = folder / "two.json"
    path.write_text(text)
    return path


def profile_of(code: Path, sin_ns: int, none_ns: int) -> Profile:
    line = Line(
        file=str(code),
        line=line_of(code, "sin"),
        function="forward",
        exact=True,
        self_device_ns=sin_ns,
        total_device_ns=sin_ns,
    )
    totals = Totals(device_ns=9003, busy_ns=7003, idle_ns=0, wall_ns=7003, wait_ns=0, steps=0, launches=0, operators=2)
    return Profile(
        metric="device",
        trace=TraceInfo(path="two.json"),
        totals=totals,
        lines=[line],
        no_line=Numbers(self_device_ns=none_ns),
        resolved=Resolved(),
    )


def test_the_truth_is_read_from_the_file_alone(tmp_path: Path) -> None:
    code = GPU / "test_lines.py"
    found = Recorded(profile_of(code, 5003, 4000), trace_file(tmp_path), code)
    assert [span.duration_ns for span in found.work_under("aten::sin")] == [5003]
    assert [span.duration_ns for span in found.work_under("aten::cos")] == [4000]
    assert union_ns(found.work) == 7003
    assert found.at("sin").self_device_ns == 5003
    assert found.at("matmul").self_device_ns == 0
    found.check_conservation()


def test_a_lost_nanosecond_fails_the_check(tmp_path: Path) -> None:
    code = GPU / "test_lines.py"
    found = Recorded(profile_of(code, 5003, 3999), trace_file(tmp_path), code)
    with pytest.raises(AssertionError):
        found.check_conservation()


def test_each_check_is_one_line_of_text(tmp_path: Path) -> None:
    shutil.copy(GPU / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_three.py").write_text(
        "import pytest\n\n"
        "@pytest.fixture(autouse=True)\ndef _needs_device():\n    pass\n\n"
        "@pytest.fixture(autouse=True)\ndef _clean_device():\n    pass\n\n"
        "def test_one_is_one():\n    assert 1 == 1\n\n"
        "def test_one_is_two():\n    assert 1 == 2\n\n"
        "def test_two_streams():\n    pytest.skip('one stream')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rN", "--no-header", "-p", "no:cacheprovider", "--line-each"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    lines = done.stdout.splitlines()
    assert "PASS  one is one" in lines, done.stdout + done.stderr
    assert "FAIL  one is two (call): assert 1 == 2" in lines
    assert "SKIP  two streams: one stream" in lines
    assert done.returncode == 1


def test_gpu_check_says_in_one_line_that_there_is_no_device(repository: Path) -> None:
    if cuda_is_available():
        pytest.skip("there is a CUDA device")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        ["bash", str(repository / "scripts" / "gpu-check")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "gpu-check: " in done.stderr.splitlines()[-1]
