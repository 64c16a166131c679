"""What a recorder knows of its windows, as the header of their traces tells it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from deepscope.capture import process_facts as process
from deepscope.capture.audit.step_audit import Audited
from deepscope.capture.compiled.provenance import code_of_window
from deepscope.capture.lines import LineRecord, UserCode
from deepscope.capture.naming import worker_name
from deepscope.capture.options import RecordingOptions, first_rank, is_chosen, warn_if_nobody
from deepscope.capture.process_hooks.live_objects import settings
from deepscope.capture.process_hooks.open_recorders import known_or
from deepscope.capture.schedule import Schedule
from deepscope.capture.source_files import describe_files
from deepscope.capture.window import Window
from deepscope.capture.workers import WorkerTiming
from deepscope.errors import OptionError
from deepscope.trace.format.audit import AuditedPlace
from deepscope.trace.format.header import (
    FORMAT,
    Device,
    File,
    Header,
    ScopeRow,
    UnrecordedStepTimes,
    Worker,
    WorkerLine,
)
from deepscope.trace.format.process_tables import CompiledCode
from deepscope.trace.format.span_names import PHASE_ANNOTATIONS

_windows: dict[tuple[str, str], int] = {}
"""Windows written so far in this process, by run and stage."""


class RecordingSession:
    """What all windows of one recorder have in common."""

    def __init__(
        self,
        options: RecordingOptions,
        *,
        name: str | None = None,
        stage: str = "",
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        phases: Mapping[str, str] = PHASE_ANNOTATIONS,
        run_id: str | None = None,
        trainer: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = options
        self.metadata: dict[str, Any] = {}
        self.pid = os.getpid()
        self.user_code = UserCode.find(options.root, options.include, options.exclude)
        self._name = name
        self._given_rank, self._given_local_rank, self._world_size = rank, local_rank, world_size
        self._choice = options.rank_choice
        self._stage = stage
        self._phases = phases
        self._given_run_id = run_id
        self._trainer = trainer
        self._run_id = ""
        self._agreed_run_id: str | None = None
        self._find_rank()

    def _find_rank(self) -> None:
        """A process group may come up after the recording was made, and it alone may know the rank (`mp.spawn`)."""
        self.rank = process.find_rank() if self._given_rank is None else self._given_rank
        program = process.program_name(self.user_code.root) if self._name else ""
        self.worker = worker_name(self._name, self._stage, self.rank, self.world_size, program)
        local = self._given_local_rank
        self.local_rank = process.find_local_rank(self.rank) if local is None else local
        self.is_chosen = is_chosen(self._choice, self.rank, self.local_rank)
        """Whether this rank records."""
        self.is_first = self.rank == first_rank(self._choice)
        """Whether this is the first of the ranks that record: one of them tells where the traces lie."""

    @property
    def world_size(self) -> int:
        """How many ranks there are: a process group may come up after the recording was made."""
        return process.find_world_size() if self._world_size is None else self._world_size

    @property
    def is_forked(self) -> bool:
        """Whether this process is a child of the one that records; there is nothing for it to end or save."""
        return os.getpid() != self.pid

    def begin(self) -> None:
        """The recorder starts, maybe once more: a run of its own unless it was given one."""
        self.pid = os.getpid()
        self._find_rank()
        warn_if_nobody(self._choice, self.rank, self.world_size)
        self._run_id = self._given_run_id or process.new_run_id()
        self._agreed_run_id = None

    @property
    def run_id(self) -> str:
        """That of all ranks, as far as it is known."""
        return self._agreed_run_id or self._run_id

    def agree(self) -> None:
        """Take the run id that all ranks have, as soon as there is a process group; it may be gone at the end."""
        if self._agreed_run_id is None:
            self._agreed_run_id = process.agreed_run_id(self._run_id)

    def agreed_schedule(self, schedule: Schedule, total_steps: int | None) -> Schedule:
        """The schedule that the first rank to ask has, so that all record the same steps, whatever their lengths."""
        if schedule.numbers is None:
            return schedule
        held = process.agreed("schedule", self._run_id, json.dumps(dict(schedule.numbers)))
        return schedule if held is None else Schedule.from_numbers(json.loads(held), total_steps)

    def end(self) -> None:
        if not self._given_run_id and not self.is_forked:
            process.end_run()

    def _next_window(self) -> int:
        """Number of the window among those of its stage in this run, of whichever recorder."""
        key = (self._run_id, self._stage)
        number = _windows.get(key, 0)
        _windows[key] = number + 1
        return number

    def run_header(self, notes: list[str] | None = None) -> Header:
        """What a file says that is of the whole run and of no window; `notes` takes what could not be told."""
        notes = [] if notes is None else notes
        return Header(
            format=FORMAT,
            version=_version(),
            run_id=self.run_id,
            stage=self._stage,
            rank=self.rank,
            world_size=self.world_size,
            program=known_or("", "the program's name", lambda: process.program_name(self.user_code.root), notes),
            arguments=process.arguments_digest(),
            recorded_at=datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds"),
            hostname=socket.gethostname(),
            pid=self.pid,
            device=known_or(Device(), "the device", process.describe_device, notes),
            versions=known_or({}, "versions", process.versions, notes),
            configuration=self.options.configuration,
            project_root=str(self.user_code.root),
        )

    def header(
        self,
        window: Window,
        *,
        schedule: Mapping[str, int] | None,
        complete: bool,
        recorded_steps: UnrecordedStepTimes | None,
        number: int | None = None,
    ) -> Header:
        """The header of a window that has ended; `number`: that of another one, which is written if this one is not."""
        notes: list[str] = []
        known_or(None, "the number that its ranks share", self.agree, notes)
        record, source = window.line_record, self.options.source
        described = known_or(None, "the text of your files", lambda: _described(record, source), notes)
        files, scopes = _described(record, "none") if described is None else described
        compiled = known_or(
            CompiledCode(),
            "what torch.compile made",
            lambda: code_of_window(window.compiled, files, self.user_code, source),
            notes,
        )
        set_now = known_or(
            None,
            "what is set",
            lambda: settings(autocast=record.autocast, trainer=self._trainer, objects=window.objects),
            notes,
        )
        return msgspec.structs.replace(
            self.run_header(notes),
            window=self._next_window() if number is None else number,
            complete=complete,
            all_threads=window.all_threads,
            settings=set_now,
            schedule=None if schedule is None else dict(schedule),
            recorder_ns=dict(window.cost_ns),
            recorded_steps=recorded_steps,
            machine=window.machine,
            phases=dict(self._phases),
            metadata=dict(self.metadata),
            lines=record.account,
            memory=window.memory,
            files=files,
            scopes=scopes,
            parameters=record.parameters,
            compiled=compiled,
            notes=notes,
        )


def _version() -> str:
    """Ours; "" where a running program was lent the package for the moment (`deepscope attach`)."""
    try:
        return version("deepscope")
    except PackageNotFoundError:
        return ""


def _described(record: LineRecord, source: str) -> tuple[list[File | None], list[ScopeRow | None]]:
    """Files and scopes as a header has them."""
    paths = list(dict.fromkeys([*record.files, *(row.file for row in record.scopes if row.file)]))
    number = {path: index for index, path in enumerate(paths)}
    return (
        [*describe_files(paths, source, users=set(record.files), libraries=set(record.library_files))],
        [ScopeRow(row.kind, number.get(row.file, -1), *row[2:]) for row in record.scopes],
    )


def bare(header: Header, reason: str) -> Header:
    """The header without all that is of no use for telling which line a scope stands for; `reason`: why."""
    return msgspec.structs.replace(
        header,
        settings=None,
        clock=None,
        metadata={},
        memory=None,
        counters=None,
        parameters=[],
        workers=[],
        audit=None,
        compiled=CompiledCode(),
        notes=[*header.notes, f"this trace is without settings, memory, workers, audit and compiled code: {reason}"],
    )


def add_workers(header: Header, timings: list[WorkerTiming]) -> None:
    """Put data-loader workers into a header, and into its files those that only they ran."""
    number = _with_files(header, (line.file for timing in timings for line in timing.lines))
    header.workers = [
        Worker(
            pid=timing.pid,
            worker_id=timing.worker_id,
            num_workers=timing.num_workers,
            lines=[WorkerLine(number[line.file], *line[1:]) for line in timing.lines],
            wall_ns=timing.wall_ns,
        )
        for timing in timings
    ]


def add_audit(header: Header, audited: Audited | None) -> None:
    """Put what was found in steps behind the window into a header, and into its files those that it alone names."""
    if audited is None:
        return
    number = _with_files(header, (place.file for place in audited.places))
    places = [AuditedPlace(number[place.file], place.line, place.function) for place in audited.places]
    header.audit = msgspec.structs.replace(audited.account, places=places)


def _with_files(header: Header, paths: Iterable[str]) -> dict[str, int]:
    """Put those of the paths into a header's files that are not there; the number of each file."""
    number = {file.path: index for index, file in enumerate(header.files) if file is not None}
    new = list(dict.fromkeys(path for path in paths if path not in number))
    header.files += describe_files(new, header.source, users=set(new))
    return number | {path: index for index, path in enumerate(new, len(header.files) - len(new))}


def checked_metadata(key: str, value: Any) -> Any:
    """`value` as JSON has it; raises `OptionError` where JSON cannot say it."""
    if not isinstance(key, str) or not key:
        raise OptionError("key", key, "metadata must stand under a word")
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise OptionError("value", value, f"{key!r} must be JSON (numbers, words, lists, dicts): {error}") from None
