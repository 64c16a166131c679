"""From the command to a complete first page: `deepscope view` in headless Chromium, beside torch-tb-profiler.

A round is a server of each kind on one trace: DeepScope's without a cached profile, then with it, and TensorBoard with
torch-tb-profiler. DeepScope's page counts when it is drawn in a browser that is open already. TensorBoard's counts when
it has answered the overview's data: drawing needs scripts from the network, which are not there, and is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from larger_trace import write_larger_trace
from machine import describe_machine, describe_python
from measure import Spread
from results import Goal, Result

_HERE = Path(__file__).resolve().parent
_DEFAULT_TRACE = _HERE.parents[1] / "shared" / "traces" / "tracelens-xdit_sd_3.5-profile_trace_rank_0.json.gz"
_NAMES = ("deepscope view, fresh", "deepscope view, cached", "torch-tb-profiler")
_PLUGIN = "data/plugin/pytorch_profiler/"
_PATIENCE_SECONDS = 600.0
_OPEN = build_opener(ProxyHandler({})).open


class Browser:
    """A Chromium that is open and waits for addresses."""

    def __init__(self, modules: Path, chromium: str) -> None:
        command = ["node", str(_HERE / "programs" / "first_page.mjs"), str(modules), chromium]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._hear("ready")

    def open(self, address: str) -> None:
        """Returns when the first page at the address is complete."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{address}\n")
        self._process.stdin.flush()
        self._hear("complete")

    def close(self) -> None:
        self._process.communicate()

    def _hear(self, word: str) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != word:
            raise RuntimeError("the browser ended early")


@contextmanager
def server(command: list[str], cache: Path, **pipes: Any) -> Iterator[subprocess.Popen[str]]:
    """A server, which is ended at the end."""
    environment = {**os.environ, "DEEPSCOPE_CACHE_DIR": str(cache)}
    process = subprocess.Popen(command, text=True, env=environment, **pipes)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def deepscope_seconds(python: str, trace: Path, cache: Path, browser: Browser) -> float:
    """From the command to the page that is drawn."""
    start = time.perf_counter()
    command = [python, "-m", "deepscope", "view", str(trace), "--no-browser"]
    with server(command, cache, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        browser.open(process.stdout.readline().strip())
        return time.perf_counter() - start


def tensorboard_seconds(python: str, folder: Path, cache: Path) -> float:
    """From the command to the overview's data."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = time.perf_counter()
    command = [python, "-m", "tensorboard.main", "--logdir", str(folder), "--port", str(port), "--bind_all"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with server(command, cache, **silent):
        base = f"http://127.0.0.1:{port}/{_PLUGIN}"
        found = asked(f"{base}runs", lambda answer: bool(answer["runs"]) and not answer["loading"])
        run = found["runs"][0]
        [worker, *_] = asked(f"{base}workers?{urlencode({'run': run, 'view': 'Overview'})}", bool)
        spans = asked(f"{base}spans?{urlencode({'run': run, 'worker': worker})}", lambda _: True)
        words = {"run": run, "worker": worker, "view": "Overview", "span": spans[0] if spans else ""}
        asked(f"{base}overview?{urlencode(words)}", bool)
        return time.perf_counter() - start


def asked(address: str, is_answer: Any) -> Any:
    """The answer, once it is one."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            with _OPEN(address, timeout=_PATIENCE_SECONDS) as reply:
                answer = json.load(reply)
            if is_answer(answer):
                return answer
        except (URLError, ConnectionError, json.JSONDecodeError):
            pass  # it has not begun to listen
        time.sleep(0.02)
    raise RuntimeError(f"{address} is not answered")


def measure(options: argparse.Namespace, trace: Path, folder: Path) -> dict[str, list[float]]:
    """Seconds of each by round; the order turns."""
    found: dict[str, list[float]] = {name: [] for name in _NAMES}
    browser = Browser(options.modules, options.chromium)
    try:
        for number in range(-1, options.repeats):  # the first fills the page cache and keeps byte code
            cache = folder / f"cache{number}"
            kinds = ("deepscope", "tensorboard") if number % 2 else ("tensorboard", "deepscope")
            times: dict[str, float] = {}
            for kind in kinds:
                if kind == "deepscope":
                    for name in _NAMES[:2]:
                        times[name] = deepscope_seconds(options.python, trace, cache, browser)
                else:
                    times[_NAMES[2]] = tensorboard_seconds(options.python, trace.parent, cache)
            if number >= 0:
                for name, seconds in times.items():
                    found[name].append(seconds)
            print(f"round {number + 1}: {times}", file=sys.stderr)
    finally:
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter to measure (default this one)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds that count, after one that does not (default 3)")
    parser.add_argument("--trace", type=Path, default=_DEFAULT_TRACE, help="the trace (default: 62 MB of JSON)")
    parser.add_argument("--copies", type=int, default=1, help="how often the window of the trace is repeated")
    parser.add_argument("--modules", type=Path, default=_HERE.parent / "tests" / "e2e", help="where playwright-core is")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium", help="the browser")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as name:
        folder = Path(name)
        trace = folder / "runs" / "run" / "worker0.pt.trace.json.gz"
        trace.parent.mkdir(parents=True)
        write_larger_trace(options.trace, trace, options.copies)
        found = measure(options, trace, folder)
    fresh, cached, other = (found[one] for one in _NAMES)
    result = Result(
        "dashboard", describe_machine(), describe_python(options.python),
        {"copies": options.copies, "repeats": options.repeats}, [], {}, {"seconds": found},
    )  # fmt: skip
    rows = [["", "s", "low to high"]]
    for title, seconds in found.items():
        spread = Spread.of(seconds)
        rows.append([title, f"{spread.median:.2f}", f"{spread.low:.2f} to {spread.high:.2f}"])
    result.tables[f"first page complete; medians of {options.repeats}"] = rows
    ratios = [Spread.of([theirs / mine for theirs, mine in zip(other, ours, strict=True)]) for ours in (fresh, cached)]
    result.goals = [
        Goal("fresh trace: times faster than torch-tb-profiler's overview data", ratios[0], at_least=1),
        Goal("cached profile: times faster", ratios[1]),
        Goal("cached profile: seconds to the first page", Spread.of(cached)),
    ]
    result.print()
    if options.json:
        result.write_json(options.json)


if __name__ == "__main__":
    main()
