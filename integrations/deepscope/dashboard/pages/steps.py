"""The steps: how long they are, what made the slow ones slow; and the threads and streams that work in them."""

from __future__ import annotations

from typing import Any

from deepscope.dashboard.answer import Choice, Figure, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.counters import CounterChart, counter_charts, counter_rows
from deepscope.dashboard.pages.overview import StepBar, step_bars
from deepscope.dashboard.pages.tables import table_of
from deepscope.dashboard.pages.words import place_words, word
from deepscope.records import PHASES, HostThread, Profile, Step, Stream
from deepscope.report.step_times import PERCENTILES, step_times
from deepscope.report.table_column import ColumnOf

_SLOW = 5
"""Steps of which it is said what made them slow."""


class SlowStep(PageAnswer):
    """One of the longest steps."""

    number: int
    duration_ns: float
    over_ns: float
    """Over the median of the steps."""
    file: str
    """The line on which its training thread was longer than in other steps, by the most; "" for none."""
    line: int
    place: str
    function: str
    excess_ns: int
    """Its time on that line over the median of the steps."""


class Steps(PageAnswer):
    """Durations are means of the ranks."""

    figures: list[Figure]
    phase_names: list[str]
    bars: list[StepBar]
    slow: list[SlowStep]
    """Longer than the median, the longest first."""
    table: Table
    threads: Table
    streams: Table
    counter_charts: list[CounterChart]
    """What the machine did meanwhile, by step; empty for several ranks."""
    counters: Table


def steps(library: Library, question: Choice) -> Steps:
    """How long the steps are, and the threads and streams."""
    profile = library.profile(question)
    several = profile.totals.ranks > 1
    return Steps(
        figures=_figures(profile),
        phase_names=list(PHASES),
        bars=step_bars(profile),
        slow=_slow(profile),
        table=table_of(
            "steps",
            "Steps",
            _step_columns(profile),
            profile.steps,
            keys=lambda row: str(row.number),
            place=lambda row: (row.slow_file, row.slow_line),
        ),
        threads=table_of("threads", "Threads of the CPU", _thread_columns(profile, several), profile.threads),
        streams=table_of("streams", "Streams of the devices", _STREAM_COLUMNS, profile.streams),
        counter_charts=counter_charts(profile),
        counters=counter_rows(profile),
    )


def _figures(profile: Profile) -> list[Figure]:
    times = step_times(profile)
    if times is None:
        return []
    named = {
        "mean": times.mean_ns,
        "shortest": times.min_ns,
        "median": times.p50_ns,
        **{f"p{one}": getattr(times, f"p{one}_ns") for one in PERCENTILES if one != 50},
        "longest": times.max_ns,
    }
    helps = {f"p{one}": f"{one} % of the steps are not longer." for one in PERCENTILES}
    return [
        Figure(label="steps", value=times.count, kind="count", help="That were recorded."),
        *(Figure(label=name, value=value, kind="time", help=helps.get(name, "")) for name, value in named.items()),
    ]


def _slow(profile: Profile) -> list[SlowStep]:
    times = step_times(profile)
    if times is None:
        return []
    ranks = max(profile.totals.ranks, 1)
    root = profile.trace.project_root
    longest = sorted(profile.steps, key=lambda step: -step.duration_ns)[:_SLOW]
    return [
        SlowStep(
            number=step.number,
            duration_ns=step.duration_ns / ranks,
            over_ns=step.duration_ns / ranks - times.p50_ns,
            file=step.slow_file,
            line=step.slow_line,
            place=place_words(step.slow_file, step.slow_line, root),
            function=word(step.slow_function),
            excess_ns=step.slow_ns,
        )
        for step in longest
        if step.duration_ns / ranks > times.p50_ns
    ]


