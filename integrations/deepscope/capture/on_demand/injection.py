"""A control server for a process that was started without one: Python 3.14 and later runs a script in another process.

https://docs.python.org/3.14/library/sys.html#sys.remote_exec
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from deepscope.capture.on_demand.protocol import place_for_socket, read_private, write_private
from deepscope.errors import ControlError

if TYPE_CHECKING:
    from deepscope.capture.on_demand.start import OnDemand

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


FIRST_VERSION = (3, 14)

_ASK = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_PATIENCE_SECONDS = 120.0
_SPEAK_AFTER_SECONDS = 3.0

_SCRIPT = """\
def __deepscope(given):
    import json, os, sys, threading
    def run():
        problem = ""
        try:
            if "torch" not in sys.modules:
                problem = "it has not imported torch"
            else:
                lent = []
                try:
                    try:
                        from deepscope.capture.on_demand.injection import join
                    except ImportError:
                        if tuple(sys.version_info[:2]) != tuple(given["version"]) and not given["is_source"]:
                            raise
                        lent.append(given["site"])
                        sys.path.extend(lent)
                        from deepscope.capture.on_demand.injection import join
                    join(given["folder"])
                finally:
                    for site in lent:
                        sys.path.remove(site)
        except ImportError as error:
            problem = "deepscope cannot be imported there (%s); install it into that environment" % error
        except BaseException as error:
            problem = "%s: %s" % (type(error).__name__, error)
        beside = given["answer"] + ".new"
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            json.dump({"problem": problem}, stream)
        os.replace(beside, given["answer"])
    threading.Thread(target=run, name="deepscope-joining", daemon=True).start()
try:
    __deepscope(INSTRUCTIONS)
finally:
    del __deepscope
