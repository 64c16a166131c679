"""The table of the whole run: its parts, then the steps of each epoch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from deepscope.quantities import share_text, time_text
from deepscope.records import CompiledFunction, Profile, RunEpoch, RunPause, Step, WholeRun
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
    """A part of the run, the line that most of its pauses were at, what was compiled in it, or an epoch's steps with
    their wait for data.

    Times are means of the ranks.
    """

    section: Literal["run", "pause", "first step", "compiled", "epoch"]
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
    root = profile.trace.project_root
    return [*_parts(run), *_pauses(run, root), *_first_step(run), *_compiled(run, root), *_epochs(run)]


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


def long_steps_words(run: WholeRun, steps: Sequence[Step], audited: int, busy: float, project_root: str) -> str:
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
    pause = _largest_pause(run, "steps")
    is_known = pause is not None and pause.time_ns >= _MOST_OF_PART * run.long_steps_ns
    place = f", most of it at {pause_place(pause, project_root)}" if pause is not None and is_known else ""
    return (
        f"1 step of {every:,} takes {time_text(each_ns)}, others {time_text(run.usual_step_ns)}; what makes it longer "
        f"is {share_text(share, 1)} of the run{place}, and none was recorded: record {2 * every:,} "
        f"(`active={2 * every}`)."
    )


_MOST_OF_PART = 0.5
"""A part's line is named if it has at least this share of its time."""
_RARE = 4
"""Waits for a batch are an epoch's if one comes in so many steps, at most."""


def pause_of(run: WholeRun, part: str) -> RunPause | None:
    """Where most of a part's time was spent; None where that is not known."""
    found = _largest_pause(run, part)
    return found if found is not None and found.time_ns >= _MOST_OF_PART * run.time_ns(part) else None


def _largest_pause(run: WholeRun, part: str) -> RunPause | None:
    return max((one for one in run.pauses if one.part == part), key=lambda one: one.time_ns, default=None)


def pause_place(pause: RunPause, project_root: str) -> str:
    """Its line, and the function that this is in."""
    place = short_place(pause.file, pause.line, project_root)
    return place if pause.function.startswith("<") else f"{place}, in {pause.function}"


def waits_words(run: WholeRun, counted: float, project_root: str) -> str:
    """A sentence where few steps wait long for their batch, as the first of an epoch does; "" for little.

    `counted` is the share of the run that shares are of.
    """
    one = _largest_pause(run, "data")
    share = one.time_ns / run.program_ns / counted if one is not None and run.program_ns else 0.0
    if one is None or share < _REPEATED or one.times * _RARE > run.steps:
        return ""
    place, each_ns = pause_place(one, project_root), one.time_ns / run.ranks / max(one.times, 1)
    often = f"{one.times:,} batches wait {time_text(each_ns)} each" if one.times > 1 else "One batch waits"
    return (
        f"{often} at {place}: {share_text(min(share, 1.0), 1)} of the run; what is the same each time can be made "
        "once, and kept."
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


def _pauses(run: WholeRun, project_root: str) -> list[RunRow]:
    whole_ns = run.program_ns // run.ranks
    return [
        RunRow(
            "pause",
            f"{NAMES.get(one.part, one.part)}: {short_place(one.file, one.line, project_root)}",
            one.time_ns // run.ranks,
            whole_ns,
            one.times,
        )
        for one in run.pauses
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
