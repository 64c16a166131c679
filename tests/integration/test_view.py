"""`deepscope view` as people start it: a process, its address, its end."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from recorded_traces import OWN_TRACES
from warm_python import run_command

TRACE = OWN_TRACES / "grafted-device.json.gz"
_OPEN = build_opener(ProxyHandler({})).open


class View:
    """A running server; once it has ended, `more` is what else it printed, `said` what went to standard error."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.more = self.said = ""
        assert process.stdout is not None
        self.line = process.stdout.readline()
        self.address, _, self.token = self.line.strip().partition("?token=")

    def once(self, question: str, **words: object) -> tuple[int, Any]:
        """The status, and what JSON says."""
        address = f"{self.address}api/{question}?{urlencode(words)}"
        try:
            with _OPEN(Request(address, headers={"X-DeepScope-Token": self.token}), timeout=60) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)

    def ask(self, question: str, **words: object) -> tuple[int, Any]:
        """As `once`, again while the trace is being read."""
        deadline = time.monotonic() + 120
        while (found := self.once(question, **words))[0] == 202:
            assert time.monotonic() < deadline, "the trace is read"
        return found


@contextmanager
def viewing(*arguments: str | Path, **environment: str) -> Iterator[View]:
    """A server, which is ended as people end it."""
    command = [sys.executable, "-m", "deepscope", "view", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    with process:
        try:
            view = View(process)
            assert view.token, process.communicate(timeout=60)[1]
            yield view
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            view.more, view.said = process.communicate(timeout=60)
        finally:
            process.kill()


def failing(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_command("view", "--no-browser", *map(str, arguments))


def test_the_address_stands_alone_on_a_line_and_answers() -> None:
    with viewing(TRACE, "--no-browser") as view:
        assert view.line == f"{view.address}?token={view.token}\n"
        assert view.address.startswith("http://127.0.0.1:")
        assert len(view.token) >= 32
        with _OPEN(view.address, timeout=60) as page:
            assert b"dashboard.js" in page.read()
        status, header = view.ask("header")
        assert (status, header["title"] != "") == (200, True)
    assert view.process.returncode == 0
    assert view.more == view.said == ""


def test_the_port_is_the_one_that_was_asked_for_and_a_taken_one_is_told() -> None:
    with viewing(TRACE, "--no-browser", "--port", "0") as view:
        port = view.address.rstrip("/").rpartition(":")[2]
        done = failing(TRACE, "--port", port)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert f":{port}: " in done.stderr
        assert "--port 0" in done.stderr
    with viewing(TRACE, "--no-browser", "--port", port) as again:
        assert again.address == view.address
        assert again.token != view.token


def test_an_address_that_lets_others_in_comes_with_a_warning() -> None:
    with viewing(TRACE, "--no-browser", "--host", "0.0.0.0") as view:
        assert view.address.startswith("http://127.0.0.1:")
        assert view.ask("header")[0] == 200
    assert view.said.startswith("Warning: whoever can reach this machine")
    assert f"?token={view.token}" in view.said
    assert "From other machines: http://" in view.said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["/no/such/trace.json"], "/no/such/trace.json: no such file or folder"),
        (["--host", "8.8.8.8", TRACE], "8.8.8.8:0: "),
        (["--host", "no-such-host.invalid", TRACE], "no-such-host.invalid:0: "),
        (["--peaks", "nonsense", TRACE], "--peaks nonsense"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(arguments: list[str | Path], says: str) -> None:
    done = failing(*arguments)
    assert done.returncode == (2 if "--peaks" in arguments else 1)
    assert done.stdout == ""
    assert done.stderr.startswith(f"deepscope: {says}")
    assert done.stderr.count("\n") == 1


def test_a_folder_without_a_trace_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    done = failing(tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert str(tmp_path) in done.stderr


def test_a_broken_trace_fails_for_itself_and_the_others_are_shown(tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "good.pt.trace.json.gz")
    (tmp_path / "broken.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "name": [}]}')
    os.utime(tmp_path / "good.pt.trace.json.gz", (1, 1))
    with viewing(tmp_path, "--no-browser") as view:
        _, found = view.ask("runs")
        by_title = {run["title"]: run["id"] for run in found["runs"]}
        status, said = view.ask("header", run=by_title["broken.pt.trace.json"])
        assert status == 422
        assert "broken.pt.trace.json" in said["error"]
        [other] = [run for title, run in by_title.items() if title != "broken.pt.trace.json"]
        assert view.ask("header", run=other)[0] == 200


def truncated(folder: Path) -> Path:
    path = folder / "cut.pt.trace.json"
    text = gzip.decompress(TRACE.read_bytes())
    path.write_bytes(text[: len(text) * 3 // 4])
    return path


def test_a_trace_that_ends_early_says_how_the_rest_is_read(tmp_path: Path) -> None:
    path = truncated(tmp_path)
    with viewing(path, "--no-browser") as view:
        status, said = view.ask("overview")
        assert status == 422
        assert said["error"].endswith("with deepscope view --partial")
        assert view.ask("runs")[0] == 200
    with viewing(path, "--no-browser", "--partial") as view:
        status, header = view.ask("header")
        assert status == 200
        assert any("ends early" in note for note in header["notes"])


def plain(path: Path, operators: int) -> Path:
    """A trace that does not say which run it is of; its operators take a millisecond each."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "dur": 1000.0}
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"traceEvents": [{**event, "ts": 1000.0 * number} for number in range(operators)]}))
    return part.replace(path)  # nobody sees half of it


def test_a_run_that_comes_while_the_server_runs_is_found(tmp_path: Path) -> None:
    old, new = plain(tmp_path / "a.pt.trace.json", 3), tmp_path / "b.pt.trace.json"
    with viewing(tmp_path, "--no-browser") as view:
        [first] = view.ask("runs")[1]["runs"]
        before = view.ask("overview")[1]
        plain(new, 4)
        deadline = time.monotonic() + 60
        while len(runs := view.ask("runs")[1]["runs"]) < 2:
            assert time.monotonic() < deadline, "the new run is found"
        assert first in runs
        plain(old, 5)
        while (after := view.ask("overview", run=first["id"])[1]) == before:
            assert time.monotonic() < deadline, "the replaced trace is read"
        [was, now] = [one["figures"][0]["value"] for one in (before, after)]
        assert now * 3 == was * 5
        new.unlink()
        [gone] = [run["id"] for run in runs if run["id"] != first["id"]]
        while (found := view.ask("header", run=gone))[0] != 400:
            assert found[0] in {200, 404}, "it is kept, or its file is missed"
            assert time.monotonic() < deadline, "what is gone is told"
        assert "no such run" in found[1]["error"]


@pytest.mark.thorough
def test_many_runs_are_all_there(tmp_path: Path) -> None:
    for number in range(60):
        plain(tmp_path / f"run{number}" / "t.pt.trace.json", 2)
    with viewing(tmp_path, "--no-browser") as view:
        runs = view.ask("runs")[1]["runs"]
        assert len({run["id"] for run in runs}) == 60
        assert view.ask("header", run=runs[-1]["id"])[0] == 200


def test_an_fsspec_address_is_read_where_it_lies() -> None:
    with viewing(f"file://{TRACE}", "--no-browser") as view:
        assert view.ask("header")[0] == 200


def test_several_paths_are_shown_side_by_side() -> None:
    with viewing(TRACE, OWN_TRACES / "lightning-with-workers.json.gz", "--no-browser") as view:
        assert len(view.ask("runs")[1]["runs"]) == 2


@pytest.fixture(scope="module")
def large_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So large that it is still being read when the server is ended."""
    path = tmp_path_factory.mktemp("large") / "large.pt.trace.json"
    event = '{"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"External id":%d}}'
    with path.open("w") as file:
        file.write('{"traceEvents":[')
        for start in range(0, 800_000, 50_000):
            file.write(",\n".join(event % (number * 3, number + 1) for number in range(start, start + 50_000)) + ",\n")
        file.write(f"{event % (10**7, 10**7)}]}}")
    return path


def children(process: int) -> list[int]:
    """Processes that it started, and that these started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == process:
            found += [int(stat.parent.name), *children(int(stat.parent.name))]
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="no signals of this kind on Windows")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_it_ends_while_it_reads_and_leaves_no_process(number: signal.Signals, large_trace: Path) -> None:
    with viewing(large_trace, "--no-browser") as view:
        while not (started := children(view.process.pid)):
            assert view.once("header")[0] == 202
        status, said = view.once("header")
        assert (status, said["progress"]["total"]) == (202, large_trace.stat().st_size)
        view.process.send_signal(number)
        assert view.process.wait(timeout=60) == 0
        deadline = time.monotonic() + 60
        while any(is_running(one) for one in started):
            assert time.monotonic() < deadline, "no process is left"
    assert view.said == ""


BROWSER = """\
#!/bin/sh
echo "noise of a browser"; echo "more of it" >&2
printf %s "$1" > "$TOLD.part" && mv "$TOLD.part" "$TOLD"
exit CODE
"""


@pytest.mark.parametrize("code", [0, 1])
def test_the_browser_gets_the_address_and_its_noise_goes_nowhere(tmp_path: Path, code: int) -> None:
    browser, told = tmp_path / "browser", tmp_path / "told"
    browser.write_text(BROWSER.replace("CODE", str(code)))
    browser.chmod(0o755)
    with viewing(TRACE, BROWSER=str(browser), TOLD=str(told)) as view:
        deadline = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < deadline, "the browser was started"
            time.sleep(0.01)
        assert told.read_text() == view.line.strip()
        assert view.ask("header")[0] == 200
    assert view.said == ""


def test_without_a_browser_nothing_is_said(tmp_path: Path) -> None:
    with viewing(TRACE, BROWSER="/no/such/browser", PATH=str(tmp_path), DISPLAY="") as view:
        assert view.ask("header")[0] == 200
    assert view.said == ""