def _step_columns(profile: Profile) -> list[ColumnOf]:
    ranks = max(1, profile.totals.ranks)
    device = profile.metric == "device"
    root = profile.trace.project_root
    names = list(dict.fromkeys(name for step in profile.steps for name in step.phases))

    def of(key: str, title: str, rank: int, explained: str) -> ColumnOf:
        return ColumnOf(key, title, "time", lambda row: getattr(row, key) / ranks, explained, rank)

    def phase(name: str, rank: int) -> ColumnOf:
        help_ = "Time of the training thread in it."
        return ColumnOf(f"phase_{name}", word(name), "time", lambda row: row.phases.get(name, 0) / ranks, help_, rank)

    def busy(row: Step) -> float | None:
        whole = row.busy_ns + row.idle_ns
        return row.busy_ns / whole if device and whole else None

    return [
        ColumnOf("number", "step", "count", lambda row: row.number),
        of("duration_ns", "time", 0, "From its start to its end; of several ranks the mean."),
        ColumnOf("busy", "busy", "share", busy, "How much of it some stream works.", 1),
        of("device_ns", "device" if device else "operators", 2, "Work that was launched in it."),
        of("idle_ns", "idle", 3, "When no stream works."),
        of("wait_ns", "wait", 4, "The CPU waiting for the device."),
        ColumnOf(
            "slowest_rank",
            "slowest rank",
            "text",
            lambda row: str(row.spread.max_rank) if row.spread else "",
            "The rank on which it took longest.",
            5,
        ),
        *(phase(name, 6 + at) for at, name in enumerate(names)),
        ColumnOf(
            "slow_place",
            "longer than usual at",
            "place",
            lambda row: place_words(row.slow_file, row.slow_line, root) if row.slow_ns else "",
            "The line on which the training thread was longer than in other steps, by the most.",
            12,
        ),
        ColumnOf("slow_ns", "by", "time", lambda row: row.slow_ns, "Over the median of the steps.", 12),
    ]


def _thread_columns(profile: Profile, several: bool) -> list[ColumnOf]:
    def of(key: str, title: str, rank: int, explained: str = "") -> ColumnOf:
        return ColumnOf(key, title, "time", lambda row: getattr(row, key), explained, rank)

    def role(row: HostThread) -> str:
        return row.role if row.role == "training" else f"{row.role} {row.number + 1}"

    return [
        ColumnOf("role", "thread", "text", role),
        of("span_ns", "span", 0, "From its first event to the end of its last."),
        of("operator_ns", "operators", 1, "In operators, calls of the runtime in them left out."),
        of("runtime_ns", "runtime", 3, "In calls of the device's runtime."),
        of("python_ns", "python", 2, "In lines, frames or modules, and in nothing of the before."),
        of("annotation_ns", "annotated", 9, "In annotations alone."),
        of("rest_ns", "nothing", 6, "In nothing that is recorded."),
        of("wait_ns", "wait", 4, "Waiting for the device."),
        of("device_ns", "device" if profile.metric == "device" else "self", 5, "Work launched from it."),
        ColumnOf("launches", "launches", "count", lambda row: row.launches, "Kernels launched from it.", 7),
        ColumnOf("runtime_calls", "calls", "count", lambda row: row.runtime_calls, "Of the device's runtime.", 10),
        ColumnOf("threads", "ranks", "count", lambda row: row.threads if several else None, "That have it.", 8),
        ColumnOf("thread", "tid", "text", lambda row: "" if several else row.thread, "", 8),
        ColumnOf("name", "name", "text", lambda row: row.name, "", 11),
    ]


def _times(fields: dict[str, tuple[str, int, str]]) -> list[ColumnOf]:
    def value(key: str) -> Any:
        return lambda row: getattr(row, key)

    return [
        ColumnOf(key, title, "time", value(key), explained, rank) for key, (title, rank, explained) in fields.items()
    ]


def _busy(row: Stream) -> float:
    window = row.busy_ns + row.idle_ns
    return row.busy_ns / window if window else 0.0


_STREAM_COLUMNS: list[ColumnOf] = [
    ColumnOf("name", "stream", "text", lambda row: f"device {row.device}, stream {row.stream}"),
    ColumnOf("busy", "busy", "share", _busy, "How much of the window it works."),
    *_times(
        {
            "device_ns": ("work", 0, "The sum of durations."),
            "kernel_ns": ("kernels", 1, ""),
            "collective_ns": ("collectives", 2, ""),
            "copy_ns": ("copies", 3, ""),
            "fill_ns": ("fills", 9, ""),
            "idle_ns": ("idle", 4, "When it does not work."),
            "overlapped_ns": ("overlapped", 5, "When another stream of the device works, too."),
            "host_wait_ns": ("host wait", 6, "Gaps before work that was launched late."),
            "kernel_wait_ns": ("kernel wait", 7, "Other short gaps."),
            "other_wait_ns": ("other wait", 8, "All other gaps."),
        }
    ),
    ColumnOf(
        "launches",
        "launches",
        "count",
        lambda row: row.kernels + row.copies + row.fills + row.collectives,
        "Pieces of work.",
        10,
    ),
]
