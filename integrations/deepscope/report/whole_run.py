"""The whole run: the table of its parts and epochs, and sentences on what takes much of it.

The sentences are about what lies beside its usual steps, and about steps that are not usual ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from deepscope.printable import printable
from deepscope.quantities import share_text, time_text
from deepscope.records import CompiledFunction, Profile, RunEpoch, RunPause, Step, WholeRun
from deepscope.records.source_files import short_place
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


_LEAST_EPOCHS = 4
_RISING = 0.75
"""Of the epochs, so many are slower than the one before."""
_MUCH = 0.2
_SLOWER = 1.2
"""The last one's steps beside the first one's."""
_REPEATED = 0.05
"""Long waits for a batch, and evaluations on the training data, are named from this share of the run on."""
_MOST_OF_PART = 0.5
"""A part's line is named if it has at least this share of its time."""
_RARE = 4
"""Waits for a batch are an epoch's if one comes in so many steps, at most."""
_PLACED = 0.1
"""What lies outside the steps is named from this share of the time on if its line is known."""
_WRITING = 0.05
"""Of the time after the run's start; checkpoints and logs are named from this share on, since they can be rarer."""
_OTHER = 0.2
"""Other parts are named from this share of the run on."""


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
    first, last = (f"{time_text(each_ns[place])} in epoch {epoch_name(epochs[place])}" for place in (0, -1))
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


def waits_words(run: WholeRun, project_root: str) -> str:
    """A sentence where few steps wait long for their batch, as the first of an epoch does; "" for little."""
    one = _largest_pause(run, "data")
    share = one.time_ns / run.program_ns / counted_share(run) if one is not None and run.program_ns else 0.0
    if one is None or share < _REPEATED or one.times * _RARE > run.steps:
        return ""
    place, each_ns = pause_place(one, project_root), one.time_ns / run.ranks / max(one.times, 1)
    often = f"{one.times:,} batches wait {time_text(each_ns)} each" if one.times > 1 else "One batch waits"
    return (
        f"{often} at {place}: {share_text(min(share, 1.0), 1)} of the run; what is the same each time can be made "
        "once, and kept."
    )


def repeated_data_words(run: WholeRun) -> str:
    """A sentence where the data that the run trains on is gone through for evaluations, too; "" for little."""
    share = run.repeated_data_ns / run.program_ns / counted_share(run) if run.program_ns else 0.0
    if share < _REPEATED:
        return ""
    return (
        f"{share_text(min(share, 1.0), 1)} of the run is evaluation on the training data: add up loss and metrics in "
        "the training steps in place of that, or evaluate a part of it."
    )


PartBeside = Literal["evaluation", "checkpoint", "logging", "rest", "compiling"]
_TAKES: dict[PartBeside, str] = {
    "evaluation": "Validation takes {}",
    "checkpoint": "Saving checkpoints takes {}",
    "logging": "Logging takes {}",
    "rest": "{} lies outside its steps",
}
_RARER: dict[PartBeside, str] = {
    "evaluation": "; validate less often, or on fewer batches",
    "checkpoint": "; save less often",
    "logging": "; log less often (Lightning: `Trainer(log_every_n_steps=…)`)",
    "rest": "; do it less often, or once",
}
"""What to do about what happened more than twice."""


class PartShare(NamedTuple):
    """A part of the run beside its usual steps."""

    part: PartBeside
    share: float
    """Of the run, 0 to 1."""


def counted_share(run: WholeRun) -> float:
    """The share of a run that its parts are shares of here: a short one begins as long as a long one does."""
    start = run.share("start")
    return 1 - start if _OTHER <= start < 1 else 1.0


def evaluates_much(run: WholeRun | None) -> bool:
    """Whether evaluations take enough of a run to be named in its verdict."""
    return run is not None and run.share("evaluation") >= _OTHER * counted_share(run)


def beside_steps(run: WholeRun, project_root: str) -> tuple[PartShare, str] | None:
    """What takes most of the whole run beside its usual steps, and what next to it, in words; None for little."""
    counted = counted_share(run)
    parts = [PartShare(part, min(run.share(part) / counted, 1.0)) for part in _TAKES]
    parts.append(PartShare("compiling", run.compiling_share))
    named = [one for one in parts if one.share and one.share >= _least_share(one.part, run)]
    named = sorted(named, key=lambda one: -one.share)[:2]
    return (named[0], " ".join(_words_beside(one, run, project_root) for one in named)) if named else None


def _least_share(part: PartBeside, run: WholeRun) -> float:
    if part in {"checkpoint", "logging"}:
        return _WRITING * (1 - run.share("start")) / counted_share(run)
    return _PLACED if part == "rest" and pause_of(run, part) is not None else _OTHER


def _words_beside(one: PartShare, run: WholeRun, project_root: str) -> str:
    if one.part == "compiling":
        return printable(_compiling_words(run, one.share, project_root))
    times = next(part.times for part in run.parts if part.name == one.part)
    often = f": {times:,} times, {time_text(run.time_ns(one.part) / run.ranks / times)} each" if times > 1 else ""
    pause = pause_of(run, one.part)
    rarer = _RARER[one.part] if max(times, pause.times if pause else 0) > 2 else ""
    share = f"{share_text(one.share, 1)} of the run{' after its start' if counted_share(run) < 1 else ''}"
    place = "" if pause is None else f", most of it at {pause_place(pause, project_root)}"
    return printable(f"{_TAKES[one.part].format(share)}{often}{place}{rarer}.")


def _compiling_words(run: WholeRun, share: float, project_root: str) -> str:
    most = run.compiled[0]
    words = f"Compiling takes {share_text(share, 1)} of the run, most of it at {compiled_place(most, project_root)}"
    if most.times < 2:
        return f"{words}."
    return f"{words}: {most.times:,} times" + (f", the last time since {most.reason}." if most.reason else ".")
