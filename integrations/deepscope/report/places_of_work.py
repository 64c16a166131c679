"""The columns of the tables of the overview, threads, streams and collectives."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, rate_text, share_text, time_text
from deepscope.records import Collective, HostThread, OverviewRow, Profile, Stream
from deepscope.report.layout import Column, cut_end
from deepscope.report.style import Styles

_SECTIONS = {
    "step": "step time",
    "span": "first to last work",
    "overlap": "overlapped by compute",
    "idle": "streams' gaps",
}
_BOTH = ("step", "device")
"""What torch-tb-profiler shows, too."""
_WEIGHTS = {"SM efficiency", "occupancy"}
"""Their times are weighted: only the share says something."""


def overview_columns(rows: Sequence[OverviewRow], _: Profile, styles: Styles) -> list[Column]:
    """The overview: sections, and what torch-tb-profiler shows where it differs."""
    differs = any(_theirs(row) != share_text(row.time_ns, row.whole_ns) for row in rows if row.section in _BOTH)
    sections = [printable(row.device) if row.section == "device" else _SECTIONS[row.section] for row in rows]
    return [
        Column(
            "of",
            ["" if i and section == sections[i - 1] else section for i, section in enumerate(sections)],
            right=False,
            min_width=9,
            cut=cut_end,
        ),
        Column("what", [printable(row.name) for row in rows], right=False, min_width=9, cut=cut_end),
        Column(
            "share",
            [share_text(row.time_ns, row.whole_ns) or "0%" for row in rows],
            styles=[
                styles.hot if row.section == "step" and row.time_ns * 5 >= row.whole_ns > 0 else None for row in rows
            ],
        ),
        Column("time", ["" if row.name in _WEIGHTS else time_text(row.time_ns) for row in rows]),
        Column("/step", [time_text(row.time_ns / row.steps) if row.steps > 1 else "" for row in rows], rank=1),
        Column("in torch-tb-profiler", [_theirs(row) if differs else "" for row in rows], rank=2),
        Column(
            "/step there",
            [
                time_text(row.dashboard_ns / row.dashboard_steps) if differs and row.dashboard_steps > 1 else ""
                for row in rows
            ],
            rank=3,
        ),
    ]


def _theirs(row: OverviewRow) -> str:
    return share_text(row.dashboard_ns, row.dashboard_whole_ns) if row.section in _BOTH else ""


def thread_columns(rows: Sequence[HostThread], profile: Profile, _: Styles) -> list[Column]:
    """The threads of the CPU."""
    several = profile.totals.ranks > 1
    return [
        Column("thread", [_role(row) for row in rows], right=False),
        _times("span", [row.span_ns for row in rows]),
        _times("operators", [row.operator_ns for row in rows], rank=1),
        _times("runtime", [row.runtime_ns for row in rows], rank=3),
        _times("python", [row.python_ns for row in rows], rank=2),
        _times("annotated", [row.annotation_ns for row in rows], rank=9),
        _times("nothing", [row.rest_ns for row in rows], rank=6),
        _times("wait", [row.wait_ns for row in rows], rank=4),
        _times("device" if profile.metric == "device" else "self", [row.device_ns for row in rows], rank=5),
        _counts("launches", [row.launches for row in rows], rank=7),
        _counts("calls", [row.runtime_calls for row in rows], rank=10),
        Column("ranks", [str(row.threads) if several else "" for row in rows], rank=8),
        Column("tid", ["" if several else printable(row.thread) for row in rows], rank=8),
        Column("name", [printable(row.name) for row in rows], rank=11, right=False, min_width=12, cut=cut_end),
    ]


def _role(row: HostThread) -> str:
    return row.role if row.role == "training" else f"{row.role} {row.number + 1}"


def stream_columns(rows: Sequence[Stream], _: Profile, __: Styles) -> list[Column]:
    """The streams of the devices."""
    window = [row.busy_ns + row.idle_ns for row in rows]
    return [
        Column("device", [str(row.device) for row in rows]),
        Column("stream", [str(row.stream) for row in rows]),
        Column("busy", [share_text(row.busy_ns, whole) or "0%" for row, whole in zip(rows, window, strict=True)]),
        _times("work", [row.device_ns for row in rows]),
        _times("kernels", [row.kernel_ns for row in rows], rank=1),
        _times("collectives", [row.collective_ns for row in rows], rank=2),
        _times("copies", [row.copy_ns for row in rows], rank=3),
        _times("fills", [row.fill_ns for row in rows], rank=9),
        _times("idle", [row.idle_ns for row in rows], rank=4),
        _times("overlapped", [row.overlapped_ns for row in rows], rank=5),
        _times("host wait", [row.host_wait_ns for row in rows], rank=6),
        _times("kernel wait", [row.kernel_wait_ns for row in rows], rank=7),
        _times("other wait", [row.other_wait_ns for row in rows], rank=8),
        _counts("launches", [row.kernels + row.copies + row.fills + row.collectives for row in rows], rank=10),
    ]


def collective_columns(rows: Sequence[Collective], _: Profile, __: Styles) -> list[Column]:
    """The collectives."""
    return [
        Column(
            "collective", [printable(row.kind or "unknown") for row in rows], right=False, min_width=12, cut=cut_end
        ),
        _times("time", [row.time_ns for row in rows]),
        _counts("calls", [row.calls for row in rows]),
        _times("mean", [row.time_ns / row.calls if row.calls else 0 for row in rows], rank=4),
        Column("message", [bytes_text(_message(row)) for row in rows], rank=1),
        Column("bytes", [bytes_text(row.bytes) for row in rows], rank=8),
        Column("dtype", [printable(row.dtype) for row in rows], rank=7, right=False),
        Column("algorithm B/s", [_rate(row.bytes, row.bytes_known_ns) for row in rows], rank=5),
        Column("bus B/s", [_rate(row.bus_bytes, row.bus_known_ns) for row in rows], rank=2),
        Column("exposed", [share_text(row.exposed_ns, row.time_ns) for row in rows], rank=3),
        _times("transfer", [row.transfer_ns or 0 for row in rows], rank=6),
        _times("wait", [row.wait_ns or 0 for row in rows], rank=6),
        Column("group", [_group(row) for row in rows], rank=9, right=False, min_width=8, cut=cut_end),
        Column("by", [printable(row.library) for row in rows], rank=10, right=False),
    ]


def _message(row: Collective) -> int:
    return row.bytes // row.calls if row.bytes else 0


def _rate(size_bytes: int, time_ns: int) -> str:
    return rate_text(size_bytes, time_ns, "").replace(" ", "")


def _group(row: Collective) -> str:
    """`default_pg 0-7`, or what is known of it."""
    name = row.group_description if row.group_description not in {"", "undefined"} else row.group
    who = row.group_ranks or (f"of {row.group_size}" if row.group_size else "")
    return printable(" ".join(filter(None, (name, who))))


def _times(title: str, values: Sequence[float], rank: int = 0) -> Column:
    return Column(title, [time_text(value) for value in values], rank=rank)


def _counts(title: str, values: Sequence[int], rank: int = 0) -> Column:
    return Column(title, [count_text(value) for value in values], rank=rank)
