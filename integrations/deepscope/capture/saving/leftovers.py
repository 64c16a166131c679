"""What killed processes have left: exports that can still be made into traces, and files that cannot.

Only our own files are touched, and only those of processes of this host that are gone: the name says whose each is.
Containers may share a folder and a host's name without seeing each other's processes, so a file must have lain
untouched for a while, too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from deepscope.capture import naming
from deepscope.capture.other_processes import is_alive
from deepscope.capture.saving.rewrite import Instructions, Outcome
from deepscope.errors import RecorderError, TraceError

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


def recover(folder: Path, write: Callable[[Instructions], Outcome]) -> list[Path]:
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
    return host == naming.host_name() and untouched_s > _UNTOUCHED_S and not is_alive(pid)


def _recovered(raw: Path, write: Callable[[Instructions], Outcome]) -> Path | None:
    own = naming.owned(raw)
    job = naming.job_path(raw)
    try:
        raw.rename(own)  # only one of several processes comes through here
        instructions = _job_of(own, job)
        target = Path(instructions.target) if instructions is not None else None
        is_new = target is not None and not target.exists()
        if instructions is not None and is_new and not write(instructions).written:
            target = None
    except (TraceError, ValueError, KeyError, TypeError):
        target = None  # nothing that a trace could be made of
    except (OSError, RecorderError):
        return None  # a disk that is full: the next one to come may have more luck
    naming.remove_raw(own)
    return target if target is not None and is_new else None


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
    """Remove the folders of data-loader workers whose recordings ended without a word."""
    for folder in Path(tempfile.gettempdir()).glob(f"{naming.WORKERS_PREFIX}*"):
        owner = naming.owner_of_workers(folder)
        with suppress(OSError):
            is_mine = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
            if owner is not None and is_mine and not folder.is_symlink() and _is_gone(folder, *owner):
                shutil.rmtree(folder, ignore_errors=True)
