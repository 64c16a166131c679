"""The command as a user runs it: whole processes, real traces, bad input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepscope.report.tables import TABLES, table_of_steps
from golden import matches_golden
from recorded_traces import (
    OWN_TRACES,
    SHARED_TRACES,
    each_trace,
    needs_shared_traces,
    own_paths,
    profile_of,
    trace_name,
)
from warm_python import run_command as run

COMMAND = [sys.executable, "-m", "deepscope"]


def run_cold(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a Python that starts."""
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def fails(*arguments: str, folder: Path | None = None) -> str:
    """Runs what must fail: one line on standard error, nothing on standard output, exit code 1, or 2 for an option."""
    done = run(*arguments, folder=folder)
    assert done.returncode == (2 if done.stderr.startswith("deepscope: --") else 1), done.stderr
    assert done.stdout == ""
    (message,) = done.stderr.splitlines()
    assert message.startswith("deepscope: ")
    assert message.isprintable()
    return message


def event(name: str, start: float, duration: float, **rest: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, **rest}


def trace(events: int = 50, **top: Any) -> dict[str, Any]:
    """A CPU trace: `events` operators of 10 µs, one a step of 20 µs, below frames of a function."""
    listed: list[dict[str, Any]] = []
    for number in range(events):
        start = 100.0 + 20 * number
        listed.append(event(f"ProfilerStep#{number}", start, 20, cat="user_annotation"))
        args = {"Python id": number + 1, "Python parent id": None}
        listed.append(event("train.py(3): work", start + 1, 15, cat="python_function", args=args))
        listed.append(event("aten::mm", start + 2, 10, args={"External id": number}))
    return {"schemaVersion": 1, **top, "traceEvents": listed}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "work.json.gz"
    path.write_bytes(gzip.compress(json.dumps(trace()).encode()))
    return path


def test_a_trace_is_reported_as_text_json_and_csv(written: Path) -> None:
    text = run_cold("report", str(written)).stdout
    assert "CPU only" in text
    assert "train.py:3" in text
    report = json.loads(run("report", str(written), "--format", "json").stdout)
    assert (report["format"], report["metric"]) == (1, "cpu_self")
    selves = sum(line["self_device_ns"] for line in report["lines"]) + report["no_line"]["self_device_ns"]
    assert selves == report["totals"]["device_ns"] == 50 * 10_000
    rows = list(csv.DictReader(io.StringIO(run("report", str(written), "--format", "csv").stdout)))
    assert sum(int(row["self_device_ns"]) for row in rows) == 500_000


def test_peaks_are_given_on_the_command_line(written: Path) -> None:
    peaks = "fp32=0.1,bandwidth=0.02"
    report = json.loads(run("report", str(written), "--format", "json", "--peaks", peaks).stdout)
    assert report["peaks"] == {
        "name": "CPU", "flops_per_s": {"float32": 1e11}, "memory_bytes_per_s": 2e10, "source": "given",
    }  # fmt: skip
    assert json.loads(run("report", str(written), "--format", "json").stdout)["peaks"] is None
    assert "--peaks fp32=fast: 'fp32=fast' cannot be used; expected a list" in fails(
        "report", str(written), "--peaks", "fp32=fast"
    )


