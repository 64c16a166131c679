"""What Lightning prints at the end of a run: the hot lines and the advice, by `deepscope.report`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from deepscope.lightning.stages import Stage, StageRecorder, StageWindows
from deepscope.report.summary import summary


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
