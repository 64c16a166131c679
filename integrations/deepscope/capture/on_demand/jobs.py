"""Which jobs of this user's can be asked: found by a process's number, a program's name, or a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deepscope.capture.naming import is_alive
from deepscope.capture.on_demand.control_files import FileClient, file_entries
from deepscope.capture.on_demand.control_server import Client, GoneError, SocketClient
from deepscope.capture.on_demand.injection import ancestors
from deepscope.capture.on_demand.messages import ControlAnswer, ControlRequest
from deepscope.capture.on_demand.places import ControlEntry, control_folders, entries, started_at, this_host
from deepscope.errors import ControlError


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
    beside = [] if traces is None else list(file_entries(traces.absolute()))
    for path, entry in [*listed, *beside]:
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
