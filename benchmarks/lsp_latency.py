"""Latency of the language server, measured by a client over stdio, beside a pygls server that does nothing.

    python benchmarks/lsp_latency.py [--rounds 2000] [--trace PATH]

A file of 10,000 lines, a profile of 2,000 hot lines in the cache. `keystroke` is a `didChange` and the smallest request
behind it, which is answered once the edit is worked in. `--trace` also times a trace that is not in the cache yet.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deepscope.store import cache as profile_cache
from deepscope.store.files import single_file
from deepscope.store.profile import (
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

HERE = Path(__file__).resolve().parent
OURS = (sys.executable, "-m", "deepscope_lsp")
FLOOR = (sys.executable, str(HERE / "programs" / "idle_lsp.py"))
LINES, HOT_LINES, VIEWPORT = 10_000, 2_000, 60


class Client:
    """The least that speaks the protocol: requests one at a time, over pipes."""

    def __init__(self, command: Sequence[str], cache: Path) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "DEEPSCOPE_CACHE_DIR": str(cache)},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._next = 0
        self.heard: list[dict[str, Any]] = []

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self._next and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message.get("result")
            self._take(message)

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until a message fits."""
        while True:
            message = self._read()
            self._take(message)
            if holds(message):
                return message

    def begin(self, root: Path) -> None:
        folder = {"uri": root.as_uri(), "name": root.name}
        self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": {},
                "initializationOptions": {"inlayHints": {"detail": "all"}},
            },
        )
        self.notify("initialized", {})

    def end(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(timeout=30)

    @property
    def memory_bytes(self) -> int:
        """Resident size of the server; 0 where the system does not say."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return 0
        return next(int(row.split()[1]) << 10 for row in status.splitlines() if row.startswith("VmRSS"))

    def _take(self, message: dict[str, Any]) -> None:
        self.heard.append(message)
        if "method" in message and "id" in message:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._in.flush()

    def _read(self) -> dict[str, Any]:
        length = 0
        while (row := self._out.readline()) not in {b"\r\n", b""}:
            name, _, value = row.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise RuntimeError("the server has closed its output")
        message: dict[str, Any] = json.loads(self._out.read(length))
        return message


def is_ready(message: dict[str, Any]) -> bool:
    return message.get("method") == "$/deepscope/status" and message["params"]["state"] == "ready"


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
    profile_cache.save(found, profile, step=None, partial=False)


def times_ms(action: Callable[[], Any], rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken


def figures(taken: Sequence[float]) -> str:
    ranked = sorted(taken)
    return f"p50 {statistics.median(ranked):6.2f}  p99 {ranked[int(0.99 * len(ranked))]:6.2f}  max {ranked[-1]:6.2f} ms"


def measure_requests(command: Sequence[str], file: Path, cache: Path, rounds: int, *, wait: bool) -> dict[str, str]:
    rng = random.Random(2)
    keep_profile(file, cache)
    client = Client(command, cache)
    client.begin(file.parent)
    uri = file.as_uri()
    text = file.read_text(encoding="utf-8")
    document = {"uri": uri}
    client.notify(
        "textDocument/didOpen", {"textDocument": {**document, "languageId": "python", "version": 1, "text": text}}
    )
    if wait:
        client.until(is_ready)
    version = 1

    def hover() -> Any:
        place = {"line": rng.randrange(0, LINES, LINES // HOT_LINES), "character": 6}
        return client.request("textDocument/hover", {"textDocument": document, "position": place})

    def hints() -> Any:
        first = rng.randrange(LINES - VIEWPORT)
        region = {"start": {"line": first, "character": 0}, "end": {"line": first + VIEWPORT, "character": 0}}
        return client.request("textDocument/inlayHint", {"textDocument": document, "range": region})

    def keystroke() -> None:
        nonlocal version
        version += 1
        line = rng.randrange(1, LINES - 1)
        start = {"line": line, "character": 4}
        typed = rng.choice(["x", "y", "\n    ", "", "    return x\n"])
        end = {"line": line, "character": 5 if typed in {"", "x"} else 4}
        change = {"range": {"start": start, "end": end}, "text": typed}
        client.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}
        )
        client.request(
            "textDocument/documentHighlight", {"textDocument": document, "position": {"line": 1, "character": 0}}
        )

    if wait:
        assert hover()
        assert len(hints()) >= VIEWPORT * HOT_LINES // LINES - 1
    for action in (hover, hints, keystroke):
        times_ms(action, 20)
    results = {
        "hover": figures(times_ms(hover, rounds)),
        "inlay hints, 60 lines": figures(times_ms(hints, rounds)),
        "keystroke": figures(times_ms(keystroke, rounds)),
        "inlay hints after the keystrokes": figures(times_ms(hints, rounds)),
        "memory": f"{client.memory_bytes / 1e6:.0f} MB",
    }
    client.end()
    return results


def measure_start(file: Path, cache: Path, rounds: int) -> tuple[str, str]:
    """From `initialized` and from the start of the process to the first annotations."""
    from_start, from_process = [], []
    text = file.read_text(encoding="utf-8")
    region = {"start": {"line": 0, "character": 0}, "end": {"line": VIEWPORT, "character": 0}}
    document = {"uri": file.as_uri()}
    for _ in range(rounds):
        keep_profile(file, cache)
        begun = time.perf_counter()
        client = Client(OURS, cache)
        client.begin(file.parent)
        started = time.perf_counter()
        client.notify(
            "textDocument/didOpen", {"textDocument": {**document, "languageId": "python", "version": 1, "text": text}}
        )
        client.until(is_ready)
        assert client.request("textDocument/inlayHint", {"textDocument": document, "range": region})
        now = time.perf_counter()
        from_start.append(1e3 * (now - started))
        from_process.append(1e3 * (now - begun))
        client.end()
    return figures(from_start), figures(from_process)


def measure_new_trace(trace: Path, cache: Path) -> tuple[float, int]:
    """Seconds from a new trace in the folder to its annotations, and the server's size then."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = root / "deepscope_logs"
        folder.mkdir()
        client = Client(OURS, cache)
        client.begin(root)
        client.until(lambda message: message.get("method") == "$/deepscope/status")
        hidden = folder / "copy.part"
        shutil.copyfile(trace, hidden)
        start = time.perf_counter()
        hidden.rename(folder / "new.1760000000000000001.pt.trace.json.gz")
        client.notify(
            "workspace/didChangeWatchedFiles",
            {"changes": [{"uri": (folder / "new.1760000000000000001.pt.trace.json.gz").as_uri(), "type": 1}]},
        )
        client.until(is_ready)
        seconds = time.perf_counter() - start
        size = client.memory_bytes
        client.end()
    return seconds, size


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--trace", type=Path, help="a trace (.json.gz) to be read anew")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root, cache = Path(name, "project"), Path(name, "cache")
        root.mkdir()
        file = make_workspace(root)
        ours = measure_requests(OURS, file, cache, options.rounds, wait=True)
        floor = measure_requests(FLOOR, file, cache, options.rounds, wait=False)
        print(f"{LINES:,} lines, {HOT_LINES:,} hot lines, {options.rounds:,} rounds")
        for what, words in ours.items():
            print(f"{what:34}{words}\n{'  the floor':34}{floor[what]}")
        start, process = measure_start(file, cache, 10)
        print(f"{'first annotations, cached':34}{start}\n{'  process start included':34}{process}")
        if options.trace is not None:
            seconds, size = measure_new_trace(options.trace, Path(name, "cold"))
            print(f"{'new trace to annotations':34}{seconds:.2f} s, then {size / 1e6:.0f} MB  ({options.trace.name})")


if __name__ == "__main__":
    main()
