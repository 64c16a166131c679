"""The extension's TensorBoard: TensorBoard with torch-tb-profiler, its pages with the extension's scripts."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from recorded_traces import OWN_TRACES

pytestmark = pytest.mark.thorough

PROFILER = "data/plugin/pytorch_profiler/"


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the extension's part whose bundled scripts are a line each."""
    folder = tmp_path_factory.mktemp("extension")
    shutil.copytree(Path(__file__).resolve().parents[2] / "vscode-extension" / "resources", folder / "resources")
    (folder / "dist" / "tensorboard").mkdir(parents=True)
    for name in ("charts", "page"):
        (folder / "dist" / "tensorboard" / f"{name}.js").write_text(f'"{name}";')
    return folder


@contextmanager
def served(extension: Path, *shown: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server as the extension starts it, and its process."""
    shown = shown or ("--logdir", str(extension / "runs"))
    command = [sys.executable, str(extension / "resources" / "board.py"), *shown]
    environment = {**os.environ, **environment}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"], server
            server.communicate(timeout=60)  # the end of its input ends it
        finally:
            server.kill()


@pytest.fixture(scope="module")
def address(extension: Path) -> Iterator[str]:
    with served(extension) as (url, _):
        yield url


def fetched(address: str, **headers: str) -> str:
    with urlopen(Request(address, headers=headers), timeout=60) as answer:
        assert answer.headers["Content-Length"] is not None
        text: str = answer.read().decode()
        return text


def test_the_profilers_page_loads_the_charts_from_the_server_itself(address: str) -> None:
    page = fetched(f"{address}{PROFILER}index.html")
    assert '<script src="deepscope-charts.js"></script>' in page
    assert 'src="https://www.gstatic.com' not in page
    assert fetched(f"{address}{PROFILER}deepscope-charts.js") == '"charts";'


@pytest.mark.parametrize("path", ["", "index.html", f"{PROFILER}index.html", f"{PROFILER}trace_embedding.html"])
def test_every_page_that_people_see_tells_the_editor_of_its_keys(address: str, path: str) -> None:
    page = fetched(address + path, **{"Accept-Encoding": "gzip"})
    assert page.count('<script src="deepscope-page.js"></script>') == 1
    assert fetched(address + path.rpartition("/")[0] + "/deepscope-page.js") == '"page";'


def test_everything_else_is_tensorboards_own(address: str) -> None:
    assert "render" in fetched(f"{address}{PROFILER}index.js")
    assert json.loads(fetched(f"{address}data/plugins_listing"))["pytorch_profiler"]
    with pytest.raises(HTTPError, match="404"):
        fetched(f"{address}{PROFILER}deepscope-other.js")


def test_traces_that_are_named_are_shown_alone_whatever_lies_beside_them(extension: Path, tmp_path: Path) -> None:
    for run, rank in itertools.product(("old", "new"), range(2)):
        shutil.copy(
            OWN_TRACES / "torch-with-stack.json.gz", tmp_path / f"{run}.rank{rank}.1760000000000000000.pt.trace.json.gz"
        )
    (tmp_path / "new.rank1.1760000000000000000.pt.trace.json.gz").rename(tmp_path / "new.any-name.json.gz")
    named = [word for trace in sorted(tmp_path.glob("new.*")) for word in ("--trace", str(trace))]
    with served(extension, *named) as (url, _):
        deadline = time.monotonic() + 120
        while not (runs := json.loads(fetched(f"{url}{PROFILER}runs")))["runs"] or runs["loading"]:
            assert time.monotonic() < deadline, "the traces are read"
        assert runs["runs"] == [tmp_path.name]
        workers = json.loads(fetched(f"{url}{PROFILER}workers?run={tmp_path.name}&view=Overview"))
        assert workers == ["new.any-name", "new.rank0"]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder with a short path, as users have: sockets are made in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("by", ["input", "signal"])
def test_no_process_and_no_file_is_left_when_it_ends(extension: Path, temporary: Path, by: str) -> None:
    with served(extension, TMPDIR=str(temporary)) as (address, server):
        fetched(f"{address}{PROFILER}runs")  # the profiler is at work, in processes of its own
        assert list(temporary.iterdir())
        if by == "signal":
            server.send_signal(signal.SIGTERM)
        # Processes of its own would hold the output open.
        server.communicate(timeout=60)
        assert server.returncode == 0
        assert list(temporary.iterdir()) == []
