"""Where a profile comes from: device, rank, versions and the recorder's own account, as the trace's header tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from deepscope.records import LineSource, TraceInfo
from deepscope.trace.model import Trace

__all__ = ["trace_info"]

_LARGEST = 2**53

_NAMED = 3
_LOWERED = {
    "loop": "too dear to record by the line, so that all of the loop stands at its first line",
    "function": "too dear to record by the line, so that all of the function stands at its first line",
    "caller": "too many calls to record, so that they stand at the lines that call",
}
"""By the way in which detail was lowered."""


def trace_info(trace: Trace, line_source: LineSource, *, has_device: bool) -> TraceInfo:
    """The facts about a trace that do not come from its events; what is absent stays at its default."""
    own = trace.deepscope or {}
    distributed = _mapping(trace.metadata.get("distributedInfo"))
    versions = _mapping(own.get("versions"))
    git = _mapping(own.get("git"))
    lines = _mapping(own.get("lines"))
    device, count = _device(trace, own, has_device=has_device)
    rank = own.get("rank", distributed.get("rank"))
    return TraceInfo(
        path=trace.path,
        paths=[trace.path],
        ranks=[_integer(rank)] if rank is not None else [],
        world_size=max(_integer(own.get("world_size", distributed.get("world_size", 1))), 1),
        device=device,
        device_count=count,
        hostname=_text(own.get("hostname") or trace.metadata.get("host_name")),
        recorded_at=_text(own.get("recorded_at")) or _recorded_at(trace),
        program=_text(own.get("program")),
        stage=_text(own.get("stage")),
        window=_integer(own.get("window")),
        project_root=_text(own.get("project_root")),
        git_commit=_text(git.get("commit")),
        git_dirty=git.get("dirty") is True,
        python=_text(versions.get("python")),
        torch=_text(versions.get("torch")),
        lightning=_text(versions.get("lightning")),
        deepscope=_text(own.get("version")),
        line_source=line_source,
        truncated=trace.truncated,
        warnings=[*_warnings(own, lines, trace.left_out), *_lowered_words(own, lines)],
        recording=dict(lines) | _window_costs(own),
    )


def _device(trace: Trace, own: dict[str, Any], *, has_device: bool) -> tuple[str, int]:
    """Name and number of devices; "CPU" for a trace without device work."""
    recorded = _mapping(own.get("device"))
    if recorded.get("name"):
        return _text(recorded["name"]), _integer(recorded.get("count"))
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


def _window_costs(own: dict[str, Any]) -> dict[str, Any]:
    """What opening, ending and exporting the window took, and how long steps were, as the recorder measured it."""
    found = {"recorder_ns": _mapping(own.get("recorder_ns")), "pace": _mapping(own.get("pace"))}
    return {
        name: {str(key): value for key, value in table.items() if type(value) is int and value >= 0}
        for name, table in found.items()
        if table
    }


def _warnings(own: dict[str, Any], lines: dict[str, Any], left_out: int) -> list[str]:
    found = lines.get("warnings")
    warnings = [str(one) for one in found] if isinstance(found, list) else []
    unrecorded = _integer(lines.get("unrecorded_threads"))
    if unrecorded > 0:
        threads = "1 thread" if unrecorded == 1 else f"{unrecorded:,} threads"
        warnings.append(
            f"{threads} ran your code unrecorded; all_threads=True records them (before torch 2.14 at a risk)"
        )
    if own.get("complete") is False:
        warnings.append("the recording ended early (an exception, Ctrl-C or running out of memory)")
    if left_out:
        warnings.append(f"{left_out:,} events were left out: their times or sizes cannot be true")
    return warnings


def _lowered_words(own: dict[str, Any], lines: dict[str, Any]) -> Iterator[str]:
    """What the recorder recorded less of, since it would have slowed the run down too much; a sentence for each way."""
    scopes, files = own.get("scopes"), own.get("files")
    if not isinstance(scopes, list) or not isinstance(files, list):
        return
    lowered = lines.get("lowered")
    places: dict[str, list[str]] = {}
    for row in lowered if isinstance(lowered, list) else []:
        try:
            number, way = row
            _, file, line, function = scopes[number][:4]
            name = str(files[file]["path"]).replace("\\", "/").rpartition("/")[2]
            places.setdefault(way, []).append(f"{name}:{int(line)} {function}")
        except (TypeError, ValueError, IndexError, KeyError):
            continue
    for way, words in _LOWERED.items():
        if found := places.get(way):
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            yield f"{words}: {', '.join(found[:_NAMED])}{more}"
    if lines.get("modules_only") is True:
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
