"""Every question that the pages can ask: its name, what it takes, what answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepscope.dashboard.pages.compare import compare
from deepscope.dashboard.pages.distributed import distributed
from deepscope.dashboard.pages.findings import finding_page, findings
from deepscope.dashboard.pages.flame import flame
from deepscope.dashboard.pages.header import header, news, runs
from deepscope.dashboard.pages.kernels import kernel, kernels
from deepscope.dashboard.pages.line import line
from deepscope.dashboard.pages.lines import file, line_list, lines
from deepscope.dashboard.pages.memory import memory, memory_at, memory_curve
from deepscope.dashboard.pages.modules import modules
from deepscope.dashboard.pages.operator_details import operator, operator_variants
from deepscope.dashboard.pages.operators import operators
from deepscope.dashboard.pages.overview import overview
from deepscope.dashboard.pages.rank import rank
from deepscope.dashboard.pages.steps import steps
from deepscope.dashboard.pages.timeline import (
    timeline,
    timeline_durations,
    timeline_line,
    timeline_search,
    timeline_selection,
    timeline_slice,
    timeline_window,
)

QUESTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        runs,
        news,
        header,
        overview,
        lines,
        line_list,
        file,
        line,
        flame,
        memory,
        memory_at,
        memory_curve,
        distributed,
        rank,
        findings,
        compare,
        finding_page,
        operators,
        operator,
        operator_variants,
        kernels,
        kernel,
        modules,
        steps,
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
