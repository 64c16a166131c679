"""What columns of events have in common: names by index, places in code, steps and threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deepscope.analysis.analysis import Analysis
from deepscope.records.columns import Column
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.model import Int64

ABSENT = -1


def integers(name: str, values: Int64) -> Column:
    """Whole numbers, one in each row."""
    return Column(name, "integer", values)


def optional(name: str, values: Int64, absent: int = ABSENT) -> Column:
    """Whole numbers, some of which are lacking."""
    return Column(name, "integer", values, is_optional=True, absent=absent)


def texts(name: str, codes: npt.NDArray[np.integer], words: Sequence[str]) -> Column:
    """Words by their index, -1 for none; only those that occur stand in the column."""
    found, place = distinct_places(codes)
    lacks = int(len(found) > 0 and found[0] < 0)
    used = [words[code] for code in found[lacks:].tolist()]
    return Column(name, "text", place - lacks, words=used, is_optional=True)


def places(analysis: Analysis, location: Int64) -> list[Column]:
    """File, line and function of the line that owns each row, by its index."""
    locations = analysis.attribution.scopes.locations
    lines = np.array([one.line for one in locations], np.int64)
    return [
        texts("file", location, [one.file for one in locations]),
        optional("line", pick(lines, location)),
        texts("function", location, [one.function for one in locations]),
    ]


def modules(analysis: Analysis, event: Int64) -> Column:
    """The path of the innermost module around each event (its class where the trace has no paths)."""
    scopes = analysis.modules
    within = pick(scopes.of_event, event)
    return texts("module", pick(scopes.module, within), [path for path, _ in scopes.names])


def steps(analysis: Analysis, step: Int64) -> Column:
    """The number of the step of each row, by its index."""
    return optional("step", pick(analysis.attribution.training.steps.number, step))


def threads(analysis: Analysis, event: Int64) -> Column:
    """The thread of each event as `process/thread`, as the trace names them."""
    trace = analysis.attribution.trace
    words = [f"{one.pid}/{one.tid}" for one in trace.threads]
    return texts("thread", trace.events.thread[event], words)


def devices(analysis: Analysis, device: Int64) -> Column:
    """The index of the device of each row; none where the CPU is the device."""
    on_cpu = analysis.attribution.work.metric != "device"
    return optional("device", np.full(len(device), ABSENT, np.int64) if on_cpu else device)
