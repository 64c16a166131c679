"""DeepScope's tab in TensorBoard: a TensorBoard of its own, started as users start it and asked over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from local_store import local_store
from recorded_traces import OWN_TRACES
from warm_python import run_command

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "data/plugin/deepscope/"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installation of this tree tells of itself, from pyproject.toml: its entry points."""
    folder = tmp_path_factory.mktemp("installed")
    about = folder / "deepscope-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deepscope\nVersion: 0.1.0\n")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = re.search(r"\[project\.entry-points\.tensorboard_plugins\]\n((?:\w+ = .*\n)+)", text)
    assert table is not None
    (about / "entry_points.txt").write_text("[tensorboard_plugins]\n" + table[1].replace('"', ""))
    return folder


@contextmanager
def tensorboard(installed: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """The address of a TensorBoard."""
    paths = [str(installed), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "tensorboard.main", *arguments, "--port", "0", "--load_fast", "false"]
    said: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables, cwd=installed) as board:
        assert board.stderr is not None
        try:
            for line in board.stderr:
                said.append(line)
                if (found := re.search(r"at (http://\S+)", line)) is not None:
                    break
            else:
                pytest.fail("".join(said))
            threading.Thread(target=board.stderr.read, daemon=True).start()
            yield found[1]
        finally:
            board.terminate()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "deep" / "er").mkdir(parents=True)
    shutil.copy(OWN_TRACES / "torch-with-stack.json.gz", folder / "deep" / "er")
    return folder


