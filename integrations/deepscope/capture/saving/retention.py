"""How much of the trace folder recordings may fill, and what killed recordings left there.

A window is the files that its ranks wrote. Ranks and parallel runs may all look after one folder at once: a trace is
whole before it has its name, and it does not matter if somebody else has removed one. Traces of another process that
still runs are left to it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from deepscope.capture import naming
from deepscope.capture.saving.rewrite import Instructions
from deepscope.errors import RecorderError, TraceError
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
    """The size of all files in `folder` that are named like traces, with what lies beside them."""
    total = 0
    for path in folder.glob(_PATTERN):
        with suppress(OSError):
            total += path.stat().st_size + _bytes_beside(path)
    return total


def _bytes_beside(trace: Path) -> int:
    """The size of what goes with a trace: a memory snapshot may be as large as it."""
    return sum(path.stat().st_size for path in files_beside(trace) if path.is_file())


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
                    size_bytes=status.st_size + _bytes_beside(path),
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
        return trace.pid != os.getpid() and naming.is_alive(trace.pid)
    return time.time() - trace.modified_s < _YOUNG_S


_UNTOUCHED_S = 600


def keep_job(instructions: Instructions) -> bool:
    """Leave beside an export what is to be made of it, in case this process does not get to it.

    Returns whether that could be done.
    """
    job = naming.job_path(Path(instructions.target))
    try:
        job.write_bytes(msgspec.json.encode(instructions))
    except (OSError, TypeError, ValueError):
        with suppress(OSError):
            job.unlink()
        return False
    return True


def recover(folder: Path, write: Callable[[Instructions], bool]) -> list[Path]:
    """Make the exports of dead processes in `folder` into traces by `write`, and remove what is left of them.

    Several processes may do this at once: renaming an export makes it one's own. Returns the traces made.
    """
    traces = [trace for raw in _abandoned(folder, "") if (trace := _recovered(raw, write)) is not None]
    for unfinished in _abandoned(folder, ".tmp"):
        with suppress(OSError):
            unfinished.unlink()
    return traces


def _abandoned(folder: Path, suffix: str) -> list[Path]:
    found = []
    for path in folder.glob(f".*{naming.RAW_SUFFIX}{suffix}"):
        owner = naming.owner_of(path.with_name(path.name.removesuffix(suffix)))
        if owner is not None and _is_gone(path, *owner):
            found.append(path)
    return found


def _is_gone(path: Path, host: str, pid: int) -> bool:
    """Whether the owner of `path` is a process of this host that has ended."""
    try:
        untouched_s = time.time() - path.stat().st_mtime
    except OSError:
        return False
    return host == naming.host_name() and untouched_s > _UNTOUCHED_S and not naming.is_alive(pid)


def _recovered(raw: Path, write: Callable[[Instructions], bool]) -> Path | None:
    own = naming.owned(raw)
    job = naming.job_path(raw)
    instructions: Instructions | None = None
    try:
        raw.rename(own)  # only one of several processes comes through here
        instructions = _job_of(own, job)
        is_written = instructions is not None and not Path(instructions.target).exists() and write(instructions)
    except (TraceError, ValueError, KeyError, TypeError):
        is_written = False  # nothing that a trace could be made of
    except (OSError, RecorderError):
        return None  # a disk that is full: the next one to come may have more luck
    naming.remove_raw(own)
    return Path(instructions.target) if instructions is not None and is_written else None


def _job_of(raw: Path, job: Path) -> Instructions | None:
    """What was to be made of `raw`; its paths say where the files lie now, not where the job file says."""
    try:
        instructions = msgspec.json.decode(job.read_bytes(), type=Instructions)
    except (OSError, msgspec.MsgspecError):
        return None
    instructions.raw = str(raw)
    instructions.target = str(raw.with_name(Path(instructions.target).name))
    is_of_same_name = naming.job_path(Path(instructions.target)) == job
    return instructions if is_of_same_name else None


def sweep_worker_folders() -> None:
    """Remove the folders of data-loader workers whose recordings were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{naming.WORKERS_PREFIX}*"):
        owner = naming.owner_of(folder)
        with suppress(OSError):
            is_mine = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
            if owner is not None and is_mine and not folder.is_symlink() and _is_gone(folder, *owner):
                shutil.rmtree(folder, ignore_errors=True)
