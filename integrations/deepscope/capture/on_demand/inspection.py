"""What the system tells of a process: whose it is, whether it is Python, and which ranks it started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deepscope.errors import ControlError

_PROC = Path("/proc")
_VERSION = re.compile(r"(?:lib)?python(3)\.(\d+)[a-z]*(?:\.so[\d.]*)?$|/python(3)\.(\d+)t?/lib-dynload/")


@dataclass(frozen=True)
class Process:
    """A Python process of this user's."""

    pid: int
    executable: str
    version: tuple[int, int]
    """(0, 0) where it cannot be told."""
    environment: dict[str, str]
    """As it was started with."""
    is_elsewhere: bool
    """Whether it runs in a container of its own: other files, other numbers of processes."""


def inspect(pid: int) -> Process:
    """Raises `ControlError` if there is no such process, it is somebody else's, or no Python."""
    folder = _PROC / str(pid)
    if not _PROC.joinpath("self").exists():
        _check_alive(pid)
        return Process(pid, "", (0, 0), {}, is_elsewhere=False)
    try:
        owner = folder.stat().st_uid
        state = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
        name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, IndexError):
        raise ControlError(f"there is no process {pid}") from None
    if owner != os.getuid():
        raise ControlError(f"process {pid} ({name}) is {_user(owner)}'s; only that user can attach to it")
    if state in "ZX":
        raise ControlError(f"process {pid} ({name}) has ended")
    try:
        executable = os.readlink(folder / "exe")  # noqa: PTH115  a Path would drop what stands behind the name
        maps = (folder / "maps").read_text(encoding="utf-8", errors="replace")
        words = (folder / "environ").read_bytes()
    except OSError as error:
        raise ControlError(f"process {pid} ({name}) cannot be looked at: {error.strerror or error}") from None
    version = _version(executable, maps)
    if version is None:
        raise ControlError(f"process {pid} ({name}) is not Python")
    return Process(pid, executable, version, _environment(words), _is_elsewhere(folder))


def _check_alive(pid: int) -> None:
    if os.name == "nt":  # os.kill would end the process there
        return
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        raise ControlError(f"there is no process {pid}") from None
    except PermissionError:
        raise ControlError(f"process {pid} is another user's; only that user can attach to it") from None


def _user(number: int) -> str:
    with suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(number).pw_name
    return f"user {number}"


def _version(executable: str, maps: str) -> tuple[int, int] | None:
    """By the name of its file, or of the libraries in its memory; None for what is no Python."""
    files = dict.fromkeys(line[line.index("/") :].strip() for line in maps.splitlines() if "/" in line)
    for file in (executable.removesuffix(" (deleted)"), *files):
        found = _VERSION.search(file)
        if found is not None:
            major, minor = [number for number in found.groups() if number is not None]
            return int(major), int(minor)
    return (0, 0) if Path(executable).name.startswith("python") else None


def _environment(words: bytes) -> dict[str, str]:
    pairs = (os.fsdecode(word).partition("=") for word in words.split(b"\0") if b"=" in word)
    return {name: value for name, _, value in pairs}


def _is_elsewhere(folder: Path) -> bool:
    for name in ("mnt", "pid"):
        with suppress(OSError):
            if (folder / "ns" / name).readlink() != (_PROC / "self" / "ns" / name).readlink():
                return True
    return False


def parent_of(pid: int) -> int:
    """0 where it cannot be told."""
    try:
        words = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        return int(words.split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def ancestors(pid: int) -> list[int]:
    """A process and those that started it: the agent of a launcher, a shell; not the first one of the system."""
    found = [pid]
    while len(found) < 64 and (parent := parent_of(found[-1])) > 1:
        found.append(parent)
    return found


def ranks_around(process: Process) -> list[Process]:
    """The ranks of the job that a process is a rank or the launcher of; itself where it is neither."""
    if "RANK" in process.environment:
        mark = _mark(process.environment)
        found = [one for one in _all_python() if "RANK" in one.environment and _mark(one.environment) == mark]
    else:
        found = [one for one in _all_python() if "RANK" in one.environment and process.pid in ancestors(one.pid)]
    numbers = {one.pid for one in found}
    ranks = [one for one in found if parent_of(one.pid) not in numbers]  # not what the ranks started
    return sorted(ranks, key=lambda one: one.pid) or [process]


def _mark(environment: dict[str, str]) -> tuple[str, str, str]:
    return tuple(environment.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"))  # type: ignore[return-value]


def _all_python() -> Iterator[Process]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(ControlError):
                yield inspect(int(folder.name))
