"""Scripts under a recorder of lines, each in a process of its own: it may crash. Control servers and clients.
A clock that tests move."""

from __future__ import annotations

import os
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import deepscope
from deepscope.capture.on_demand.jobs import Client, live_entries
from deepscope.capture.on_demand.start import OnDemand
from deepscope.capture.whole_run import run_timer
from warm_python import run_warm

PRELUDE = """
import os, sys, threading, warnings
import torch
from torch.profiler import ProfilerActivity, profile
from deepscope.capture.lines import LineRecorder, UserCode
from pathlib import Path
sys.path.insert(0, {tests!r})
from line_truth import everywhere, read_spans
from recorded import name_of

HERE = Path(__file__).parent
monitored = sys.version_info >= (3, 12)
recorder = LineRecorder(UserCode.find(root=HERE))

class Window:
    def __init__(self, all_threads=False, recorder=recorder):
        config = everywhere() if all_threads else None
        self.torch = profile(activities=[ProfilerActivity.CPU], experimental_config=config)
        self.recorder = recorder
        self.spans = None
    def __enter__(self):
        self.torch.__enter__()
        self.recorder.start()
        return self
    def __exit__(self, *error):
        self.record = self.recorder.stop()
        self.torch.__exit__(*error)
    def lines_of(self, name):
        if self.spans is None:
            self.torch.export_chrome_trace(str(HERE / "raw.json"))
            self.spans = read_spans(HERE / "raw.json", self.record)
        return [[line for _, line in span.lines] for span in self.spans if span.name == name]

def hooks():
    if monitored:
        return [sys.monitoring.get_tool(number) for number in range(6)]
    return [sys.gettrace(), threading.gettrace(), sys._getframe(1).f_trace]

clean = hooks()
SOURCE = Path(__file__).read_text().splitlines()
def line_of(mark):
    return next(number for number, text in enumerate(SOURCE, 1) if text.endswith("# " + mark))
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs a script under the prelude; the process must end well and say `done`."""

    def call(script: str, *, warnings: str = "error", check: bool = True) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "script.py"
        tests = str(Path(__file__).parents[2])
        path.write_text(PRELUDE.format(tests=tests) + textwrap.dedent(script) + "\nprint('done')\n")
        result = run_warm(script=path, warning_filters=(warnings, "ignore::DeprecationWarning"), timeout_s=300)
        if check:
            assert result.returncode == 0, result.stderr[-3000:]
            assert result.stdout.endswith("done\n"), result.stdout[-2000:]
        return result

    return call


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Control servers of this test alone, in a folder whose name is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="ds-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield Path(folder)


@pytest.fixture
def control(runtime: Path, tmp_path: Path) -> Iterator[OnDemand]:
    """An open control server of this process."""
    with deepscope.on_demand(tmp_path / "traces") as opened:
        yield opened


@pytest.fixture
def connect(runtime: Path) -> Iterator[Callable[[], Client]]:
    """Connects to this process, which has opened a control server; whoever came leaves when the test ends."""
    with ExitStack() as clients:

        def connect_here() -> Client:
            (found,) = [one for one in live_entries() if one.entry.pid == os.getpid()]
            client = found.connect()
            clients.callback(client.leave)
            return client

        yield connect_here


@pytest.fixture
def sleep(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Moves the clock of a `RunTimer`."""
    now = [1000]
    monkeypatch.setattr(run_timer, "perf_counter_ns", lambda: now[0])

    def move(time_ns: int) -> None:
        now[0] += time_ns

    return move
