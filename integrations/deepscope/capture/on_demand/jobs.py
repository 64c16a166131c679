"""Which jobs of this user's can be asked, by a process's number, a program's name or a folder; and who asks them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from deepscope.capture.naming import is_alive
from deepscope.capture.on_demand.control_server import BUSY_SECONDS, peer, receive, send
from deepscope.capture.on_demand.injection import ancestors
from deepscope.capture.on_demand.protocol import (
    CONTROL_FOLDER,
    LIMIT_BYTES,
    ControlAnswer,
    ControlEntry,
    ControlRequest,
    control_folders,
    decode_answer,
    encode,
    entries,
    is_own,
    read_private,
    started_at,
    this_host,
    write_private,
)
from deepscope.errors import ControlError

_SOCKET_PATIENCE_SECONDS = 5.0
_FILES_PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 2.0
"""After so long a request is written once more, if it is gone and has no answer."""


class GoneError(ControlError):
    """The process is not there any more, or its control server is not."""


class SilentError(ControlError):
    """The process does not answer: it is stopped, or holds its interpreter's lock."""


class Client(Protocol):
    """Somebody at a process's control."""

    entry: ControlEntry

    def ask(self, request: ControlRequest) -> ControlAnswer:
        """Raises `GoneError`, `SilentError`, and `ControlError` for an answer that is none."""
        ...

    def leave(self) -> None: ...


