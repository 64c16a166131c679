"""Names of files as TensorBoard's plug-in wants them, which process they are of, and the folders that they go to."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from string import Formatter

from deepscope.errors import OptionError, RecorderError
from deepscope.trace.format.counters import RUN_ENDING

RAW_SUFFIX = ".deepscope-raw"
WORKERS_PREFIX = "deepscope-workers-"
_OWNED = re.compile(r"(?P<stem>\..+)@(?P<host>[^@]+)@(?P<pid>\d{1,10})\.deepscope-raw")
_OWNED_WORKERS = re.compile(r"deepscope-workers-(?P<host>.+)-(?P<pid>\d{1,10})-[^-]*")


def worker_name(name: str | None, stage: str, rank: int, world_size: int = 1, program: str = "") -> str:
    """`<name or host_pid>[.<stage>].rank<R>`, in letters that every file system and TensorBoard take.

    A name with `{…}` in it is a template of the whole: of `NAME_FIELDS`. Ranks and stages that it does not tell apart
    stand behind it all the same.
    """
    base = f"{socket.gethostname()}_{os.getpid()}"
    if not is_template(name):
        parts = [clean(part) for part in ([name or base, stage] if stage else [name or base])]
        return ".".join([*parts, f"rank{rank}"])
    assert name is not None
    values = {
        "worker": base,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "stage": stage,
        "rank": rank,
        "world_size": world_size,
        "program": Path(program).stem,
        "time": datetime.now().astimezone().strftime("%Y%m%d-%H%M%S"),
    }
    fields = check_template(name)
    filled = _REPEATED.sub(r"\1", name.format_map(values))
    more = [stage] if stage and "stage" not in fields else []
    more += [f"rank{rank}"] if world_size > 1 and "rank" not in fields else []
    return ".".join([clean(filled)[:_LONGEST], *map(clean, more)])


NAME_FIELDS = ("worker", "host", "pid", "stage", "rank", "world_size", "program", "time")
"""What a template of names may have in braces; `worker` is host and process, `time` when the recording was made."""
_REPEATED = re.compile(r"([-_.])[-_.]+")
"""What an empty field leaves, such as a stage outside Lightning."""
_LONGEST = 150
"""Letters; a file's name may have 255 with all that stands behind."""


def is_template(name: str | None) -> bool:
    """Whether a name has fields in braces."""
    return name is not None and "{" in name


def check_template(name: str | None) -> frozenset[str]:
    """The fields of a template; none for another name. Raises `OptionError` for a field that does not exist."""
    if name is None or not is_template(name):
        return frozenset()
    try:
        fields = [field for _, field, _, _ in Formatter().parse(name) if field is not None]
        name.format_map({**dict.fromkeys(NAME_FIELDS, "a"), "pid": 1, "rank": 0, "world_size": 1})
    except (ValueError, LookupError, AttributeError, TypeError):
        fields = ["?"]
    if not set(fields) <= set(NAME_FIELDS):
        known = ", ".join(f"{{{field}}}" for field in NAME_FIELDS)
        raise OptionError("filename", name, f"must be letters and fields; there are: {known}")
    return frozenset(fields)


def clean(word: str) -> str:
    """`word` in letters that every file system and TensorBoard take."""
    safe = re.sub(r"[^\w.-]+", "_", word, flags=re.ASCII).replace(".pt.trace", "_pt_trace")
    return safe.strip("._") or "worker"


def trace_path(folder: Path, worker: str, *, compress: bool) -> Path:
    """A name that no trace in `folder` has."""
    suffix = ".pt.trace.json.gz" if compress else ".pt.trace.json"
    while True:
        path = folder / f"{worker}.{time.time_ns()}{suffix}"
        if not path.exists():
            return path


def run_counters_path(folder: Path, worker: str) -> Path:
    """The file for the counters of a whole run."""
    return folder / f"{worker}.{time.time_ns()}{RUN_ENDING}"


def raw_path(trace: Path) -> Path:
    """Where torch's own export lies until it is rewritten; TensorBoard does not take it for a trace.

    The name says which process it is of, so that others can tell whether it was left behind.
    """
    stem = trace.name.partition(".pt.trace.json")[0]
    return trace.with_name(f".{stem}@{host_name()}@{os.getpid()}{RAW_SUFFIX}")


