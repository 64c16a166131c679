"""What is watched beside training: logs and metrics, and Lightning's sanity check (DS019, DS025)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask, by_line, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import calls_of_package, sanity_check
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind

FRAMEWORK_WORTH = 0.03
"""Loggers and monitors of a Trainer are named from here on: it prepares for them, too."""
SELDOM = 100
"""One step of so many would still log."""

_OWNERS = r"(?:\w+\.)*(?:log|logger|logging|_log|_logger|LOG|LOGGER|wandb|mlflow|neptune|run|experiment|self\.logger)"
_LOGS = re.compile(
    r"print|pprint|pprint\.pprint"
    rf"|{_OWNERS}\.(?:debug|info|warning|error|log|log_metrics?|log_dict|log_image|log_params?)"
    r"|.+\.(?:add_scalars?|add_histogram|add_images?|add_figure|add_text|add_embedding|set_postfix|set_postfix_str)"
    r"|tqdm\.write|self\.(?:log|log_dict)"
)
_LOG_SELDOM = "Log one step of a hundred (`if step % 100 == 0:`), numbers rather than tensors; add sums up in between."
_IN_LIGHTNING = re.compile(r"self\.(?:log|log_dict)")
_COMPUTES = re.compile(r".+\.compute")
_COMPUTE_ONCE = (
    "`compute()` goes through all that the metric has gathered: give `self.log` the metric itself, with "
    "`on_step=False, on_epoch=True`, which computes it once an epoch."
)
_METRIC_REMEDY = (
    "Call `metric.update(…)` in steps, which gathers alone, and `metric.compute()` once an epoch (Lightning: "
    "`self.log(name, metric, on_step=False, on_epoch=True)` does so); the batch's value every N steps."
)
_LOG_SELDOM_IN_LIGHTNING = (
    "Log sums at the end of an epoch (`self.log(…, on_step=False, on_epoch=True)`), and `sync_dist=True` there alone: "
    "in a step it waits for all ranks."
)


def logging(facts: Facts) -> Intervals:
    """When the training thread was on lines that log in every step, if that is found."""
    return facts.once(_logging)


def _logging(facts: Facts) -> Intervals:
    places = {(one.file, one.line) for one in LOGGING_LINES.found(facts) if "logging_ns" in one.evidence}
    line = facts.timeline
    here = np.array([(one.file, one.line) in places for one in facts.locations] + [False])[line.location]
    return union(line.start[here], line.end[here])


def _find_logging_lines(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not facts.lines:
        return
    spent, runs = facts.analysis.columns["self_cpu_ns"][:-1], facts.analysis.columns["calls"][:-1]
    saving = spent - spent // SELDOM
    worth = (saving >= LOGGING_LINES.worth_ns(facts)) & (2 * runs >= max(facts.steps, 2))
    if not worth.any():
        return
    worth &= _by_text(facts, worth)
    for line in np.flatnonzero(worth).tolist():
        source = facts.source(line)
        calls = source.calls
        by_lightning, computes = any(map(_IN_LIGHTNING.fullmatch, calls)), any(map(_COMPUTES.fullmatch, calls))
        if by_lightning and source.gives_keyword("on_step", False):
            continue
        yield LOGGING_LINES.finding(
            facts,
            location=line,
            message="the training thread prints or logs in every step, and nothing else goes on meanwhile",
            evidence={
                "logging_ns": int(spent[line]),
                **facts.counted("runs", int(runs[line])),
            },
            saving_ns=int(saving[line]),
            remedy=_remedy(by_lightning=by_lightning, computes=computes),
            is_bound=by_lightning and not computes,  # what it gathers for the epoch takes time, too
        )


_MONITOR = re.compile(r"callback (\w*(?:Monitor|Stats|ProgressBar|Logger)\w*)")
_LOGS_OF_LIGHTNING = "logging"
_TRAINERS = re.compile(r"(?:^|\.)Trainer$")


def _find_framework_logs(facts: Facts) -> Iterator[Finding]:
    """Loggers and monitors of Lightning that work in every step; their spans are in traces of a `DeepProfiler`."""
    if facts.has_device:
        return
    spans, start = facts.attribution.framework, facts.trace.events.start_ns
    spent = facts.analysis.framework.ns.sum(axis=0)
    steps = facts.attribution.training.steps.of(start[spans.nodes])
    for number, part in enumerate(spans.parts):
        monitor = _MONITOR.fullmatch(part)
        often = len(set(steps[(spans.part == number) & (steps >= 0)].tolist()))
        saving = int(spent[number]) - int(spent[number]) // SELDOM
        is_one = monitor is not None or part == _LOGS_OF_LIGHTNING
        if not is_one or saving < max(FRAMEWORK_WORTH * facts.wall_ns, 1) or 2 * often < max(facts.steps, 2):
            continue
        finding = LOGGING_LINES.finding(
            facts,
            location=-1,
            message=f"{f'callback {monitor[1]}' if monitor else 'the logger'} of the Trainer works in every step",
            evidence={"monitor_ns": int(spent[number]), "part": part},
            saving_ns=saving,
            remedy=f"Take {monitor[1]} out of the Trainer's `callbacks`, or have it work in fewer steps."
            if monitor
            else "Let it write one step of many: `Trainer(log_every_n_steps=…)`.",
            is_bound=True,
        )
        file, line = facts.texts.only_call("Trainer", _TRAINERS.search)
        yield replace(finding, file=file, line=line)


def _find_metrics(facts: Facts) -> Iterator[Finding]:
    """Metrics of torchmetrics that are called as modules: that computes the batch's value, too."""
    if facts.has_device or not facts.lines:
        return
    chosen = calls_of_package(facts, "torchmetrics")
    if not chosen.any():
        return
    calls = facts.topmost(chosen & of_kind(facts.trace, Kind.MODULE_SCOPE))
    calls = calls[facts.analysis.extent.holds(facts.trace.events.start_ns[calls])]
    line = pick(facts.attribution.scopes.location, pick(facts.attribution.owners.open_scope, calls))
    spent, runs = by_line(line, facts.lines, facts.cost_ns(calls))[:-1], by_line(line, facts.lines)[:-1]
    worth = (spent // 2 >= LOGGING_LINES.worth_ns(facts)) & (2 * runs >= max(facts.steps, 2))
    for number in np.flatnonzero(worth).tolist():
        yield LOGGING_LINES.finding(
            facts,
            location=number,
            message="a metric computes its value for each batch, besides gathering what the epoch's value needs",
            evidence={
                "metric_ns": int(spent[number]),
                **facts.counted("runs", int(runs[number])),
            },
            saving_ns=int(spent[number]) // 2,
            remedy=_METRIC_REMEDY,
            is_bound=True,
        )


def _remedy(*, by_lightning: bool, computes: bool) -> str:
    if by_lightning:
        return _COMPUTE_ONCE if computes else _LOG_SELDOM_IN_LIGHTNING
    return _LOG_SELDOM


def _by_text(facts: Facts, asked: Mask) -> Mask:
    """Which lines call something that prints or logs, as the files' text says; shape (lines,)."""
    result = np.zeros(facts.lines, np.bool_)
    of_file: dict[str, frozenset[int]] = {}
    for number in np.flatnonzero(asked).tolist():
        place = facts.locations[number]
        if place.file not in of_file:
            of_file[place.file] = facts.texts.file(place.file).lines_calling(_LOGS.fullmatch)
        result[number] = (place.exact or place.fused) and place.line in of_file[place.file]
    return result


def _find_logging(facts: Facts) -> Iterator[Finding]:
    yield from _find_logging_lines(facts)
    yield from _find_framework_logs(facts)
    yield from _find_metrics(facts)


LOGGING_LINES = Rule("DS019", "Logs and metrics in every step", _find_logging, measured_on=("cpu",), worth=0.05)


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
    if ratio < SANITY_CHECK.worth:
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


SANITY_CHECK = Rule("DS025", "Sanity check in a short run", _find_sanity_check, worth=0.05)
