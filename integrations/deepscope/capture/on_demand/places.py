"""Where control servers are: folders of the user's own, with an entry beside each server that says whose it is."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from deepscope.capture.on_demand.messages import VERSION
from deepscope.errors import ControlError

CONTROL_FOLDER = ".deepscope-control"
"""The folder beside the traces that holds a control server made of files."""

_LONGEST_PATH = 100
"""Bytes of a socket's address; 104 with the end on macOS, 108 on Linux."""
_ENTRY_LIMIT = 1 << 16


class ControlEntry(msgspec.Struct, frozen=True):
    """A control, as its process describes it."""

    pid: int
    control: str
    """The socket's path, or "files"."""
    version: int = VERSION
    started: str = ""
    """When the process began, as the kernel counts; another process of this number began at another time."""
    here: str = ""
    """Which boot of which machine (or container) it is."""
    host: str = ""
    program: str = ""
    folder: str = ""
    rank: int = 0
    world_size: int = 1
    job: str = ""
    """What the ranks of a job share."""
    python: str = ""
    since: float = 0.0
    """Unix time of the control."""


def this_host() -> str:
    """Tells boots of machines and namespaces of processes apart: within one a number means one process."""
    marks = [socket.gethostname()]
    with suppress(OSError):
        marks.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    with suppress(OSError):
        marks.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()[:8]


def started_at(pid: int) -> str:
    """When a process began; "" where that cannot be told, or there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def control_folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Folders of this user's control servers, the preferred one first: session, cache, temporary folder.

    `environment`: that of another process of this user's, which may have been told other folders.
    """
    import platformdirs

    variables = os.environ if environment is None else environment
    user = _user()
    folders: list[Path] = []
    if variables.get("XDG_RUNTIME_DIR"):
        folders.append(Path(variables["XDG_RUNTIME_DIR"], "deepscope"))
    if environment is None and sys.platform.startswith("linux"):
        folders.append(Path(f"/run/user/{user}/deepscope"))
    if environment is None:
        folders.append(Path(platformdirs.user_cache_dir("deepscope", appauthor=False), "control"))
    elif variables.get("XDG_CACHE_HOME"):
        folders.append(Path(variables["XDG_CACHE_HOME"], "deepscope", "control"))
    elif variables.get("HOME"):
        folders.append(Path(variables["HOME"], ".cache", "deepscope", "control"))
    folders.append(Path(variables.get("TMPDIR") or tempfile.gettempdir(), f"deepscope-{user}"))
    return list(dict.fromkeys(folder for folder in folders if folder.is_absolute()))


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def is_own(status: os.stat_result) -> bool:
    """Whether a file or folder is this user's; where there are no owners (Windows) the folder's rights decide."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def make_private(folder: Path) -> None:
    """Makes a folder that nobody else can enter; raises `ControlError` where somebody else has one of this name."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or not is_own(status):
            raise ControlError(f"{folder}: is not a folder of yours; remove it")
        if os.name != "nt" and stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise ControlError(f"{folder}: {error.strerror or error}") from None


def place_for_socket(pid: int) -> Path:
    """Where this process's socket goes; raises `ControlError` if no folder can be had with a path short enough."""
    problems: list[str] = []
    for folder in control_folders():
        path = folder / f"{this_host()}-{pid}.sock"
        if len(os.fsencode(path)) > _LONGEST_PATH:
            problems.append(f"{folder}: too long for a socket's address")
            continue
        if folder.name == "deepscope" and not folder.parent.is_dir():  # /run/user/1000 is the system's to make
            continue
        try:
            make_private(folder)
        except ControlError as error:
            problems.append(str(error))
            continue
        return path
    raise ControlError(f"no folder for a socket: {'; '.join(problems)}")


def write_private(path: Path, words: bytes) -> None:
    """Writes a file that only its owner reads, whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(OSError):
        beside.unlink()
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as stream:
            stream.write(words)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def read_private(path: Path, limit: int = _ENTRY_LIMIT) -> bytes | None:
    """What stands in a regular file of this user's own; None where there is none, or another one."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with open(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not is_own(status):
            return None
        words = stream.read(limit + 1)
    return words if len(words) <= limit else None


def entries(folder: Path) -> Iterator[tuple[Path, ControlEntry]]:
    """The control servers in a folder, with the files that describe them; what is no entry is skipped."""
    try:
        if not is_own(folder.lstat()):
            return
        paths = sorted(folder.glob("*.json"))
    except OSError:
        return
    for path in paths:
        words = read_private(path)
        if words is None:
            continue
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            yield path, msgspec.json.decode(words, type=ControlEntry)
