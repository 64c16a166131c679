"""Where a profile comes from: device, rank, versions and the recorder's own account, as the trace's header tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import msgspec

from deepscope.analysis.tables.messages import listed_groups
from deepscope.printable import without_secrets
from deepscope.records import LineSource, TraceInfo
from deepscope.records.source_files import base_name
from deepscope.trace.format.header import LOWERED_TO_CALLER, LOWERED_TO_FUNCTION, LOWERED_TO_LOOP, Header
from deepscope.trace.model import Trace

_LARGEST = 2**53

_NAMED = 3
_OF_LIBRARY = "library"
_LOWERED = {
    _OF_LIBRARY: "library functions too expensive to record, so that they stand at the lines that call them",
    LOWERED_TO_LOOP: "too expensive to record by the line, so that all of the loop stands at its first line",
    LOWERED_TO_FUNCTION: "too expensive to record by the line, so that all of the function stands at its first line",
    LOWERED_TO_CALLER: "too many calls to record, so that they stand at the lines that call",
}
"""By the way in which detail was lowered."""


def trace_info(trace: Trace, line_source: LineSource, *, has_device: bool) -> TraceInfo:
    """The facts about a trace that do not come from its events; what is absent stays at its default."""
    header = trace.header
    distributed = _mapping(trace.metadata.get("distributedInfo"))
    device, count = _device(trace, has_device=has_device)
    rank = header.rank if header.rank is not None else distributed.get("rank")
    path = without_secrets(trace.path)
    return TraceInfo(
        path=path,
        paths=[path],
        ranks=[_integer(rank)] if rank is not None else [],
        world_size=max(header.world_size or _integer(distributed.get("world_size", 1)), 1),
        process_groups=len(listed_groups(trace)),
        device=device,
        device_count=count,
        hostname=header.hostname or _text(trace.metadata.get("host_name")),
        recorded_at=header.recorded_at or _recorded_at(trace),
        program=header.program,
        arguments=header.arguments,
        stage=header.stage,
        window=header.window or 0,
        project_root=header.project_root,
        git_commit=header.git.commit if header.git is not None else "",
        git_dirty=header.git is not None and header.git.dirty,
        python=header.versions.get("python", ""),
        torch=header.versions.get("torch", ""),
        lightning=header.versions.get("lightning", ""),
        deepscope=header.version,
        line_source=line_source,
        truncated=trace.truncated,
        warnings=[*_warnings(header, trace.left_out), *_lowered_words(header)],
        recording=_account(header),
    )


def _device(trace: Trace, *, has_device: bool) -> tuple[str, int]:
    """Name and number of devices; "CPU" for a trace without device work."""
    recorded = trace.header.device
    if recorded.name:
        return recorded.name, recorded.count
    listed = trace.metadata.get("deviceProperties")
    devices = [_mapping(one) for one in listed] if isinstance(listed, list) else []
    if not has_device:
        return "CPU", 0
    return next((_text(one["name"]) for one in devices if one.get("name")), ""), len(devices)


def _recorded_at(trace: Trace) -> str:
    """When the first event began, where the file gives times since the epoch."""
    first = int(trace.events.start_ns.min()) if len(trace.events) else 0
    epoch_ns = trace.base_ns + first
    if not 1_400_000_000_000_000_000 < epoch_ns < 4_000_000_000_000_000_000:
        return ""
    return datetime.fromtimestamp(epoch_ns // 1_000_000_000, timezone.utc).isoformat()


def _account(header: Header) -> dict[str, Any]:
    """The recorder's own account, and how it was configured; empty for a trace of others."""
    if not header.format:
        return {}
    account: dict[str, Any] = _as_read(header.lines)
    parts = (
        "recorder_ns",
        "recorded_steps",
        "plain_steps",
        "machine",
        "configuration",
        "settings",
        "schedule",
        "all_threads",
    )
    memory = {} if header.memory is None else {"memory_ns": header.memory.cost_ns}
    if header.counters is not None:
        memory["counters"] = _as_read(header.counters)
    return account | {name: _as_read(getattr(header, name)) for name in parts} | memory


def _as_read(value: object) -> Any:
    """A record as it is read from a kept profile, with lists where it has tuples."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _warnings(header: Header, left_out: int) -> list[str]:
    warnings = [*header.lines.warnings, *header.notes]
    if unrecorded := header.lines.unrecorded_threads:
        threads = "1 thread" if unrecorded == 1 else f"{unrecorded:,} threads"
        with_memory = header.configuration is not None and header.configuration.profile_memory
        warnings.append(
            f"{threads} ran your code unrecorded; "
            + (
                "with profile_memory it must be, since torch drops its memory events when it records all threads"
                if with_memory
                else "all_threads=True records them (before torch 2.14 at a risk)"
            )
        )
    if header.memory is not None:
        warnings += header.memory.warnings
    if not header.complete:
        warnings.append(
            "the recording ended early (an exception, Ctrl-C, too little memory, the end of its thread or process)"
        )
    if left_out:
        warnings.append(f"{left_out:,} events were left out: their times or sizes cannot be true")
    return warnings


def _lowered_words(header: Header) -> Iterator[str]:
    """What was recorded in less detail to keep the run fast: a sentence for each way."""
    if header.lines.libraries_ended:
        yield "library lines were too expensive to record: from some time on they stand at the lines that call them"
    places: dict[str, list[str]] = {}
    for number, way in header.lines.lowered:
        row = header.scopes[number] if number < len(header.scopes) else None
        if row is not None and (path := header.path_of(row.file)):
            name = base_name(path)
            words = _OF_LIBRARY if row.library and way == LOWERED_TO_CALLER else way
            places.setdefault(words, []).append(f"{name}:{row.line} {row.name}")
    for way, words in _LOWERED.items():
        if found := places.get(way):
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            yield f"{words}: {', '.join(found[:_NAMED])}{more}"
    if header.lines.modules_only:
        yield "too many lines ran: from some time on only modules were recorded (max_slowdown, max_entries)"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: object) -> int:
    """A count or a number of something; 0 for what cannot be one."""
    if isinstance(value, str):
        value = int(value) if len(value) < 20 and value.isdecimal() else 0
    return int(value) if isinstance(value, int | float) and 0 <= value < _LARGEST else 0
