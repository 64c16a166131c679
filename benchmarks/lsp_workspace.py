"""The workspace in which the language server is measured: a long file, and many hot lines of it in the cache."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

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

__all__ = ["HOT_LINES", "LINES", "keep_profile", "make_workspace"]

LINES, HOT_LINES = 10_000, 2_000


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
