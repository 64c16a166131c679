"""The steps of a server of models and their phases: the columns of both, and words for the report's head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from deepscope.quantities import count_text, share_text, time_text
from deepscope.records import Profile, ServingPhase, ServingStep
from deepscope.report.step_times import percentile
from deepscope.report.table_column import ColumnOf, field


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

    def busy(row: ServingStep) -> float | None:
        return row.busy_ns / whole if device and (whole := row.busy_ns + row.idle_ns) else None

    return [
        field("number", "step", "count", "By its start, from 0 on.", is_name=True),
        ColumnOf("phase", "phase", "text", lambda row: row.phase),
        field("requests", "requests", "count"),
        ColumnOf("tokens", "tokens", "count", lambda row: row.tokens, "As its name tells.", none="unknown"),
        ColumnOf("duration_ns", "time", "time", mean("duration_ns"), "From its start until its work is done."),
        ColumnOf("busy", "busy", "share", busy, "How much of it some stream works.", 1),
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