def test_the_report_goes_to_a_file_when_asked(written: Path, tmp_path: Path) -> None:
    arguments = ("export", str(written), "--format", "folded")
    done = run(*arguments, "-o", str(tmp_path / "out.txt"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "train.py:3" in (tmp_path / "out.txt").read_text()
    assert "cannot be written" in fails(*arguments, "-o", str(tmp_path / "no" / "such" / "folder"))


def test_without_a_path_the_newest_run_nearby_is_shown(tmp_path: Path) -> None:
    assert "no trace in ./deepscope_logs" in fails("report", folder=tmp_path)
    folder = tmp_path / "lightning_logs" / "version_0"
    folder.mkdir(parents=True)
    (folder / "ada_1.fit.rank0.1712195495519689047.pt.trace.json").write_text(json.dumps(trace()))
    assert "lightning_logs/version_0/ada_1.fit" in run("report", folder=tmp_path).stdout


def test_bad_input_is_told_in_one_line(tmp_path: Path) -> None:
    whole = json.dumps(trace()).encode()
    contents = {
        "empty.json": b"",
        "empty.json.gz": gzip.compress(b""),
        "words.json": b"hello there",
        "other.json": b'{"a": [1, 2, 3]}',
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "cut.json": whole[:3000],
        "cut.json.gz": gzip.compress(os.urandom(64).hex().encode() + whole)[:-20],
        "deep.json": b"[" * 100_000,
        "null.json": b"null",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert name in fails("report", str(tmp_path / name)), name
    (tmp_path / "folder").mkdir()
    assert "no trace in this folder" in fails("report", str(tmp_path / "folder"))
    assert "no such file or folder" in fails("report", str(tmp_path / "nothing"))
    assert "\\x1b" in fails("report", str(tmp_path / "\x1b[31mred\n"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_trace_that_may_not_be_read_is_told(written: Path) -> None:
    written.chmod(0)
    assert "cannot be read" in fails("report", str(written))


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_what_is_whole_of_a_cut_trace_can_be_read(tmp_path: Path, suffix: str) -> None:
    text = json.dumps(trace(events=3000)).encode()
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(text[: len(text) // 2] if suffix == ".json" else gzip.compress(text)[:-3000])
    assert "--partial" in fails("report", str(path))
    done = run("report", str(path), "--partial")
    assert done.returncode == 0, done.stderr
    assert "the trace ends early" in done.stdout
    assert "--partial" in fails("report", str(path))  # the cache does not forget that it was cut


def test_what_is_not_there_is_told_with_what_is(written: Path) -> None:
    assert "there are: cost, self, total, backward" in fails("report", str(written), "--sort", "size")
    assert "--step 99: no such step; it has 0, 1, 2" in fails("report", str(written), "--step", "99")
    assert "--stage test" in fails("report", str(written), "--stage", "test")
    assert "no such command: reprot; did you mean report?" in run("reprot").stderr
    assert run("report", "--by", "file").returncode == 2


def test_one_step_is_a_part_of_the_whole(written: Path) -> None:
    report = json.loads(run("report", str(written), "--step", "7", "--format", "json").stdout)
    assert (report["step"], report["totals"]["steps"], report["totals"]["device_ns"]) == (7, 1, 10_000)


def test_one_line_opens_up_to_its_operators(written: Path) -> None:
    lines = json.loads(run("report", str(written), "--format", "json").stdout)["lines"]
    where = f"{Path(lines[0]['file']).name}:{lines[0]['line']}"
    found = json.loads(run("report", str(written), "--line", where, "--format", "json").stdout)
    assert found["line"] == lines[0]
    assert found["below"]["total_device_ns"] == lines[0]["self_device_ns"]
    assert [node["kind"] for node in found["below"]["children"]] == ["operator"]
    text = run("report", str(written), "--line", where)
    assert text.returncode == 0, text.stderr
    assert found["below"]["children"][0]["name"] in text.stdout
    assert run("report", str(written), "--line", where, "--format", "csv").stdout.startswith("depth,kind,name,")


def test_a_line_that_is_not_there_is_told_with_those_that_are(written: Path) -> None:
    assert "--line nowhere.py:1: no such file; the largest lines" in fails(
        "report", str(written), "--line", "nowhere.py:1"
    )
    assert "such as model.py:70" in fails("report", "/nowhere/at/all", "--line", "model.py")
    assert "neither --by nor --sort" in fails("report", str(written), "--line", "a.py:1", "--by", "step")
    assert "--fold" in fails("report", str(written), "--fold")


def test_the_slowest_operators_are_shown(written: Path) -> None:
    report = json.loads(run("report", str(written), "-n", "5", "--by", "type", "--format", "json").stdout)
    assert [(row["name"], row["calls"], row["self_device_ns"]) for row in report["rows"]] == [("matmul", 50, 500_000)]
    summed = ("report", str(written), "--by", "operator", "--aggregate", "sum")
    assert "aten::mm" in run(*summed, "-n", "1", "--include", "mat*", "--min-time", "100us").stdout
    assert "no operators match" in run(*summed, "--min-time", "1s").stdout
    one = json.loads(run(*summed[:-1], "mean", "--step", "3", "--format", "json").stdout)
    assert [(row["calls"], row["self_device_ns"]) for row in one["rows"]] == [(1, 10_000)]
    assert "there are: self, total" in fails(*summed, "--sort", "size")
    assert "no such phase; there are: data, forward" in fails(*summed, "--phase", "size")
    assert "--aggregate sum: goes with --by operator or type" in fails("report", str(written), "--aggregate", "sum")
    assert "--shapes: does not go with --aggregate" in fails(*summed, "--shapes")


def test_a_part_of_a_report_is_chosen_and_what_makes_no_sense_is_told(written: Path) -> None:
    parts = [
        json.loads(run("report", str(written), "--phase", phase, "--format", "json").stdout)
        for phase in ("data", "forward", "backward", "optimizer", "other")
    ]
    assert sum(part["totals"]["device_ns"] for part in parts) == 500_000
    assert {part["filters"]["whole_device_ns"] for part in parts} == {500_000}
    assert (
        "filter   include aten::*: 1 of 1 rows"
        in run("report", str(written), "--by", "operator", "--include", "aten::*").stdout
    )
    rows = json.loads(run("report", str(written), "--by", "stack", "--format", "json").stdout)
    assert rows["operators"][0]["stack"] == [{"file": "train.py", "line": 3, "function": "work"}]
    for arguments, message in (
        (("--module", "encoder"), "no module has such a path"),
        (("--by", "step", "--phase", "forward"), "whose rows are of the whole"),
        (("--by", "step", "--include", "3"), "have no names"),
        (("--by", "memory", "--min-time", "1us"), "have no time"),
        (("--shapes",), "goes with --by operator or stack alone"),
        (("--line", "train.py:3", "--include", "x"), "nor do --include"),
    ):
        assert message in fails("report", str(written), *arguments)


def test_a_reader_that_stops_reading_is_no_error(written: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "report", str(written), "--by", "step", "--format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_is_no_error(written: Path, closed: str) -> None:
    command = ["sh", "-c", f'"$@" {closed}', "sh", *COMMAND, "report", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_a_current_folder_that_is_gone_is_no_error(written: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *COMMAND, "report", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=gone, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_without_a_traceback(tmp_path: Path) -> None:
    # A reader that stands still, so that the signal comes while a trace is read.
    program = (
        "import os, signal, deepscope.trace.read as read\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where the tests run in the background
        "read.read_trace = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT) or signal.pause()\n"
        "from deepscope.cli import main\n"
        f"main(['report', {str(tmp_path / 'a.json')!r}])\n"
    )
    (tmp_path / "a.json").write_text(json.dumps(trace()))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stdout + done.stderr.strip() == ""


def on_terminal(*arguments: str, **environment: str) -> str:
    """What the command writes where standard output and error are a terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=side, stderr=side, env={**os.environ, "TERM": "xterm", **environment}
    )
    os.close(side)
    seen = b""
    while select.select([main], [], [], 60)[0]:
        try:
            piece = os.read(main, 65536)
        except OSError:  # the terminal's other side is closed
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    assert process.wait() == 0
    return seen.decode()


def test_colours_are_for_terminals_that_want_them(written: Path) -> None:
    environment = dict.fromkeys(("NO_COLOR",), "")
    assert "\x1b[1m" in on_terminal("report", str(written), **environment)
    assert "\x1b" not in on_terminal("report", str(written), NO_COLOR="1")
    assert "\x1b" not in on_terminal("report", str(written), TERM="dumb", **environment)
    assert "\x1b" not in run("report", str(written)).stdout


def test_a_terminal_without_unicode_gets_the_report_too(written: Path) -> None:
    done = run_cold("report", str(written), PYTHONIOENCODING="ascii", COLUMNS="60")
    assert done.returncode == 0, done.stderr
    assert "train.py:3" in done.stdout


def test_what_is_redirected_is_utf_8_wherever_it_is_written(written: Path) -> None:
    done = run_cold("report", str(written), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert " · " in done.stdout


def test_the_other_commands_read_the_same_traces(written: Path, tmp_path: Path) -> None:
    speedscope = json.loads(run("export", str(written)).stdout)
    assert speedscope["profiles"][0]["endValue"] == 500_000
    done = run("export", str(written), "--format", "folded", "-o", str(tmp_path / "stacks.txt"))
    assert done.returncode == 0, done.stderr
    weights = [int(line.rsplit(" ", 1)[1]) for line in (tmp_path / "stacks.txt").read_text().splitlines()]
    assert sum(weights) == 500_000
    assert "no line has changed" in run("compare", str(written), str(written)).stdout
    assert json.loads(run("compare", str(written), str(written), "--format", "json").stdout)["format"] == 1


def test_help_and_version_import_neither_arrays_nor_tables() -> None:
    heavy = ("numpy", "msgspec", "wcwidth", "fsspec", "torch", "asyncio")
    program = (
        "import sys\nfrom deepscope.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as end:\n"
        f"    print([name for name in {heavy!r} if name in sys.modules], end.code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[] 0"
    assert run_cold("--version").stdout.startswith("deepscope ")
    for name in ("report", "export", "compare", "ranks", "demo"):
        assert f"  {name}" in done.stdout


@pytest.mark.parametrize("path", each_trace())
def test_every_recorded_trace_is_reported_in_every_way(path: Path) -> None:
    from wcwidth import wcswidth as cell_len

    from deepscope.report.exports.call_paths import folded_report, speedscope_report
    from deepscope.report.json_csv import csv_report, report_object
    from deepscope.report.text_report import text_report

    profile = profile_of(path)
    device_ns = profile.totals.device_ns
    for by in TABLES:
        report = report_object(profile, by=by)
        lines = [*report["lines"], report["no_line"]]
        assert sum(line["self_device_ns"] for line in lines) == device_ns
        rows = list(csv.DictReader(io.StringIO(csv_report(profile, by=by))))
        assert len(rows) == len(TABLES[table_of_steps(by, profile)].rows(profile)) + (by == "line")
        for width in (80, 160):
            table = text_report(profile, by=by, width=width).split("\n\n")[1]
            assert max(map(cell_len, table.splitlines())) <= width
    assert json.loads(speedscope_report(profile))["profiles"][0]["endValue"] == device_ns
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded_report(profile).splitlines()) == device_ns


@pytest.mark.parametrize("path", each_trace())
def test_every_recorded_trace_shows_its_operators_in_detail_and_its_slowest_ones(path: Path) -> None:
    from wcwidth import wcswidth as cell_len

    from deepscope.report.json_csv import csv_report, report_object
    from deepscope.report.operator_ranking import RankingQuery, ranking, ranking_csv, ranking_json, ranking_text
    from deepscope.report.text_report import text_report

    profile = profile_of(path, ("shapes", "stacks"))
    whole = sum(row.self_device_ns for row in profile.operators)
    rows = report_object(profile, by="operator")["operators"]
    assert sum(row["self_device_ns"] for row in rows) == whole
    assert all(isinstance(row["in_shapes"], list) or row["in_shapes"] is None for row in rows)
    assert len(list(csv.DictReader(io.StringIO(csv_report(profile, by="operator"))))) == len(rows)
    for width in (80, 160):
        table = text_report(profile, by="operator", width=width).split("\n\n")[1]
        assert max(map(cell_len, table.splitlines())) <= width
    for question in (RankingQuery(), RankingQuery(by="type"), RankingQuery(aggregate="max", sort="total-cpu")):
        found = ranking(profile, question)
        shown = json.loads(ranking_json(profile, found, question, limit=0))["rows"]
        assert len(shown) == found.of == len(list(csv.DictReader(io.StringIO(ranking_csv(found, limit=0)))))
        if question.aggregate == "sum":
            assert sum(row["self_device_ns"] for row in shown) == whole
        for width in (80, 160):
            table = ranking_text(profile, found, question, limit=20, width=width).split("\n\n")[1]
            assert max(map(cell_len, table.splitlines())) <= width


SNAPSHOTS = [
    "tracelens-mi300-resnet_act_checkpoint",
    "torch-profiling-tutorial-dc3b0e7228dd_851.1752215573993169006",
    "holistictraceanalysis-triton_example-triton_example",
    "holistictraceanalysis-rank-34.jul_15_10_52_41.1074",
]


@needs_shared_traces
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_shared_traces_read_as_their_snapshots(name: str) -> None:
    assert SHARED_TRACES is not None
    reads_as_its_snapshot(SHARED_TRACES, name, 160)


@pytest.mark.parametrize(
    ("name", "width"), [("grafted-device", 80), *((trace_name(path), 160) for path in own_paths())]
)
def test_the_repositorys_traces_read_as_their_snapshots(name: str, width: int) -> None:
    reads_as_its_snapshot(OWN_TRACES, name, width)


def reads_as_its_snapshot(folder: Path, name: str, width: int) -> None:
    done = run("report", f"{name}.json.gz", "-n", "8", folder=folder, COLUMNS=str(width))
    assert done.stderr == ""
    matches_golden(done.stdout, f"traces/{name}-{width}.txt")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("report", "{trace}", "--rank", "7"), 2),
        (("report", "{trace}", "--step", "999"), 2),
        (("report", "{trace}", "--sort", "nothing"), 2),
        (("report", "{trace}", "--by", "kernel", "--fold"), 2),
        (("report", "{trace}", "--peaks", "nonsense"), 2),
        (("report", "{trace}", "--no-such-option"), 2),
        (("report", "absent.json"), 1),
        (("report", "{broken}"), 1),
    ],
)
def test_a_wrong_use_exits_with_2_and_a_wrong_file_with_1(tmp_path: Path, arguments: tuple[str, ...], code: int):
    whole, broken = tmp_path / "a.json", tmp_path / "b.json"
    whole.write_text(json.dumps(trace()), encoding="utf-8")
    broken.write_text("no trace", encoding="utf-8")
    done = run(*(word.format(trace=whole, broken=broken) for word in arguments), folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
