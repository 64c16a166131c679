"""How much of the trace folder recordings may fill: the oldest windows go first, and only traces of DeepScope's own.

A window is the files that its ranks wrote. Ranks and parallel runs may all look after one folder at once: a trace is
whole before it has its name, and it does not matter if somebody else has removed one. Traces of another process that
still runs are left to it.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deepscope.capture import naming
from deepscope.capture.other_processes import is_alive
from deepscope.trace.format.header import Header, glance
from deepscope.trace.format.run_account import files_beside

LARGE_BYTES = 5_000_000_000
"""If a folder has more in traces, one warning says so."""

_PATTERN = "*.pt.trace.json*"
_HEAD_BYTES = 1 << 14
_OWN = re.compile(rb'\{"schemaVersion":[^,{}]{1,20},"deepscope":\{"format":')
_YOUNG_S = 600
"""Files of another host count as finished at this age: we cannot ask whether their processes live."""


@dataclass(frozen=True)
class _Trace:
    path: Path
    size_bytes: int
    modified_s: float
    run_id: str
    window: tuple[str, str, int | None]
    """Run, stage and number."""
    host: str
    pid: int


def traces_bytes(folder: Path) -> int:
    """The size of all files in `folder` that are named like traces."""
    total = 0
    for path in folder.glob(_PATTERN):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def remove_oldest(folder: Path, *, keep_last: int | None, max_total_bytes: int | None, run_id: str) -> list[Path]:
    """Remove the oldest windows in `folder` beyond `keep_last`, and until all are `max_total_bytes` at most.

    `run_id`: of the run that asks; its own windows are not spared, but for the newest. Returns what was removed.
    """
    windows = _by_window(_own_traces(folder))
    total = sum(trace.size_bytes for window in windows for trace in window)
    removed: list[Path] = []
    for place in range(len(windows) - 1, 0, -1):  # from the oldest to the newest but one
        is_beyond = keep_last is not None and place >= keep_last
        if not is_beyond and (max_total_bytes is None or total <= max_total_bytes):
            continue
        if any(trace.run_id != run_id and _may_be_in_use(trace) for trace in windows[place]):
            continue
        for trace in windows[place]:
            total -= trace.size_bytes
            with suppress(OSError):
                trace.path.unlink()
                removed.append(trace.path)
                for beside in files_beside(trace.path):
                    beside.unlink(missing_ok=True)
    return removed


def _by_window(traces: Iterable[_Trace]) -> list[list[_Trace]]:
    """Newest first; a window is as new as the file of it that was written last."""
    groups: dict[tuple[str, str, int | None], list[_Trace]] = {}
    for trace in traces:
        groups.setdefault(trace.window, []).append(trace)
    return sorted(groups.values(), key=lambda group: -max(trace.modified_s for trace in group))


def _own_traces(folder: Path) -> Iterable[_Trace]:
    for path in folder.glob(_PATTERN):
        with suppress(OSError, zlib.error):
            status = path.lstat()
            head = _head(path) if path.is_file() and not path.is_symlink() else b""
            header = glance(head) if _OWN.match(head) else Header()
            if header.run_id:
                yield _Trace(
                    path=path,
                    size_bytes=status.st_size,
                    modified_s=status.st_mtime,
                    run_id=header.run_id,
                    window=(header.run_id, header.stage, header.window),
                    host=header.hostname,
                    pid=header.pid,
                )


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        raw = stream.read(_HEAD_BYTES)
    return zlib.decompressobj(wbits=31).decompress(raw, _HEAD_BYTES) if raw[:2] == b"\x1f\x8b" else raw


def _may_be_in_use(trace: _Trace) -> bool:
    if naming.clean(trace.host) == naming.host_name():
        return trace.pid != os.getpid() and is_alive(trace.pid)
    return time.time() - trace.modified_s < _YOUNG_S
