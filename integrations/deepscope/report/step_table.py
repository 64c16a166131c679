"""Steps, of training and of a server of models: their columns and how long they are.

Of the times there are percentiles, the slowest step and the line that makes it so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from deepscope.printable import printable
from deepscope.quantities import count_text, share_text, time_text
from deepscope.records import Profile, ServingPhase, ServingStep, Step, Stream, step_length_ns
from deepscope.records.source_files import short_place
from deepscope.report.table_column import ColumnOf, field

PERCENTILES = (50, 90, 95, 99)


class StepTimeSummary(msgspec.Struct, kw_only=True):
    """The durations of the steps, each the mean of the ranks, in nanoseconds."""

    count: int
    mean_ns: int
    min_ns: int
    p50_ns: int
    """Percentiles lie between the two steps around them, in proportion."""
    p90_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    slowest: int
    """The number of the longest step."""
    file: str
    """The line on which its training thread was longer than in other steps, by the most; "" for none."""
    line: int
    function: str
    excess_ns: int
    """Its time in the slowest step less the median over the steps; of several ranks, of the rank with most."""


def step_times(profile: Profile) -> StepTimeSummary | None:
    """The durations of a profile's steps; None where there are none."""
    if not profile.steps:
        return None
    ranks = max(1, profile.totals.ranks)
    times = sorted(step.duration_ns // ranks for step in profile.steps)
    slowest = max(profile.steps, key=lambda step: step.duration_ns)
    percentiles = {f"p{one}_ns": percentile(times, one) for one in PERCENTILES}
    return StepTimeSummary(
        count=len(times),
        mean_ns=round(step_length_ns(profile) or 0),
        min_ns=times[0],
        max_ns=times[-1],
        slowest=slowest.number,
        file=slowest.slow_file,
        line=slowest.slow_line,
        function=slowest.slow_function,
        excess_ns=slowest.slow_ns,
        **percentiles,
    )


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Between the two values around it, in proportion, rounded down; `ordered` ascends and has one value at least."""
    place, part = divmod((len(ordered) - 1) * percent, 100)
    after = ordered[min(place + 1, len(ordered) - 1)]
    return ordered[place] + (after - ordered[place]) * part // 100


def step_times_words(profile: Profile) -> list[tuple[str, str]]:
    """Entries of the foot, where there are steps to compare."""
    times = step_times(profile)
    if times is None or times.count < 2:
        return []
    shown = [f"p{one} {time_text(getattr(times, f'p{one}_ns')) or '0'}" for one in PERCENTILES]
    text = f"mean {time_text(times.mean_ns) or '0'}, min {time_text(times.min_ns) or '0'}, {', '.join(shown)}"
    over = time_text(times.max_ns - times.p50_ns) or "nothing"
    slow = f"step {times.slowest}, {time_text(times.max_ns) or '0'}: {over} over the median"
    if times.excess_ns:
        place = short_place(times.file, times.line, profile.trace.project_root)
        slow += f"; {place} {times.function} took {time_text(times.excess_ns)} more than it usually does"
    elif profile.lines:
        slow += "; no line took longer than it usually does"
    return [("times", f"{text}, max {time_text(times.max_ns) or '0'}"), ("slowest", printable(slow))]


def step_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of steps, but for what made one longer than others; times are means of the ranks."""
    ranks = max(1, profile.totals.ranks)
    device = profile.metric == "device"
    phases = dict.fromkeys(name for step in profile.steps for name in step.phases)

    def of(key: str, title: str, rank: int, explained: str) -> ColumnOf:
        return ColumnOf(key, title, "time", lambda row: getattr(row, key) / ranks, explained, rank)

    def phase(name: str, rank: int) -> ColumnOf:
        help_ = "Time of the training thread in it."
        title = printable(name)
        return ColumnOf(f"phase_{name}", title, "time", lambda row: row.phases.get(name, 0) / ranks, help_, rank)

    return [
        field("number", "step", "count", is_name=True),
        of("duration_ns", "time", 0, "From its start to its end; of several ranks the mean."),
        _busy(device),
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
            is_numeric=True,
        ),
        *(phase(name, 6 + at) for at, name in enumerate(phases)),
    ]


def _busy(device: bool) -> ColumnOf:
    """The column of a step's busy share, which is known of a device alone."""

    def busy(row: Step | ServingStep) -> float | None:
        return busy_share(row) if device else None

    return ColumnOf("busy", "busy", "share", busy, "How much of it some stream works.", 1)


def busy_share(row: Step | ServingStep | Stream) -> float | None:
    """How much of its time some work takes; None of no time."""
    whole = row.busy_ns + row.idle_ns
    return row.busy_ns / whole if whole else None