"""


def inject(process: Process, folder: str, tell: Callable[[str], None] = lambda _: None) -> None:
    """Opens a control server in a running process, whose traces go to `folder`; relative to that process's own.

    Raises `ControlError`, which says what to do where the process cannot be entered.
    """
    _check(process)
    home = Path(__file__).resolve().parents[3]
    own = place_for_socket(process.pid).parent
    name = f"join-{process.pid}-{secrets.token_hex(4)}"
    script, answer = own / f"{name}.py", own / f"{name}.answer"
    instructions = {
        "folder": folder,
        "site": str(home),
        "is_source": home.name != "site-packages",
        "version": list(sys.version_info[:2]),
        "answer": str(answer),
    }
    write_private(script, _SCRIPT.replace("INSTRUCTIONS", repr(instructions)).encode())
    try:
        _ask(process, script)
        problem = _answer_of(process, answer, tell)
    finally:
        for path in (script, answer):
            with suppress(OSError):
                path.unlink()
    if problem:
        raise ControlError(f"process {process.pid}: {problem}")


def _check(process: Process) -> None:
    pid, version = process.pid, process.version
    prepared = (
        "start the job with `deepscope run --on-demand`, or have it call deepscope.on_demand(); "
        "one that was, and could have no socket, is named by the folder of its traces"
    )
    if version < FIRST_VERSION:
        known = f"runs Python {version[0]}.{version[1]}, which" if version != (0, 0) else "runs a Python that"
        raise ControlError(f"process {pid} {known} cannot be entered unprepared (3.14 and later can); {prepared}")
    if process.is_elsewhere:
        raise ControlError(f"process {pid} runs in a container: run `deepscope attach` in there")
    if process.environment.get("PYTHON_DISABLE_REMOTE_DEBUG"):
        raise ControlError(f"process {pid} was started with PYTHON_DISABLE_REMOTE_DEBUG, which forbids it; {prepared}")
    if process.executable.endswith(" (deleted)"):
        raise ControlError(f"process {pid} runs a Python that was removed or replaced meanwhile; {prepared}")


def _ask(process: Process, script: Path) -> None:
    """By the very interpreter of the process: only the same version knows its memory."""
    try:
        done = subprocess.run(  # noqa: S603
            [process.executable, "-I", "-S", "-c", _ASK, str(process.pid), str(script)],
            env=process.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ControlError(f"{process.executable}: cannot be run to enter process {process.pid}: {error}") from None
    if done.returncode == 0:
        return
    lines = done.stderr.strip().splitlines()
    said = lines[-1] if lines else f"exit code {done.returncode}"
    raise ControlError(f"process {process.pid} cannot be entered: {said}; {_remedy(said)}")


def _remedy(said: str) -> str:
    prepared = "or start the job with `deepscope run --on-demand`"
    if "not enabled" in said or "disabled" in said:
        return (
            "remote debugging is off in that Python (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug, or how it "
            f"was built): start it without, {prepared}"
        )
    if "PermissionError" in said or "Operation not permitted" in said or "EPERM" in said:
        return (
            "the system lets no process of yours look into another one: as root "
            "`sysctl kernel.yama.ptrace_scope=0`, in a container `--cap-add=SYS_PTRACE`, "
            f"on macOS run it with sudo, {prepared}"
        )
    return prepared.removeprefix("or ")


def _answer_of(process: Process, answer: Path, tell: Callable[[str], None]) -> str:
    """What the script says, once the main thread of the process has come to it."""
    began = time.monotonic()
    is_told = False
    while (words := read_private(answer)) is None:
        waited = time.monotonic() - began
        if not Path(f"/proc/{process.pid}").exists() and Path("/proc/self").exists():
            raise ControlError(f"process {process.pid} has ended")
        if waited > _SPEAK_AFTER_SECONDS and not is_told:
            is_told = True
            tell(f"process {process.pid} has not responded yet: it imports deepscope, or waits outside Python")
        if waited > _PATIENCE_SECONDS:
            raise ControlError(
                f"process {process.pid} has not responded within {_PATIENCE_SECONDS:.0f} s: it hangs, or waits"
            )
        time.sleep(0.05)
    return str(json.loads(words).get("problem", ""))


# In the process that is joined, on a thread of our own beside the training loop.


_NEEDED = (
    "deepscope.capture.recorder",
    "deepscope.capture.process_hooks.optimizer_steps",
    "deepscope.store",  # reads traces' heads, for the folder's upkeep
    "deepscope.trace.read",
)
"""Imported at once: the package may be lent for the moment, and what no step waits for is done before."""
_HOOKS_PATIENCE_S = 20.0
_UNDISTURBED_S = 100.0


def join(folder: str) -> None:
    """Makes this process one that can be recorded on demand. Raises `ControlError`, and torch's own errors."""
    for module in _NEEDED:
        import_module(module)
    from deepscope.capture.on_demand.start import OnDemand, current

    if current() is None:
        made = OnDemand(Path(folder))
        made.idle_recorder.is_joined = True
        made.open(listen=lambda: _between_hooks(made))
        if not made.is_open:
            problem = made.problem
            made.close()
            raise ControlError(problem)


def _between_hooks(made: OnDemand) -> None:
    """Listens to optimizers at a moment when none of them is about to call its hooks.

    torch walks through its dict of hooks, and raises into the step if that grows meanwhile. So no other thread runs
    from the look at the stacks to the change.
    """
    until = time.monotonic() + _HOOKS_PATIENCE_S
    before = sys.getswitchinterval()
    while True:
        sys.setswitchinterval(_UNDISTURBED_S)
        try:
            if not _in_hooks() or time.monotonic() > until:
                made.listen()
                return
        finally:
            sys.setswitchinterval(before)
        time.sleep(0.001)


def _in_hooks() -> bool:
    """Whether a thread is in an optimizer's step, and there are hooks that it may be walking through."""
    optimizer = sys.modules["torch.optim.optimizer"]
    file = optimizer.__file__
    for frame in sys._current_frames().values():
        one: FrameType | None = frame
        while one is not None:
            if one.f_code.co_filename == file and one.f_code.co_name == "wrapper":
                return True
            one = one.f_back
    return False
