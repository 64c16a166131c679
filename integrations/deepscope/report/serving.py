"""The phases of a server of models: one list of columns for the pages and JSON, and words for the report's head."""

from __future__ import annotations

from collections.abc import Callable

from deepscope.quantities import count_text, time_text
from deepscope.records import Profile, ServingPhase
from deepscope.report.table_column import ColumnOf, field


def serving_columns(profile: Profile) -> list[ColumnOf]:
    """The columns; counts of several ranks are their means."""
    ranks = max(profile.totals.ranks, 1)

    def of(key: str) -> Callable[[ServingPhase], float]:
        return lambda row: getattr(row, key) / ranks

    def a_step(key: str) -> Callable[[ServingPhase], float | None]:
        return lambda row: getattr(row, key) / row.steps if row.steps else None

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
        ColumnOf("device_step_ns", "device", "time", a_step("device_ns"), "Device work launched in a step.", 2),
        ColumnOf("requests_a_step", "requests", "count", a_step("requests"), "In a step.", 1),
        ColumnOf("tokens_a_step", "tokens", "count", _tokens_a_step, "In a step, as its name tells."),
        ColumnOf("token_ns", "a token", "time", _token_ns, "The time of the steps by their tokens."),
    ]


def _tokens_a_step(row: ServingPhase) -> float | None:
    return row.tokens / row.steps if row.steps and not row.untold_steps else None


def _token_ns(row: ServingPhase) -> float | None:
    return row.duration_ns / row.tokens if row.tokens and not row.untold_steps else None


def serving_words(row: ServingPhase, profile: Profile) -> str:
    """`decode: 12 steps of 8.31ms, each with 16 requests and 16 tokens, 519µs a token`."""
    values = {column.key: column.value(row) for column in serving_columns(profile)}
    steps = values["mean_steps"]
    words = f"{row.phase}: {count_text(float(steps or 0))} {'step' if steps == 1 else 'steps'}"
    words += f" of {time_text(float(values['step_ns'] or 0)) or '0'}, {'with' if steps == 1 else 'each with'}"
    words += f" {count_text(float(values['requests_a_step'] or 0))} requests"
    if values["token_ns"] is None:
        return f"{words}; how many tokens is not told"
    tokens = count_text(float(values["tokens_a_step"] or 0))
    return f"{words} and {tokens} tokens, {time_text(float(values['token_ns'] or 0))} a token"