def host_name() -> str:
    """The name of this host, in letters of a file's name."""
    return clean(socket.gethostname())


def owner_of(path: Path) -> tuple[str, int] | None:
    """Host and process that an export, or a folder for workers, is of; None for a path of another name."""
    found = _OWNED.fullmatch(path.name) or _OWNED_WORKERS.fullmatch(path.name)
    return (found["host"], int(found["pid"])) if found is not None else None


def is_being_written(folder: Path) -> bool:
    """Whether an export in `folder` is of a process of this host that runs."""
    owners = [owner_of(path) for path in folder.glob(f".*{RAW_SUFFIX}")]
    return any(owner is not None and owner[0] == host_name() and is_alive(owner[1]) for owner in owners)


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs; True where that cannot be told, False for one that is a zombie."""
    if os.name == "nt":  # os.kill would end the process there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # A worker that crashed stays a zombie until its loader notices.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self/stat").exists()


def owned(raw: Path) -> Path:
    """The name that an export has in this process's hands."""
    found = _OWNED.fullmatch(raw.name)
    assert found is not None
    return raw.with_name(f"{found['stem']}@{host_name()}@{os.getpid()}{RAW_SUFFIX}")


def job_path(path: Path) -> Path:
    """Where it is written down what is to be made of an export; `path` is that of the export, or of its trace."""
    found = _OWNED.fullmatch(path.name)
    stem = found["stem"] if found is not None else f".{path.name.partition('.pt.trace.json')[0]}"
    return path.with_name(f"{stem}.deepscope-job")


def workers_prefix() -> str:
    """How the name of this process's folder for its data-loader workers begins."""
    return f"{WORKERS_PREFIX}{host_name()}-{os.getpid()}-"


def remove_raw(raw: Path) -> None:
    """Remove an export, what was to be made of it, and what Kineto leaves of one that it could not finish."""
    for path in (raw, raw.with_name(f"{raw.name}.tmp"), job_path(raw)):
        with suppress(OSError):
            path.unlink()


DEFAULT_FOLDER = "deepscope_logs"
"""Where traces go unless a folder is given; only a folder of this name gets a `.gitignore`."""

_FULL_BYTES = 1 << 20
"""With less than this the smallest trace does not fit beside torch's export."""

_IGNORE_ALL = "# Traces are large, and made anew with each run.\n*\n"


def current_folder() -> Path:
    """The working folder; where that was removed, the place that it had."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.environ.get("PWD", os.sep))


def seen_from_here(folder: Path) -> Path:
    """`folder` as the working folder of now has it; unchanged where that was removed (`check_folder` refuses it)."""
    try:
        return folder.absolute()
    except OSError:
        return folder


def make_trace_folder(folder: Path) -> None:
    """Makes a folder with those above it; a new `deepscope_logs` gets a `.gitignore` over all that it holds."""
    own = next((one for one in (folder, *folder.parents) if one.name == DEFAULT_FOLDER), None)
    is_new = own is not None and not own.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if own is not None and is_new:
        with suppress(OSError), (own / ".gitignore").open("x", encoding="utf-8") as stream:
            stream.write(_IGNORE_ALL)


def check_folder(folder: Path) -> None:
    """Raises `RecorderError` if no trace could be written to `folder`, which need not be there yet; leaves nothing."""
    try:
        whole = folder.absolute()
        near = next(one for one in (whole, *whole.parents) if one.exists())
        with tempfile.TemporaryFile(dir=near):  # rights alone say nothing of a file system that is read-only
            pass
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RecorderError(f"{folder}: traces cannot be written there ({reason}); choose another folder") from None
    check_space(near)


def check_space(folder: Path) -> None:
    """Raises `RecorderError` if the disk of `folder` is full; torch would only say that a file is missing."""
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return
    if free_bytes < _FULL_BYTES:
        raise RecorderError(f"the disk is full: {free_bytes // 1024:,} KiB are free in {folder}")
