"""Latency of the language server, measured by a client over stdio, beside a pygls server that does nothing.

A file of 10,000 lines, a profile of 2,000 hot lines in the cache; then a trace that is in no cache. A keystroke is a
`didChange` and the smallest request behind it, which is answered once the edit is worked in.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsp_client import Client, is_ready, open_document
from measure import Spread, percentile
from results import RECORDED_TRACE, Goal, Result, make_parser

from deepscope.records import (
    CallNode,
    Function,
    Line,
    Numbers,
    Profile,
    Resolved,
    SourceFile,
    Top,
    Totals,
    TraceInfo,
)
from deepscope.store import cache as profile_cache
from deepscope.store.files import single_file

_HERE = Path(__file__).resolve().parent
SERVERS = {
    "deepscope": (sys.executable, "-m", "deepscope_lsp"),
    "idle": (sys.executable, str(_HERE / "programs" / "idle_lsp.py")),
}
VIEWPORT = 60
LINES, HOT_LINES = 10_000, 2_000
WARM_UP = 20

HOVER, FUNCTION_HOVER = "hover on a hot line", "hover on a function of 2,000 lines"
HINTS, HINTS_AFTER, KEYSTROKE = "inlay hints, 60 lines", "inlay hints after the keystrokes", "keystroke"
START, PROCESS_START = "first annotations, profile in the cache", "the same from the start of the process"

Times = dict[str, list[float]]


def make_workspace(root: Path) -> Path:
    """The file, and beside it an empty trace that stands for its profile."""
    rng = random.Random(1)
    lines = [
        f"    y{number} = self.layer_{rng.randrange(400)}(x)" if number % 3 else "    return x"
        for number in range(LINES)
    ]
    lines[0] = "def forward(self, x):"
    file = root / "model.py"
    file.write_text("\n".join(lines), encoding="utf-8")
    folder = root / "deepscope_logs"
    folder.mkdir()
    trace = folder / "bench.fit.rank0.1760000000000000000.pt.trace.json"
    trace.write_text('{"traceEvents": []}', encoding="utf-8")
    old = time.time() - 60
    os.utime(trace, (old, old))
    return file


def keep_profile(file: Path, cache: Path) -> None:
    """Puts the profile of the trace into the cache; again before each run, since an edit of the library empties it."""
    tops = [Top(f"kernel_{number}<float, 128>", 1000 - number, 7) for number in range(5)]
    records = [
        Line(
            file=str(file),
            line=1 + number * (LINES // HOT_LINES),
            function="Net.forward",
            exact=True,
            self_device_ns=10**6 - number,
            total_device_ns=2 * 10**6,
            backward_device_ns=4 * 10**5,
            self_cpu_ns=10**5,
            total_cpu_ns=10**5,
            launches=12,
            calls=3,
            bytes_allocated=1 << 20,
            top_kernels=tops,
            top_operators=tops,
        )
        for number in range(HOT_LINES)
    ]
    device_ns = sum(record.self_device_ns for record in records)
    trace = next((file.parent / "deepscope_logs").iterdir())
    profile = Profile(
        metric="device",
        trace=TraceInfo(path=str(trace), project_root=str(file.parent), ranks=[0], stage="fit", device="bench"),
        totals=Totals(
            device_ns=device_ns,
            busy_ns=device_ns,
            idle_ns=0,
            wall_ns=device_ns,
            wait_ns=0,
            steps=3,
            launches=9,
            operators=9,
        ),
        lines=records,
        no_line=Numbers(),
        resolved=Resolved(line_ns=device_ns),
        functions=[Function(file=str(file), line=1, function="Net.forward", self_device_ns=device_ns)],
        call_tree=[CallNode(number // 2 if number else -1, number, 1000, 1000) for number in range(HOT_LINES)],
        files={str(file): SourceFile(text=file.read_text(encoding="utf-8"))},
    )
    found = single_file(str(trace))
    assert found is not None
    os.environ["DEEPSCOPE_CACHE_DIR"] = str(cache)
    profile_cache.save(found, profile, partial=False)


class Session:
    """One server with the long file open, and what is asked of it."""

    def __init__(self, command: Sequence[str], file: Path, cache: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.client = Client(command, cache)
        self.client.begin(file.parent)
        self.document = open_document(self.client, file)
        self._version = 1

    def hover(self) -> Any:
        line = self.rng.randrange(LINES // HOT_LINES, LINES, LINES // HOT_LINES)
        return self._ask("textDocument/hover", position={"line": line, "character": 6})

    def function_hover(self) -> Any:
        return self._ask("textDocument/hover", position={"line": 0, "character": 6})

    def hints(self) -> Any:
        first = self.rng.randrange(LINES - VIEWPORT)
        region = {"start": {"line": first, "character": 0}, "end": {"line": first + VIEWPORT, "character": 0}}
        return self._ask("textDocument/inlayHint", range=region)

    def keystroke(self) -> None:
        self._version += 1
        line = self.rng.randrange(1, LINES - 1)
        typed = self.rng.choice(["x", "y", "\n    ", "", "    return x\n"])
        start, end = {"line": line, "character": 4}, {"line": line, "character": 5 if typed in {"", "x"} else 4}
        document = {**self.document, "version": self._version}
        change = {"range": {"start": start, "end": end}, "text": typed}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        self._ask("textDocument/documentHighlight", position={"line": 1, "character": 0})

    def _ask(self, method: str, **params: Any) -> Any:
        return self.client.request(method, {"textDocument": self.document, **params})


def requests_ms(name: str, file: Path, cache: Path, rounds: int, seed: int) -> tuple[Times, int]:
    """Times of each kind of request, and the server's size at the end."""
    keep_profile(file, cache)
    session = Session(SERVERS[name], file, cache, seed)
    if name == "deepscope":
        session.client.until(is_ready)
        if not (session.hover() and len(session.hints()) >= VIEWPORT * HOT_LINES // LINES - 1):
            raise RuntimeError("the server shows no numbers: there is nothing to measure")
    actions = {
        HOVER: session.hover,
        FUNCTION_HOVER: session.function_hover,
        HINTS: session.hints,
        KEYSTROKE: session.keystroke,
        HINTS_AFTER: session.hints,
    }
    taken = {what: times_ms(action, rounds) for what, action in actions.items()}
    size_bytes = session.client.memory_bytes
    session.client.end()
    return taken, size_bytes


def times_ms(action: Callable[[], Any], rounds: int) -> list[float]:
    taken = []
    for _ in range(WARM_UP + rounds):
        start = time.perf_counter()
        action()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken[WARM_UP:]


def start_ms(name: str, file: Path, cache: Path) -> tuple[float, float]:
    """From `initialized`, and from the start of the process, to the answer with the first annotations."""
    keep_profile(file, cache)
    begun = time.perf_counter()
    client = Client(SERVERS[name], cache)
    client.begin(file.parent)
    started = time.perf_counter()
    document = open_document(client, file)
    if name == "deepscope":
        client.until(is_ready)
    region = {"start": {"line": 0, "character": 0}, "end": {"line": VIEWPORT, "character": 0}}
    client.request("textDocument/inlayHint", {"textDocument": document, "range": region})
    now = time.perf_counter()
    client.end()
    return 1e3 * (now - started), 1e3 * (now - begun)


def new_trace(trace: Path, cache: Path) -> tuple[float, int]:
    """Seconds from a new trace in the folder to the first answer from it, and the server's size then."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = root / "deepscope_logs"
        folder.mkdir()
        client = Client(SERVERS["deepscope"], cache)
        client.begin(root)
        client.until(lambda message: message.get("method") == "$/deepscope/status")
        hidden = folder / "copy.part"
        shutil.copyfile(trace, hidden)
        target = folder / f"new.1760000000000000001.pt.trace.json{'.gz' if trace.suffix == '.gz' else ''}"
        start = time.perf_counter()
        hidden.rename(target)
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": target.as_uri(), "type": 1}]})
        client.until(is_ready)
        client.request("workspace/executeCommand", {"command": "deepscope.hotLines", "arguments": [{"limit": 60}]})
        seconds = time.perf_counter() - start
        size_bytes = client.memory_bytes
        client.end()
    return seconds, size_bytes


def measure_requests(result: Result, options: argparse.Namespace, file: Path, cache: Path) -> None:
    taken: dict[str, list[Times]] = {name: [] for name in SERVERS}
    sizes: dict[str, list[float]] = {name: [] for name in SERVERS}
    for repeat in range(options.repeats):
        for name in list(SERVERS)[:: 1 if repeat % 2 else -1]:
            times, size_bytes = requests_ms(name, file, cache, options.rounds, repeat)
            taken[name].append(times)
            sizes[name].append(size_bytes / 1e6)
    for what in (HOVER, FUNCTION_HOVER, HINTS, KEYSTROKE, HINTS_AFTER):
        spread = Spread.of([percentile(times[what], 99) for times in taken["deepscope"]])
        result.goals.append(Goal(f"{what}: p99, ms", spread, at_most=5))
    rows = [["", *(f"{name}, {figure}" for name in SERVERS for figure in ("p50", "p99", "max"))]]
    for what in taken["idle"][0]:
        cells = []
        for name in SERVERS:
            pooled = [time_ms for times in taken[name] for time_ms in times[what]]
            cells += [f"{figure:.2f}" for figure in (statistics.median(pooled), percentile(pooled, 99), max(pooled))]
        rows.append([what, *cells])
    result.tables[f"requests, ms ({options.rounds:,} of each in {options.repeats} processes)"] = rows
    result.samples["p99_ms"] = {
        name: [{what: percentile(times[what], 99) for what in times} for times in taken[name]] for name in SERVERS
    }
    memory = [["", *SERVERS], ["after the requests", *(f"{statistics.median(sizes[name]):.0f}" for name in SERVERS)]]
    result.tables["memory, MB"] = memory


def measure_starts(result: Result, options: argparse.Namespace, file: Path, cache: Path) -> None:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in SERVERS}
    for repeat in range(options.starts):
        for name in list(SERVERS)[:: 1 if repeat % 2 else -1]:
            taken[name].append(start_ms(name, file, cache))
    rows = [["", *SERVERS]]
    for place, (what, limit) in enumerate(((START, 300), (PROCESS_START, None))):
        spreads = {name: Spread.of([pair[place] for pair in pairs]) for name, pairs in taken.items()}
        result.goals.append(Goal(f"{what}, ms", spreads["deepscope"], at_most=limit))
        rows.append([what, *(f"{spread.median:.0f}" for spread in spreads.values())])
    result.tables[f"start, ms (median of {options.starts})"] = rows
    result.samples["start_ms"] = taken


def measure_new_trace(result: Result, options: argparse.Namespace, folder: Path) -> None:
    if not options.trace.is_file():
        print(f"no trace at {options.trace}: the reading of a new one is not measured", file=sys.stderr)
        return
    measured = [new_trace(options.trace, folder / f"cold-{repeat}") for repeat in range(options.repeats)]
    seconds, sizes = zip(*measured, strict=True)
    result.goals.append(Goal("new trace of 62 MB to annotations, s", Spread.of(seconds), at_most=2))
    result.goals.append(Goal("memory after that, MB", Spread.of([size / 1e6 for size in sizes]), at_most=150))
    result.samples["new_trace"] = measured


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 5, interpreter=False)
    parser.add_argument("--rounds", type=int, default=2000, help="requests of each kind in each (default 2000)")
    parser.add_argument("--starts", type=int, default=10, help="starts that are measured (default 10)")
    parser.add_argument("--trace", type=Path, default=RECORDED_TRACE, help="a trace of 60 MB to be read anew")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    settings = {key: getattr(options, key) for key in ("repeats", "rounds", "starts")}
    settings |= {"lines": LINES, "hot_lines": HOT_LINES, "trace": options.trace.name}
    result = Result.of("language server", options, settings)
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as name:
        folder = Path(name)
        (folder / "project").mkdir()
        file = make_workspace(folder / "project")
        measure_requests(result, options, file, folder / "cache")
        measure_starts(result, options, file, folder / "cache")
        measure_new_trace(result, options, folder)
    result.finish(options)


if __name__ == "__main__":
    main()