def serving_columns(profile: Profile) -> list[ColumnOf]:
    """The columns; counts of several ranks are their means."""
    ranks = max(profile.totals.ranks, 1)
    times = {row.phase: _times(profile.serving_steps, row.phase) for row in profile.serving}

    def of(key: str) -> Callable[[ServingPhase], float]:
        return lambda row: getattr(row, key) / ranks

    def a_step(key: str) -> Callable[[ServingPhase], float | None]:
        return lambda row: getattr(row, key) / row.steps if row.steps else None

    def at(percent: int) -> Callable[[ServingPhase], int | None]:
        return lambda row: percentile(found, percent) if len(found := times.get(row.phase, [])) > 1 else None

    return [
        field("phase", "phase", "text"),
        ColumnOf("mean_steps", "steps", "count", of("steps"), "Of several ranks the mean."),
        ColumnOf(
            "step_ns",
            "a step",
            "time",
            a_step("duration_ns"),
            "From its start until its work is done, at the latest until the next one starts.",
        ),
        ColumnOf("p50_ns", "median", "time", at(50), "Of a step.", 3),
        ColumnOf("p95_ns", "p95", "time", at(95), "95 % of the steps are not longer.", 3),
        ColumnOf("device_step_ns", "device", "time", a_step("device_ns"), "Device work launched in a step.", 2),
        ColumnOf("requests_a_step", "requests", "count", a_step("requests"), "In a step.", 1),
        ColumnOf("tokens_a_step", "tokens", "count", _tokens_a_step, "In a step, as its name tells."),
        ColumnOf("token_ns", "a token", "time", _token_ns, "The time of the steps by their tokens."),
    ]


def _times(steps: Sequence[ServingStep], phase: str) -> list[int]:
    """What the steps of a phase take, each the mean of its ranks, ascending."""
    return sorted(step.duration_ns // step.ranks for step in steps if step.phase == phase)


def serving_step_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of a server's steps; times are means of the ranks that have the step."""
    device = profile.metric == "device"

    def mean(key: str) -> Callable[[ServingStep], float]:
        return lambda row: getattr(row, key) / row.ranks

    return [
        field("number", "step", "count", "By its start, from 0 on.", is_name=True),
        ColumnOf("phase", "phase", "text", lambda row: row.phase),
        field("requests", "requests", "count"),
        ColumnOf("tokens", "tokens", "count", lambda row: row.tokens, "As its name tells.", none="unknown"),
        ColumnOf("duration_ns", "time", "time", mean("duration_ns"), "From its start until its work is done."),
        _busy(device),
        ColumnOf("device_ns", "device", "time", mean("device_ns"), "Device work launched in it.", 2),
        ColumnOf("token_ns", "a token", "time", lambda row: row.token_ns, "Its time by its tokens."),
    ]


def _tokens_a_step(row: ServingPhase) -> float | None:
    return row.tokens / row.steps if row.steps and not row.steps_without_tokens else None


def _token_ns(row: ServingPhase) -> float | None:
    return row.duration_ns / row.tokens if row.tokens and not row.steps_without_tokens else None


def serving_words(row: ServingPhase, profile: Profile) -> str:
    """`decode: 12 steps of 8.31ms (median 8.30ms, p95 8.52ms), each with 16 requests and 16 tokens, 519µs a token`."""
    values = {column.key: column.value(row) for column in serving_columns(profile)}
    words = f"{row.phase}: {_steps_words(values)}"
    if values["p50_ns"] is not None:
        words += f" (median {_time(values['p50_ns'])}, p95 {_time(values['p95_ns'])})"
    requests = count_text(float(values["requests_a_step"] or 0))
    words += f", {'with' if values['mean_steps'] == 1 else 'each with'} {requests} requests"
    if values["token_ns"] is None:
        return f"{words}; how many tokens is not known"
    return f"{words} and {count_text(float(values['tokens_a_step'] or 0))} tokens, {_time(values['token_ns'])} a token"


def serving_sentence(profile: Profile) -> str:
    """`The server decodes: 12 steps of 8.31ms, 519µs a token.` on the phase with most time; "" for other programs."""
    if not profile.serving:
        return ""
    row = profile.serving[0]
    whole_ns = sum(one.duration_ns for one in profile.serving)
    values = {column.key: column.value(row) for column in serving_columns(profile)}
    what = _DOES.get(row.phase, "works")
    mostly = f" for {share_text(row.duration_ns, whole_ns)} of its steps' time" if len(profile.serving) > 1 else ""
    token = "" if values["token_ns"] is None else f", {_time(values['token_ns'])} a token"
    return f"The server {what}{mostly}: {_steps_words(values)}{token}."


_DOES = {
    "prefill": "prefills",
    "decode": "decodes",
    "mixed": "prefills and decodes at once",
    "verify": "verifies drafted tokens",
}


def _steps_words(values: Mapping[str, str | float | None]) -> str:
    steps = values["mean_steps"]
    return f"{count_text(float(steps or 0))} {'step' if steps == 1 else 'steps'} of {_time(values['step_ns'])}"


def _time(value: str | float | None) -> str:
    return time_text(float(value or 0)) or "0"
