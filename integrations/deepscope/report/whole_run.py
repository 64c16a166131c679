"""The table of the whole run: its parts, then the steps of each epoch."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from deepscope.records import CompiledFunction, Profile, RunEpoch
from deepscope.records.places import short_place
from deepscope.report.table_column import ColumnOf, field

_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")
"""How dynamo names what follows a graph break."""
RunSection = Literal["run", "pause", "first step", "compiled", "epoch"]


class RunRow(msgspec.Struct):
    """A part of the run, the line that most of its pauses were at, what was compiled in it, or an epoch's steps with
    their wait for data.

    Times are means of the ranks.
    """

    section: RunSection
    name: str
    time_ns: int
    whole_ns: int
    """What it is a part of: the run without what recording took; 0 for none."""
    times: int
    """How often it came; of an epoch its steps."""


NAMES = {
    "steps": "training steps",
    "data": "waiting for data",
    "evaluation": "validation",
    "checkpoint": "checkpoints",
    "logging": "logging",
    "recording": "recording (DeepScope)",
    "start": "before the first step",
    "rest": "everything else",
}


def run_rows(profile: Profile) -> list[RunRow]:
    """The rows of the run that a profile's trace is of; none where nothing is known of it."""
    run = profile.whole_run
    if run is None:
        return []
    root, ranks = profile.trace.project_root, run.ranks
    whole_ns = run.program_ns // ranks

    def row(section: RunSection, name: str, time_ns: int, times: int, whole_ns: int = whole_ns) -> RunRow:
        return RunRow(section, name, time_ns // ranks, whole_ns, times)

    parts = [
        row("run", NAMES.get(one.name, one.name), one.time_ns, one.times, 0 if one.name == "recording" else whole_ns)
        for one in run.parts
    ]
    pauses = [
        row(
            "pause", f"{NAMES.get(one.part, one.part)}: {short_place(one.file, one.line, root)}", one.time_ns, one.times
        )
        for one in run.pauses
    ]
    first = [RunRow("first step", "", run.first_step_ns, 0, 1)] if run.first_step_ns else []
    compiled = [row("compiled", compiled_place(one, root), one.time_ns, one.times) for one in run.compiled]
    epochs = [row("epoch", epoch_name(one), one.steps_ns + one.data_ns, one.steps) for one in run.epochs]
    return [*parts, *pauses, *first, *compiled, *epochs]


def compiled_place(one: CompiledFunction, project_root: str) -> str:
    """The function, and where it begins."""
    resumed = _RESUMED.fullmatch(one.function)
    name = one.function if resumed is None else f"{resumed[1]} behind line {resumed[2]}"
    return f"{short_place(one.file, one.line, project_root)} {name}"


def epoch_name(one: RunEpoch) -> str:
    """Its number, or the first and the last one of several."""
    return str(one.number) if one.epochs == 1 else f"{one.number}-{one.number + one.epochs - 1}"


RUN_COLUMNS = (
    ColumnOf("section", "of", "text", lambda row: row.section, least=5, is_once=True),
    ColumnOf("name", "what", "text", lambda row: row.name, least=9),
    ColumnOf("part", "share", "share", lambda row: row.time_ns / row.whole_ns if row.whole_ns else None),
    field("time_ns", "time", "time"),
    field("times", "times", "count", "How often; of an epoch its steps."),
    ColumnOf("mean", "each", "time", lambda row: row.time_ns / row.times if row.times else None, rank=1),
)