@pytest.fixture(scope="module")
def board(installed: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with tensorboard(
        installed, "--logdir", str(runs), DEEPSCOPE_CACHE_DIR=str(tmp_path_factory.mktemp("cache"))
    ) as url:
        yield url


def got(address: str, **headers: str) -> tuple[dict[str, str], bytes]:
    with urlopen(
        Request(address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    ) as answer:
        return dict(answer.headers), answer.read()


def answer(address: str) -> Any:
    """The answer to a question, when the trace has been read."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with urlopen(address) as reply:
            if reply.status == 200:
                return json.load(reply)
            assert "progress" in json.load(reply)
    pytest.fail("the trace is read")


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def listed(board: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(got(f"{board}data/plugins_listing")[1])["deepscope"]
    return found


def test_tensorboard_has_the_tab_for_traces_anywhere_below_its_log_directory(board: str) -> None:
    until(lambda: listed(board)["enabled"])
    assert listed(board)["tab_name"] == "DeepScope"
    assert listed(board)["loading_mechanism"]["module_path"] == f"/{PLUGIN}index.js"
    assert [one["traces"] for one in answer(f"{board}{PLUGIN}api/runs")["runs"]] == [1]


def test_its_numbers_are_the_reports(board: str, runs: Path) -> None:
    report = json.loads(run_command("report", str(runs), "--format", "json").stdout)
    overview = answer(f"{board}{PLUGIN}api/overview")
    assert len(overview["steps"]) == report["totals"]["steps"]
    assert sum(step["durationNs"] for step in overview["steps"]) > 0


def test_its_page_loads_what_lies_beside_it_and_nothing_else(board: str) -> None:
    headers, page = got(f"{board}{PLUGIN}index.html")
    assert b'data-door="tensorboard"' in page
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    for name in re.findall(rb'(?:src|href)="([^":]+)"', page):
        assert got(f"{board}{PLUGIN}{name.decode()}")[1]
    assert b"index.html" in got(f"{board}{PLUGIN}index.js")[1]


def test_the_tab_opens_at_the_page_that_tensorboards_address_tells(board: str) -> None:
    pages = (ROOT / "vscode-extension" / "src" / "pages" / "source" / "http.ts").read_text(encoding="utf-8")
    word = re.search(r'WORD = "(.+)=";', pages)
    assert word is not None
    assert f'get("{word[1]}")'.encode() in got(f"{board}{PLUGIN}index.js")[1]


def test_it_only_shows_and_answers_no_other_site(board: str) -> None:
    for request in (
        Request(f"{board}{PLUGIN}api/runs", method="POST", data=b""),
        Request(f"{board}{PLUGIN}api/runs", headers={"Origin": "https://example.org"}),
        Request(f"{board}{PLUGIN}api/runs", headers={"Sec-Fetch-Site": "cross-site"}),
        Request(f"{board}{PLUGIN}api/nothing"),
        Request(f"{board}{PLUGIN}api/../../../../etc/passwd"),
    ):
        with pytest.raises(HTTPError, match=r"40[345]"):
            urlopen(request)


def test_several_folders_below_a_path_prefix_show_the_traces_that_come(
    installed: Path, runs: Path, tmp_path: Path
) -> None:
    (tmp_path / "later").mkdir()
    spec = ("--logdir_spec", f"one:{runs},{tmp_path / 'later'}", "--path_prefix", "/some/where")
    with tensorboard(installed, *spec, DEEPSCOPE_CACHE_DIR=str(tmp_path / "cache")) as root:
        asked = f"{root.rstrip('/')}/{PLUGIN}api/runs"
        assert len(answer(asked)["runs"]) == 1
        shutil.copy(
            OWN_TRACES / "grafted-device.json.gz", tmp_path / "later" / "other.1760000000000000000.pt.trace.json.gz"
        )
        until(lambda: len(answer(asked)["runs"]) == 2)


def test_without_traces_the_tab_is_among_those_that_are_off(tmp_path: Path) -> None:
    from tensorboard.plugins.base_plugin import TBContext

    from deepscope.dashboard.tensorboard import Loader

    plugin = Loader().load(TBContext(logdir=str(tmp_path)))
    assert plugin is not None
    started: list[str] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": f"/{PLUGIN}api/overview", "QUERY_STRING": ""}
    list(plugin.get_plugin_apps()["/api/*"](environ, lambda status, _: started.append(status)))
    assert (plugin.is_active(), started) == (False, ["404 Not Found"])


@local_store
def test_a_log_directory_in_a_remote_store_is_read(runs: Path) -> None:
    from tensorboard.plugins.base_plugin import TBContext

    from deepscope.dashboard.tensorboard import Loader

    plugin = Loader().load(TBContext(logdir=f"local://{runs}"))  # as s3:// is: by fsspec
    assert plugin is not None
    until(plugin.is_active)
    app = plugin.get_plugin_apps()["/api/*"]
    started: list[str] = []

    def ask() -> Any:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": f"/{PLUGIN}api/header", "QUERY_STRING": ""}
        return json.loads(b"".join(app(environ, lambda status, _: started.append(status))))

    until(lambda: "hasLines" in ask())
    assert set(started) <= {"202 Accepted", "200 OK"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("/a/b", ""), ["/a/b"]),
        (("", "/a:b/c,name:/d"), ["/a:b/c", "/d"]),
        (("", "gs://bucket/x,run:s3://b/y,name:/d:e"), ["gs://bucket/x", "s3://b/y", "/d:e"]),
        (("/a", "x:/b"), ["/a"]),
        (("", ""), []),
    ],
)
def test_log_directories_are_taken_apart_as_by_tensorboard(given: tuple[str, str], expected: list[str]) -> None:
    from deepscope.dashboard.tensorboard import log_folders

    assert log_folders(*given) == expected


def test_where_the_tab_cannot_be_made_tensorboard_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    from deepscope.dashboard.tensorboard import Loader

    assert Loader().load(None) is None
    assert "could not be made" in caplog.text


def test_only_the_plug_in_imports_tensorboard() -> None:
    program = "import sys, deepscope.dashboard.application, deepscope.dashboard.server, deepscope.cli.servers;"
    check = "sys.exit('tensorboard' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program + check], check=False).returncode == 0
