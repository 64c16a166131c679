"""What a control server and its clients agree on: the folders and entries where they meet, and their messages.

A message is one request or one answer, a JSON object of bounded size. The job does not trust what it reads: names are
of known letters, numbers have bounds, and no field names a path.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

import msgspec

from deepscope.errors import ControlError

if TYPE_CHECKING:
    from deepscope.capture.recorder import Recorder
    from deepscope.capture.schedule import Plan

VERSION = 1
LIMIT_BYTES = 1 << 16
"""Of one message."""

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

    @property
    def files_name(self) -> str:
        """What the names of its control files begin with."""
        return f"{self.host}-{self.pid}"


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


State: TypeAlias = Literal["idle", "asked", "recording", "saving", "saved", "failed"]
"""What becomes of the newest request; `idle` before the first one, and again after one was dropped."""

Kind: TypeAlias = Literal["look", "start", "end", "commit", "now", "stop", "drop"]
"""`look`: only tell where the job stands. `start`, `end`: propose the step at which a window begins, or ends; `commit`:
the proposal holds. `now`: record from now on, with or without steps. `stop`: end the window and save it; `drop`: end
it and save nothing."""

_Step = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Value: TypeAlias = bool | int | float | str | list[str] | None


CHOSEN_ON_REQUEST = frozenset(
    {
        "topics", "lines", "modules", "libraries", "compiled_lines", "record_shapes", "profile_memory", "with_stack",
        "with_flops", "with_modules", "sync_events", "align_time", "max_slowdown", "max_entries", "source", "compress",
    }
)  # fmt: skip
"""What a request may choose: what is recorded, never where it is written or what is run."""


class ControlRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `deepscope attach` asks of one process."""

    kind: Kind
    id: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{0,32}$")] = ""
    """Of the window, the same on all ranks; it becomes part of the run's id."""
    version: int = VERSION
    step: _Step = 0
    """The first step that is recorded (`start`), or the first that is not (`end`)."""
    first_number: _Step | None = None
    """The number of the first recorded step in the trace; None for `step` itself."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """How many steps are recorded; None for a window that `end` or `stop` ends."""
    warmup: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1
    options: Annotated[dict[str, _Value], msgspec.Meta(max_length=40)] = {}
    """What is recorded, in place of what the job itself was started with."""
    stack: bool = False
    """Tell where the training thread stands."""
    number: _Step = 0
    """Stands in the answer, too, where the two are files."""

    @property
    def opens_window(self) -> bool:
        """Whether it asks for a window of its own."""
        return self.kind in {"start", "now"}


class ControlAnswer(msgspec.Struct, omit_defaults=True):
    """Where one process stands."""

    version: int = VERSION
    accepted: bool = True
    is_late: bool = False
    """Whether it was refused because the job has come too far; a later step may be accepted."""
    problem: str = ""
    """Why the request was not accepted, or why a window failed."""
    pid: int = 0
    rank: int = 0
    world_size: int = 1
    job: str = ""
    """The same for all ranks of a job."""
    folder: str = ""
    """Where the traces go."""
    state: State = "idle"
    id: str = ""
    """Of the newest request."""
    step: int = 0
    """How many steps were made: the number of the one that runs."""
    ends_ns: list[int] = []
    """When the newest steps ended, on the clock that all processes of a machine share."""
    now_ns: int = 0
    step_ns: int = 0
    """The median length of the newest steps; 0 before the second one."""
    recorded: int = 0
    """Steps of the open window so far."""
    is_joined: bool = False
    """Whether counting began while the job ran: ranks then count the same steps by different numbers."""
    counted_by: str = ""
    """What counts as a step: "optimizer", "program" or "Lightning"."""
    traces: list[str] = []
    notes: list[str] = []
    """What the recorder warned of in this window."""
    stack: list[str] = []
    number: int = 0


def as_json(record: msgspec.Struct) -> bytes:
    """JSON, with `?` for each byte of a path that is no UTF-8."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode("utf-8", "replace")


def encode(message: ControlRequest | ControlAnswer) -> bytes:
    """The bytes of a message; raises `ControlError` where they would be too many."""
    words = as_json(message)
    if len(words) > LIMIT_BYTES:
        raise ControlError(f"a message of {len(words):,} bytes; {LIMIT_BYTES:,} are the limit")
    return words


def decode_request(words: bytes) -> ControlRequest:
    """Raises `ControlError` for anything that is no request of this version."""
    return _decode(words, ControlRequest)


def decode_answer(words: bytes) -> ControlAnswer:
    """Raises `ControlError` for anything that is no answer of this version."""
    return _decode(words, ControlAnswer)


_Message = TypeVar("_Message", ControlRequest, ControlAnswer)


def _decode(words: bytes, kind: type[_Message]) -> _Message:
    if len(words) > LIMIT_BYTES:
        raise ControlError(f"a message of {len(words):,} bytes; {LIMIT_BYTES:,} are the limit")
    try:
        message = msgspec.json.decode(words, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ControlError(f"no message of DeepScope's: {error}") from None
    if message.version != VERSION:
        raise ControlError(
            f"a message of version {message.version}, where {VERSION} is spoken; "
            "use the same version of DeepScope on both sides"
        )
    return message


@dataclass
class RequestedWindow:
    """A window that was asked for, and what has become of it."""

    request: ControlRequest
    """Its first one, `start` or `now`."""
    first_number: int
    """The number of the first recorded step in the trace."""
    end: int | None = None
    """The first step that is not recorded, once that holds."""
    proposed_end: int | None = None
    is_held: bool = False
    """Whether its first step holds."""
    is_dropped: bool = False
    recorder: Recorder | None = None
    thread: int = 0
    state: State = "asked"
    problem: str = ""
    recorded: int = 0
    traces: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_ending: bool = False

    @property
    def is_at_once(self) -> bool:
        """Whether it begins and ends at any moment, between two steps or not."""
        return self.request.kind == "now"

    @property
    def begin(self) -> int:
        """The step before which it opens, for its warm-up."""
        return self.request.step - self.request.warmup

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is recorded any more."""
        return self.state in {"saving", "saved", "failed"}

    def plan(self) -> Plan | None:
        """The steps of its recorder; None for all of them. `end` may come to hold while it is followed."""
        if self.is_at_once:
            return None
        from deepscope.capture.schedule import Plan, Schedule, StepAction

        request = self.request

        def action(step: int) -> StepAction:
            if step < request.warmup:
                return StepAction.WARM_UP
            number = self.begin + step
            return StepAction.PASS if self.end is not None and number >= self.end else StepAction.RECORD

        numbers = None
        if request.steps is not None:
            numbers = {"skip_first": 0, "wait": 0, "warmup": request.warmup, "active": request.steps, "repeat": 1}
        return Plan(Schedule(action, is_sure=True, numbers=numbers))
