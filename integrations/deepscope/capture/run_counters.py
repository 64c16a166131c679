"""The counters of a whole run, which belong to whoever begins and ends it; windows and stages come and go in it."""

from __future__ import annotations

from pathlib import Path

from deepscope.capture.counters.whole_run import RunCounters
from deepscope.capture.naming import run_counters_path
from deepscope.capture.saving.header import Session
from deepscope.capture.saving.trace_folder import current_folder


def counters_of_run(session: Session, folder: Path) -> RunCounters | None:
    """What counts them, not started; None where the options do not ask for it. `folder`: where the file goes."""
    options, where = session.options, current_folder() / folder
    if options.counters != "run":
        return None
    return RunCounters(options.counter_interval, session.run_header, lambda: run_counters_path(where, session.worker))
