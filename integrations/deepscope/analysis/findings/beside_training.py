"""What runs beside training: logging in each step, Lightning's sanity check (DS019, DS025)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.findings.already_set import sanity_check
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_text import lines_calling
from deepscope.records import Finding

WORTH = 0.05
"""A line is named if it would save at least this share of the wall time."""
SELDOM = 100
"""One step of so many would still log."""

_OWNERS = r"(?:\w+\.)*(?:log|logger|logging|_log|_logger|LOG|LOGGER|wandb|mlflow|neptune|run|experiment|self\.logger)"
_LOGS = re.compile(
    r"print|pprint|pprint\.pprint"
    rf"|{_OWNERS}\.(?:debug|info|warning|error|log|log_metrics?|log_dict|log_image|log_params?)"
    r"|.+\.(?:add_scalars?|add_histogram|add_images?|add_figure|add_text|add_embedding|set_postfix|set_postfix_str)"
    r"|tqdm\.write|self\.(?:log|log_dict)"
)
_REMEDY = "Log one step of a hundred (`if step % 100 == 0:`), numbers rather than tensors; add sums up in between."
_LIGHTNING = (
    "Log sums at the end of an epoch (`self.log(…, on_step=False, on_epoch=True)`), and `sync_dist=True` there alone: "
    "in a step it waits for all ranks."
)


def logging(facts: Facts) -> Intervals:
    """When the training thread was on lines that log in every step, if that is found."""
    return facts.once(_logging)


def _logging(facts: Facts) -> Intervals:
    places = {(one.file, one.line) for one in LOGGING_LINES.found(facts)}
    line = facts.timeline
    here = np.array([(one.file, one.line) in places for one in facts.locations] + [False])[line.location]
    return union(line.start[here], line.end[here])


def _find_logging_lines(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not facts.lines:
        return
    spent, runs = facts.analysis.columns["self_cpu_ns"][:-1], facts.analysis.columns["calls"][:-1]
    saving = spent - spent // SELDOM
    worth = (saving >= max(WORTH * facts.wall_ns, 1)) & (2 * runs >= max(facts.steps, 2))
    if not worth.any():
        return
    worth &= _by_text(facts, worth)
    for line in np.flatnonzero(worth).tolist():
        yield LOGGING_LINES.finding(
            facts,
            location=line,
            message="the training thread prints or logs in every step, and nothing else goes on meanwhile",
            evidence={
                "logging_ns": int(spent[line]),
                "runs": int(runs[line]),
                "runs_per_step": facts.per_step(int(runs[line])),
            },
            saving_ns=int(saving[line]),
            remedy=_LIGHTNING if "lightning" in facts.trace.header.versions else _REMEDY,
        )


def _by_text(facts: Facts, asked: Mask) -> Mask:
    """Which lines call something that prints or logs, as the files' text says; shape (lines,)."""
    result = np.zeros(facts.lines, np.bool_)
    of_file: dict[str, frozenset[int]] = {}
    for number in np.flatnonzero(asked).tolist():
        place = facts.locations[number]
        if place.file not in of_file:
            of_file[place.file] = lines_calling(facts.trace, place.file, lambda name: bool(_LOGS.fullmatch(name)))
        result[number] = (place.exact or place.fused) and place.line in of_file[place.file]
    return result


LOGGING_LINES = Rule("DS019", "Logging in every step", _find_logging_lines, measured_on=("cpu",))


MUCH = 0.2
"""From this part on it is more than a hint."""


def _find_sanity_check(facts: Facts) -> Iterator[Finding]:
    check_ns, batches = sanity_check(facts.trace)
    header = facts.trace.header
    steps = header.plain_steps or header.recorded_steps
    training_ns = batches * steps.wall.mean_ns if steps is not None else 0
    if not check_ns or not training_ns or facts.analysis.extent.spans is not None:
        return
    ratio = check_ns / (check_ns + training_ns)
    if ratio < WORTH:
        return
    yield SANITY_CHECK.finding(
        facts,
        location=_host(facts),
        message=f"before training begins, the sanity check takes as long as {batches * check_ns // training_ns} of the "
        f"run's {batches} training steps",
        evidence={
            "sanity_check_ns": check_ns,
            "training_ns": training_ns,
            "training_steps": batches,
            "sanity_check_ratio": round(ratio, 3),
        },
        saving_ns=0,
        remedy="Once validation is known to run, make the Trainer with `num_sanity_val_steps=0`.",
        severity="info" if ratio >= MUCH else "hint",
    )


def _host(facts: Facts) -> int:
    """The line that calls `fit`; -1 where it is not known."""
    hosts = facts.attribution.scopes.location[facts.attribution.framework.hosts]
    hosts = hosts[hosts >= 0]
    return int(np.bincount(hosts).argmax()) if len(hosts) else -1


SANITY_CHECK = Rule("DS025", "Sanity check in a short run", _find_sanity_check)
