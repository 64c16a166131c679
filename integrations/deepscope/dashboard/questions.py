"""Every question that the pages can ask: its name, what it takes, what answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepscope.dashboard.pages.findings import findings
from deepscope.dashboard.pages.header import header, runs
from deepscope.dashboard.pages.overview import overview
from deepscope.dashboard.timeline.questions import (
    timeline,
    timeline_durations,
    timeline_line,
    timeline_search,
    timeline_selection,
    timeline_slice,
    timeline_window,
)

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        runs,
        header,
        overview,
        findings,
        timeline,
        timeline_window,
        timeline_slice,
        timeline_selection,
        timeline_search,
        timeline_line,
        timeline_durations,
    )
}
"""By name: functions of a `Library` and a `Question`, whose annotations say what they take and answer."""
