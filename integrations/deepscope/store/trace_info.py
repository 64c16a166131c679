"""Where a profile comes from: device, rank, versions and the recorder's own account, as the trace's header tells."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Literal

from deepscope.store.profile import TraceInfo
from deepscope.trace.model import Trace

__all__ = ["trace_info"]

LineSource = Literal["scopes", "call_stack", "frames", "none"]


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
        warnings=_warnings(own, lines),
        recording=dict(lines),
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


def _warnings(own: dict[str, Any], lines: dict[str, Any]) -> list[str]:
    found = lines.get("warnings")
    warnings = [str(one) for one in found] if isinstance(found, list) else []
    if own.get("complete") is False:
        warnings.append("the recording ended early (an exception, Ctrl-C or running out of memory)")
    return warnings


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: object) -> int:
    return int(value) if isinstance(value, int | float) or (isinstance(value, str) and value.isdigit()) else 0
