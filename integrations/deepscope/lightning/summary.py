"""What Lightning prints at the end of a run: the hot lines and the advice, by `deepscope.report`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence

from deepscope.lightning.stages import Stage, StageRecorder, StageWindows
from deepscope.printable import printable
from deepscope.records import Profile
from deepscope.records.places import short_path
from deepscope.report.columns import columns
from deepscope.report.findings import finding_words, without_findings
from deepscope.report.header import header
from deepscope.report.layout import cut_end, render
from deepscope.report.memory import memory_entries
from deepscope.report.style import Styles
from deepscope.report.tables import table
from deepscope.report.text import MIN_WIDTH, entries_text

FINDINGS = 3
FEWEST_ROWS = 3
MOST_ROWS = 12
"""Of what fits a tall screen: more is for the report."""
_HEAD = {"verdict", "run", "time", "phases"}


def summary(
    profile: Profile, *, rows: int | None = None, sort: str | None = None, width: int = 100, height: int = 24
) -> str:
    """The summary as text, ending in a newline.

    Args:
        profile: of the run.
        rows: of the table; None for what fits the screen, 0 for all.
        sort: a key of the table of lines; None for its own.
        width: of the screen in cells.
        height: of the screen in lines; that of the shell's prompt is left free.
    """
    styles = Styles(color=False)  # it goes through a logger or into a file
    width = max(MIN_WIDTH, width)
    by = "line" if profile.lines else "operator"
    head = [entry for entry in header(profile, by) if entry[0] in _HEAD]
    if profile.memory.failure is not None:
        head += memory_entries(profile)
    top = list(entries_text(head, width, styles))
    found = sorted(profile.findings, key=lambda one: -one.saving_ns)
    below = [cut_end(finding_words(finding, profile), width) for finding in found[:FINDINGS]]
    below = below or list(entries_text([("advice", without_findings(profile))], width, styles))
    below += ["", *_commands(profile, len(found))]
    ordered = table(by).rows(profile, sort=sort if by == "line" else None)
    if rows is None:
        room = height - 1 - len(top) - _AROUND
        if not found and room - len(below) < FEWEST_ROWS:
            below = below[-1:]
        rows = min(max(room - len(below), FEWEST_ROWS), MOST_ROWS)
    shown, rest = (ordered[:rows], ordered[rows:]) if rows else (ordered, [])
    middle = render(columns(by, shown, rest, profile, sort=sort, width=width, styles=styles), width)
    return "\n".join([*top, "", *middle, "", *below]) + "\n"


_AROUND = 6
"""Titles, up to three rows for what has no line, and blank lines."""


def _commands(profile: Profile, found: int) -> list[str]:
    path = shlex.quote(printable(short_path(profile.trace.path)))
    more = f"{found - FINDINGS:,} more findings, " if found > FINDINGS else ""
    return [f"more: {more}all lines, figures and advice: deepscope report {path}"]


def summarize(windows: Mapping[Stage, StageWindows], *, main: str, rows: int | None, sort: str | None) -> str:
    """The newest window of the stage `main`; "" where nothing was recorded.

    The summary is a service at the end of a training run, so a trace that cannot be read costs a line of text.
    """
    recorder = _newest([stage for name, stage in windows.items() if name.value == main] or list(windows.values()))
    if recorder is None:
        return ""
    try:
        profile = recorder.profile
        if profile is None:
            return ""
        width, height = shutil.get_terminal_size((100, 24))
        return "\n" + summary(profile, rows=rows, sort=sort, width=width, height=height - 1)
    except Exception as error:  # noqa: BLE001  the trace is safe, and the run has just ended well
        return f"DeepScope: no summary of {recorder.traces[-1]}: {error!r}\n"


def _newest(stages: Sequence[StageWindows]) -> StageRecorder | None:
    recorders = [recorder for stage in stages for recorder in stage.recorders if recorder.traces]
    return recorders[-1] if recorders else None
