"""What a recorder knows of its windows, as the header of their traces tells it."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

import msgspec

from deepscope.capture import process_identity as process
from deepscope.capture.audit.step_audit import Audited
from deepscope.capture.compiled.provenance import code_of_window
from deepscope.capture.lines import LineRecord
from deepscope.capture.process_hooks.live_objects import settings
from deepscope.capture.process_hooks.open_recorders import known_or
from deepscope.capture.session import RecordingSession
from deepscope.capture.source_files import describe_files
from deepscope.capture.window import Window
from deepscope.capture.workers import WorkerTiming
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
    own_version,
)
from deepscope.trace.format.process_tables import CompiledCode


def run_header(session: RecordingSession, notes: list[str] | None = None) -> Header:
    """What a file says that is of the whole run and of no window; `notes` takes what could not be told."""
    notes = [] if notes is None else notes
    return Header(
        format=FORMAT,
        version=own_version(),
        run_id=session.run_id,
        stage=session.stage,
        rank=session.rank,
        world_size=session.world_size,
        program=known_or("", "the program's name", lambda: process.program_name(session.user_code.root), notes),
        arguments=process.arguments_digest(),
        recorded_at=datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds"),
        hostname=socket.gethostname(),
        pid=session.pid,
        device=known_or(Device(), "the device", process.describe_device, notes),
        versions=known_or({}, "versions", process.versions, notes),
        configuration=session.options.configuration,
        project_root=str(session.user_code.root),
    )


def window_header(
    session: RecordingSession,
    window: Window,
    *,
    schedule: Mapping[str, int] | None,
    complete: bool,
    recorded_steps: UnrecordedStepTimes | None,
    number: int | None = None,
) -> Header:
    """The header of a window that has ended; `number`: that of another one, which is written if this one is not."""
    notes: list[str] = []
    known_or(None, "the number that its ranks share", session.agree, notes)
    record, source = window.line_record, session.options.source
    described = known_or(None, "the text of your files", lambda: _described(record, source), notes)
    files, scopes = _described(record, "none") if described is None else described
    compiled = known_or(
        CompiledCode(),
        "what torch.compile made",
        lambda: code_of_window(window.compiled, files, session.user_code, source),
        notes,
    )
    set_now = known_or(
        None,
        "what is set",
        lambda: settings(autocast=record.autocast, trainer=session.trainer, objects=window.objects),
        notes,
    )
    return msgspec.structs.replace(
        run_header(session, notes),
        window=session.next_window() if number is None else number,
        complete=complete,
        all_threads=window.all_threads,
        settings=set_now,
        schedule=None if schedule is None else dict(schedule),
        recorder_ns=dict(window.cost_ns),
        recorded_steps=recorded_steps,
        machine=window.machine,
        phases=dict(session.phases),
        metadata=dict(session.metadata),
        lines=record.account,
        memory=window.memory,
        files=files,
        scopes=scopes,
        parameters=record.parameters,
        compiled=compiled,
        notes=notes,
    )


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
