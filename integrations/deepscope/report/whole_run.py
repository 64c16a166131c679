"""The table of the whole run: its parts, then the steps of each epoch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from deepscope.quantities import share_text, time_text
from deepscope.records import CompiledFunction, Profile, RunEpoch, Step, WholeRun
from deepscope.records.places import short_place
from deepscope.report.table_column import ColumnOf, field

_LEAST_EPOCHS = 4
_RISING = 0.75
"""Of the epochs, so many are slower than the one before."""
_MUCH = 0.2
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")
"""How dynamo names what follows a graph break."""
_SLOWER = 1.2
"""The last one's steps beside the first one's."""


class RunRow(msgspec.Struct):
    """A part of the run, what was compiled in it, or an epoch's steps with their wait for data.

    Times are means of the ranks.
    """

    section: Literal["run", "first step", "compiled", "epoch"]
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
    return [*_parts(run), *_first_step(run), *_compiled(run, profile.trace.project_root), *_epochs(run)]


_REPEATED = 0.05
"""From this share of the run on evaluations on the training data are named."""


def slowing_words(run: WholeRun, busy: float) -> str:
    """A sentence where the steps of later epochs take longer and longer; "" elsewhere.

    The first epoch has what is made once, so it is left out. `busy` is the part of the time that others took (0 to 1):
    they may come and go, which makes steps so much longer.
    """
    epochs = [one for one in run.epochs if one.steps][1:]
    each_ns = [(one.steps_ns + one.data_ns) / (one.steps * run.ranks) for one in epochs]
    rises = sum(later > earlier for earlier, later in pairwise(each_ns))
    slower = max(_SLOWER, 1 / max(1 - busy, 0.01))
    if len(epochs) < _LEAST_EPOCHS or rises < _RISING * (len(epochs) - 1) or each_ns[-1] < slower * each_ns[0]:
        return ""
    first, last = (f"{time_text(each_ns[place])} in epoch {_epoch_name(epochs[place])}" for place in (0, -1))
    late = sum(one.steps for one in run.epochs[:-1])
    return f"Steps get slower: {first}, {last}; record some of the last ones (`wait={late}`)."


def long_steps_share(run: WholeRun) -> float:
    """What makes some steps longer than usual ones, as a part of the run without what recording took, 0 to 1."""
    more_ns = run.long_steps_ns - run.long_steps * run.ranks * run.usual_step_ns
    return max(more_ns, 0) / run.program_ns if run.program_ns else 0.0


def long_steps_words(run: WholeRun, steps: Sequence[Step], audited: int, busy: float) -> str:
    """A sentence where much of a run is in long steps, none of which is among those that are recorded; "" elsewhere.

    Recorded steps and the `audited` ones may be long because they are, some steps because others took the cores for
    this part of the time (`busy`, 0 to 1).
    """
    share = long_steps_share(run)
    if share < _MUCH + busy or run.long_steps <= len(steps) + audited:
        return ""
    each_ns, every = run.long_steps_ns / (run.long_steps * run.ranks), round(run.steps / run.long_steps)
    if any(2 * one.duration_ns > each_ns * run.ranks for one in steps):
        return ""
    return (
        f"1 step of {every:,} takes {time_text(each_ns)}, others {time_text(run.usual_step_ns)}; what makes it longer "
        f"is {share_text(share, 1)} of the run, and none was recorded: record {2 * every:,} (`active={2 * every}`)."
    )


def repeated_data_words(run: WholeRun, counted: float) -> str:
    """A sentence where the data that the run trains on is gone through for evaluations, too; "" for little.

    `counted` is the share of the run that shares are of.
    """
    share = run.repeated_data_ns / run.program_ns / counted if run.program_ns else 0.0
    if share < _REPEATED:
        return ""
    return (
        f"{share_text(min(share, 1.0), 1)} of the run is evaluation on the training data: add up loss and metrics in "
        "the training steps in place of that, or evaluate a part of it."
    )


def _parts(run: WholeRun) -> list[RunRow]:
    whole_ns = run.program_ns // run.ranks
    return [
        RunRow(
            "run",
            NAMES.get(part.name, part.name),
            part.time_ns // run.ranks,
            0 if part.name == "recording" else whole_ns,
            part.times,
        )
        for part in run.parts
    ]


def _first_step(run: WholeRun) -> list[RunRow]:
    return [RunRow("first step", "", run.first_step_ns, 0, 1)] if run.first_step_ns else []


def _compiled(run: WholeRun, project_root: str) -> list[RunRow]:
    whole_ns = run.program_ns // run.ranks
    return [
        RunRow("compiled", compiled_place(one, project_root), one.time_ns // run.ranks, whole_ns, one.times)
        for one in run.compiled
    ]


def compiled_place(one: CompiledFunction, project_root: str) -> str:
    """The function, and where it begins."""
    resumed = _RESUMED.fullmatch(one.function)
    name = one.function if resumed is None else f"{resumed[1]} behind line {resumed[2]}"
    return f"{short_place(one.file, one.line, project_root)} {name}"


def _epochs(run: WholeRun) -> list[RunRow]:
    whole_ns = run.program_ns // run.ranks
    return [
        RunRow(
            "epoch",
            _epoch_name(one),
            (one.steps_ns + one.data_ns) // run.ranks,
            whole_ns,
            one.steps,
        )
        for one in run.epochs
    ]


def _epoch_name(one: RunEpoch) -> str:
    return str(one.number) if one.epochs == 1 else f"{one.number}-{one.number + one.epochs - 1}"


RUN_COLUMNS = (
    ColumnOf("section", "of", "text", lambda row: row.section, least=5, is_once=True),
    ColumnOf("name", "what", "text", lambda row: row.name, least=9),
    ColumnOf("part", "share", "share", lambda row: row.time_ns / row.whole_ns if row.whole_ns else None),
    field("time_ns", "time", "time"),
    field("times", "times", "count", "How often; of an epoch its steps."),
    ColumnOf("mean", "each", "time", lambda row: row.time_ns / row.times if row.times else None, rank=1),
)
