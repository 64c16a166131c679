"""What Lightning prints at the end of a run: the hot lines and the phases of a step, by `deepscope.report`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deepscope.lightning.stages import Stage, StageRecorder, StageWindows
from deepscope.report.columns import columns
from deepscope.report.layout import render
from deepscope.report.style import Styles
from deepscope.report.tables import table
from deepscope.report.text import text_report

if TYPE_CHECKING:
    from deepscope.records import Profile

__all__ = ["summarize", "tables"]


def summarize(windows: Mapping[Stage, StageWindows], *, main: str, rows: int | None, sort: str | None) -> str:
    """The newest window of the stage `main`; "" where nothing was recorded.

    The summary is a service at the end of a training run, so a trace that cannot be read costs a line of text.
    """
    recorder = _newest([stage for name, stage in windows.items() if name.value == main] or list(windows.values()))
    if recorder is None:
        return ""
    try:
        profile: Profile | None = recorder.profile
        return "" if profile is None else tables(profile, rows=rows, sort=sort)
    except Exception as error:  # noqa: BLE001  the trace is safe, and the run has just ended well
        return f"DeepScope: no summary of {recorder.traces[-1]}: {error!r}\n"


def tables(profile: Profile, *, rows: int | None, sort: str | None) -> str:
    """The report by line, then the phases; as wide as the terminal."""
    width = shutil.get_terminal_size((100, 24)).columns
    lines = text_report(profile, sort=sort, limit=rows or 0, width=width)
    phases = table("phase").rows(profile)
    if not phases:
        return f"\n{lines}"
    styles = Styles(color=False)  # it goes through a logger or into a file
    by_phase = render(columns("phase", phases, [], profile, width=width, styles=styles), width)
    return "\n".join(("", lines, *by_phase, ""))


def _newest(stages: Sequence[StageWindows]) -> StageRecorder | None:
    recorders = [recorder for stage in stages for recorder in stage.recorders if recorder.traces]
    return recorders[-1] if recorders else None