class SocketClient:
    """A connection over a socket; leaving it ends what was asked for."""

    def __init__(self, entry: ControlEntry) -> None:
        self.entry = entry
        self._unread = 0
        """Requests whose answers have not come so far; they come before the next one's."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._enter(Path(entry.control))
        except BaseException:
            self._socket.close()
            raise

    def _enter(self, path: Path) -> None:
        self._socket.settimeout(_SOCKET_PATIENCE_SECONDS)
        try:
            if not is_own(path.parent.lstat()) or not is_own(path.lstat()):
                raise ControlError(f"{path}: is not yours")
            self._connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            raise self._gone() from None
        except TimeoutError:
            raise self._silent() from None
        except OSError as error:
            raise ControlError(f"{path}: {error.strerror or error}") from None
        if peer(self._socket) not in {os.getuid(), -1}:
            raise ControlError(f"{path}: somebody else answers there")

    def _connect(self, path: Path) -> None:
        until = time.monotonic() + _SOCKET_PATIENCE_SECONDS
        while True:
            try:
                self._socket.connect(str(path))
            except BlockingIOError:  # others stand in line there
                if time.monotonic() > until:
                    raise TimeoutError from None
                time.sleep(0.05)
            else:
                return

    def ask(self, request: ControlRequest) -> ControlAnswer:
        try:
            while self._unread:
                self._read_answer()
            send(self._socket, encode(request))
            self._unread += 1
            words = self._read_answer()
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            raise self._gone() from None
        if words is None:
            raise self._gone()
        return decode_answer(words)

    def _read_answer(self) -> bytes | None:
        words = receive(self._socket)
        self._unread -= 1
        return words

    def _gone(self) -> GoneError:
        return GoneError(f"process {self.entry.pid} has ended")

    def _silent(self) -> SilentError:
        return SilentError(f"process {self.entry.pid} does not answer: it is stopped, or busy outside Python")

    def leave(self) -> None:
        with suppress(OSError):
            self._socket.close()


class FileClient:
    """A client that asks through files; leaving it ends what was asked for."""

    def __init__(self, entry: ControlEntry, path: Path) -> None:
        self.entry = entry
        self._path = path
        self._ask = path.with_suffix(".ask")
        self._answer = path.with_suffix(".answer")
        self._asked = ""
        self._state = "idle"

    def ask(self, request: ControlRequest) -> ControlAnswer:
        number = time.time_ns()
        words_asked = encode(msgspec.structs.replace(request, number=number))
        self._write(words_asked)
        until = time.monotonic() + _FILES_PATIENCE_SECONDS
        again = time.monotonic() + _AGAIN_SECONDS
        while True:
            if time.monotonic() > again and not self._ask.exists():  # or another client's took its place
                self._write(words_asked)
                again = time.monotonic() + _AGAIN_SECONDS
            is_there = self._path.exists()
            words = read_private(self._answer, LIMIT_BYTES)
            if words is not None and (answer := decode_answer(words)).number == number:
                break
            if not is_there:
                raise GoneError(f"process {self.entry.pid} on {self.entry.host} has ended")
            if time.monotonic() > until:
                raise SilentError(
                    f"process {self.entry.pid} on {self.entry.host} has come to no step for "
                    f"{_FILES_PATIENCE_SECONDS:.0f} s; if it has ended, remove {self._path}"
                )
            time.sleep(BUSY_SECONDS)
        if answer.accepted and request.opens_window:
            self._asked = request.id
        self._state = answer.state
        answer.traces = [self._local_path(path) for path in answer.traces]
        return answer

    def _write(self, words: bytes) -> None:
        try:
            write_private(self._ask, words)
        except OSError as error:
            raise ControlError(f"{self._ask}: {error.strerror or error}") from None

    def _local_path(self, trace: str) -> str:
        """A trace by the name that its folder has on this side."""
        path = self._path.parent.parent / Path(trace).name
        return str(path) if path.exists() else trace

    def leave(self) -> None:
        """What is still open is to end; its files go."""
        with suppress(OSError, ControlError):
            self._answer.unlink(missing_ok=True)
            self._ask.unlink(missing_ok=True)
            if self._asked and self._state not in {"saved", "failed"} and self._path.exists():
                write_private(self._ask, encode(ControlRequest("stop", id=self._asked)))


@dataclass
class Member:
    """One process of a job."""

    found: FoundControl
    answer: ControlAnswer

    @property
    def entry(self) -> ControlEntry:
        """How the process describes itself."""
        return self.found.entry


@dataclass
class TrainingJob:
    """The processes that train together, on this machine."""

    members: list[Member] = field(default_factory=list)

    @property
    def first(self) -> Member:
        """The lowest rank."""
        return self.members[0]

    @property
    def program(self) -> str:
        """The name of what it runs."""
        return Path(self.first.entry.program).name

    @property
    def pids(self) -> list[int]:
        """By rank."""
        return [one.entry.pid for one in self.members]


@dataclass(frozen=True)
class FoundControl:
    """An entry, and the file that it stands in."""

    path: Path
    entry: ControlEntry

    def connect(self) -> Client:
        """Goes to the control. Raises `ControlError` where it cannot be entered."""
        return FileClient(self.entry, self.path) if self.entry.control == "files" else SocketClient(self.entry)


def live_entries(extra: Iterable[Path] = (), *, traces: Path | None = None) -> list[FoundControl]:
    """The control servers of this machine whose process runs; what dead ones left behind is removed.

    `extra`: other folders of control servers. `traces`: a folder of traces, which may have control files beside them,
    of other hosts and containers, too.
    """
    found: dict[tuple[str, int], FoundControl] = {}
    place = this_host()
    listed = [one for folder in dict.fromkeys([*extra, *control_folders()]) for one in entries(folder)]
    beside = [] if traces is None else entries(traces.absolute() / CONTROL_FOLDER)
    files = [(path, one) for path, one in beside if one.control == "files" and path.name == f"{one.files_name}.json"]
    for path, entry in [*listed, *files]:
        if entry.here == place and not _runs(entry):
            for left in (path, *(path.with_suffix(end) for end in (".sock", ".ask", ".answer"))):
                with suppress(OSError):
                    left.unlink()
        elif entry.here == place or entry.control == "files":
            found.setdefault((entry.here, entry.pid), FoundControl(path, entry))
    return list(found.values())


def _runs(entry: ControlEntry) -> bool:
    began = started_at(entry.pid)
    if began or entry.started:
        return began == entry.started
    return is_alive(entry.pid)


def find_jobs(found: Iterable[FoundControl]) -> tuple[list[TrainingJob], list[str]]:
    """The jobs that answer, by the number of their first process, and what is to be said of the others.

    Control files are not asked: answers take a step.
    """
    jobs: dict[str, TrainingJob] = {}
    problems: list[str] = []
    for one in found:
        entry = one.entry
        try:
            answer = _described(entry) if entry.control == "files" else _asked(one)
        except GoneError:
            continue
        except ControlError as error:
            problems.append(f"rank {entry.rank}: {error}" if entry.world_size > 1 else str(error))
            continue
        jobs.setdefault(answer.job or f"pid {entry.pid}", TrainingJob()).members.append(Member(one, answer))
    for job in jobs.values():
        job.members.sort(key=lambda one: (one.answer.rank, one.entry.pid))
    return sorted(jobs.values(), key=lambda job: job.first.entry.pid), problems


def _described(entry: ControlEntry) -> ControlAnswer:
    job = entry.job if entry.world_size > 1 else f"{entry.here} {entry.pid}"
    return ControlAnswer(pid=entry.pid, rank=entry.rank, world_size=entry.world_size, folder=entry.folder, job=job)


def _asked(found: FoundControl) -> ControlAnswer:
    client = found.connect()
    try:
        return client.ask(ControlRequest("look"))
    finally:
        client.leave()


def jobs_of(target: str, jobs: Sequence[TrainingJob]) -> list[TrainingJob]:
    """The jobs that a user may mean by the number of a process, the name of a program, or a folder."""
    if target.isdecimal():
        return [job for job in jobs if any(int(target) in ancestors(pid) for pid in job.pids)]
    path = os.path.realpath(target)
    by_folder = [job for job in jobs if path in _folders(job)]
    if by_folder:
        return by_folder
    return [
        job
        for job in jobs
        if target in {job.program, Path(job.program).stem} or os.path.realpath(job.first.entry.program) == path
    ]


def _folders(job: TrainingJob) -> list[str]:
    """Where its traces go, and where its control files were found: a container has another name for the same folder."""
    first = job.first
    beside = [str(first.found.path.parent.parent)] if first.entry.control == "files" else []
    return [os.path.realpath(one) for one in (first.answer.folder, *beside)]


def clients_of(job: TrainingJob, ranks: Sequence[int] = ()) -> list[Client]:
    """At the control servers of a job's processes, or of these ranks of it. Raises `ControlError`."""
    members = [one for one in job.members if not ranks or one.answer.rank in ranks]
    if not members:
        known = ", ".join(str(one.answer.rank) for one in job.members)
        raise ControlError(f"the job has no such rank on this machine; it has: {known}")
    clients: list[Client] = []
    try:
        for one in members:
            clients += [one.found.connect()]
    except BaseException:
        for client in clients:
            client.leave()
        raise
    return clients
