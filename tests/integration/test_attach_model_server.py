"""`deepscope attach --url`: a server of models records itself, and its new traces are reported.

vLLM and SGLang need a GPU; in their place stands a server that answers as their documentation says, and that writes a
recorded trace.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deepscope.capture import model_server
from deepscope.capture.model_server import ModelServer
from deepscope.errors import ControlError, OptionError
from recorded_traces import OWN_TRACES
from warm_python import run_command

TRACE = OWN_TRACES / "inference-without-steps.json.gz"
SGLANG = {"get_server_info", "start_profile", "stop_profile"}
VLLM = {"start_profile", "stop_profile"}


@contextmanager
def served(folder: Path, knows: set[str], *, ranks: int = 1, answer: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A server's address, and the requests that it gets; what it does not know is not found."""
    asked: list[Any] = []

    def write() -> None:
        for rank in range(ranks):
            shutil.copy(TRACE, folder / f"1764-TP-{rank}.trace.json.gz")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200 if self.path.strip("/") in knows else 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path.strip("/"), body))
            if self.path.strip("/") not in knows:
                self._answer(404)
                return
            if self.path == "/stop_profile" or "num_steps" in body:
                write()
            self._answer(answer)

        def _answer(self, code: int) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(b"profiling is in progress already\x1b[31m")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "_QUIET_S", 0.05)
    monkeypatch.setattr(model_server, "_EVERY_S", 0.01)


def test_a_server_records_for_a_time_and_its_traces_are_reported(tmp_path: Path) -> None:
    (tmp_path / "old.json.gz").write_bytes(TRACE.read_bytes())
    with served(tmp_path, VLLM) as (url, asked):
        done = run_command("attach", "--url", url, "--time", "0.1", "--folder", str(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path for path, _ in asked] == ["start_profile", "stop_profile"]
    assert asked[0][1] == {"output_dir": str(tmp_path)}
    assert done.stdout.startswith("verdict ")
    assert "1764-TP-0.trace.json.gz" in done.stdout
    assert "old.json.gz" not in done.stdout


def test_sglang_counts_the_steps_itself_and_each_rank_writes_a_trace(tmp_path: Path) -> None:
    with served(tmp_path, SGLANG, ranks=2) as (url, asked):
        traces = ModelServer(url, tmp_path).record(steps=4)
    assert asked == [("start_profile", {"output_dir": str(tmp_path), "num_steps": 4})]
    assert [path.name for path in traces] == ["1764-TP-0.trace.json.gz", "1764-TP-1.trace.json.gz"]


def test_a_server_that_counts_no_steps_is_told_by_its_name(tmp_path: Path) -> None:
    with served(tmp_path, VLLM) as (url, asked), pytest.raises(ControlError, match="record by the clock, with --time"):
        ModelServer(url, tmp_path).record(steps=4)
    assert asked == []


def test_the_recording_is_ended_where_the_wait_is_broken_off(tmp_path: Path) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with served(tmp_path, VLLM) as (url, asked), pytest.raises(KeyboardInterrupt):
        ModelServer(url, tmp_path, sleep=interrupt).record()
    assert [path for path, _ in asked] == ["start_profile", "stop_profile"]


@pytest.mark.parametrize(
    ("knows", "answer", "words"),
    [(set(), 200, "start vLLM with --profiler-config"), (VLLM, 500, "profiling is in progress already")],
    ids=["without a profiler", "busy"],
)
def test_what_a_server_refuses_is_said(tmp_path: Path, knows: set[str], answer: int, words: str) -> None:
    with served(tmp_path, knows, answer=answer) as (url, _):
        done = run_command("attach", "--url", url, "--folder", str(tmp_path), folder=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert "\x1b" not in done.stderr


def test_nobody_answers_and_nothing_is_written_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path, VLLM) as (url, _):
        other = tmp_path / "other"
        other.mkdir()
        monkeypatch.setattr(model_server, "WRITING_S", 0.5)
        with pytest.raises(ControlError, match="name its folder with --folder"):
            ModelServer(url, other).record(seconds=0)
    with pytest.raises(ControlError, match="no server answers there"):
        ModelServer(url, tmp_path).record(seconds=0)


@pytest.mark.parametrize("url", ["localhost:8000", "file:///etc/passwd", "ftp://host/", "http://"])
def test_an_address_is_one_of_http(url: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="http://localhost:8000"):
        ModelServer(url, tmp_path)
