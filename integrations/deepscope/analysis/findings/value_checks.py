"""Checks that torch makes of values: of what distributions are given (DS048), of gradients for NaN (DS022)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np
from msgspec.structs import replace

from deepscope.analysis.array_ops.selection import by_line, distinct, named
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.recognised_calls import ASKS_NAN
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.same_work import computed_again_ns
from deepscope.records import Evidence, Finding
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64
from deepscope.trace.names import ACCUMULATES_GRADIENT, evaluates

_CHECKS = re.compile(r"aten::(?:_is_all_true|all|eq|ne|[gl][et]|is_nonzero|item)")
_ANSWERS = re.compile(r"aten::(?:is_nonzero|item)")
_MADE = re.compile(
    r"(?:(?:torch\.)?(?:distributions|dist|D|td)\.)?"
    r"(?:Independent|Normal|MultivariateNormal|LogNormal|(?:OneHot)?Categorical(?:StraightThrough)?|Bernoulli|Beta|Gamma"
    r"|Dirichlet|Laplace|TransformedDistribution|MixtureSameFamily)"
)
_ASKED = re.compile(r".+\.log_prob")
NO_CHECKS = (
    "Turn torch's checks of distributions off where no mistake is sought: at the start "
    "`torch.distributions.Distribution.set_default_validate_args(False)`, or `validate_args=False` each time."
)


def makes_distribution(facts: Facts, line: int) -> bool:
    """Whether a line makes one of torch's distributions, as far as its text is known."""
    return any(map(_MADE.fullmatch, facts.source(line).calls))


def checked_ns(facts: Facts) -> Counter[int]:
    """By line: what the finding claims of its operators' time and of Python's."""
    return facts.once(_checked_ns)


def _checked_ns(facts: Facts) -> Counter[int]:
    if facts.has_device:
        return Counter()
    rows, line = _operators(facts)
    checks, answers = (_named(facts, rows, names) for names in (_CHECKS, _ANSWERS))
    checking = {one for one in set(line[answers].tolist()) - {-1} if _is_checking(facts, one)}
    if not checking:
        return Counter()
    count, checked = (np.bincount(line[one] + 1, minlength=facts.lines + 2)[1:] for one in (line >= -1, checks))
    taken_ns = by_line(line[checks], facts.lines, facts.cost_ns(rows[checks]))
    python_ns = facts.analysis.columns["python_cpu_ns"] * checked // np.maximum(count, 1)
    found = Counter({one: int(taken_ns[one] + python_ns[one]) for one in checking})
    found -= computed_again_ns(facts)  # what is computed again is checked again
    return found if found.total() >= DISTRIBUTION_CHECKS.worth_ns(facts) else Counter()


def _is_checking(facts: Facts, line: int) -> bool:
    """Whether a line makes distributions, or asks them for a probability."""
    return makes_distribution(facts, line) or any(map(_ASKED.fullmatch, facts.source(line).calls))


def _operators(facts: Facts) -> tuple[Int64, Int64]:
    """The outermost operators of the training thread (events, ascending) outside of backward passes; their lines."""
    attribution, events = facts.attribution, facts.trace.events
    rows = attribution.operators.nodes[attribution.operators.caller < 0]
    rows = rows[(events.thread[rows] == attribution.training.thread) & ~attribution.calls.backward[rows]]
    rows = np.sort(rows[facts.analysis.extent.holds(events.start_ns[rows])])
    return rows, pick(attribution.scopes.location, attribution.owners.open_scope[rows])


def _named(facts: Facts, rows: Int64, names: re.Pattern[str]) -> Int64:
    """Those of some events that have such a name; places in `rows`."""
    strings, name = facts.trace.strings, facts.trace.events.name[rows]
    chosen = [one for one in distinct(name, len(strings)) if names.fullmatch(strings[one])]
    return np.flatnonzero(np.isin(name, chosen))


def _find_distribution_checks(facts: Facts) -> Iterator[Finding]:
    spent = checked_ns(facts)
    if not spent:
        return
    elsewhere = f" and at {len(spent) - 1} more line{'s' * (len(spent) > 2)}" if len(spent) > 1 else ""
    yield DISTRIBUTION_CHECKS.finding(
        facts,
        location=spent.most_common(1)[0][0],
        message=f"torch checks what distributions are given here{elsewhere}, and reads the answers",
        evidence={"checks_ns": spent.total(), "lines": len(spent)},
        saving_ns=spent.total(),
        remedy=NO_CHECKS,
    )


DISTRIBUTION_CHECKS = Rule("DS048", "Checks of distributions", _find_distribution_checks, measured_on=("cpu",))


VIEW_NS = 3_000
"""A view that autograd follows takes about this by itself; what it takes more is the stack that is kept for it."""
_VIEWS = frozenset(
    f"aten::{name}"
    for name in ("t", "transpose", "permute", "view", "expand", "select", "slice", "unsqueeze", "squeeze")
)
_SWITCHES = re.compile(r"(?:^|\.)(?:set_)?detect_anomaly$")
_ANOMALY_DETECTION_REMEDY = (
    "Take `torch.autograd.set_detect_anomaly(True)` (or `detect_anomaly()`) out; switch it on to seek a NaN alone."
)
_ANOMALY_DETECTION_LIGHTNING = "Make the Trainer with `detect_anomaly=False`; switch it on to seek a NaN alone."


def _find_anomaly_detection(facts: Facts) -> Iterator[Finding]:
    trace, location = facts.trace, facts.attribution.owners.location
    settings = trace.header.settings
    found = facts.anomaly_checks
    found = found[facts.analysis.extent.holds(trace.events.start_ns[found])]
    if not len(found):
        return
    lengths = trace.events.duration_ns[found]
    checking = by_line(location[found], facts.lines, lengths)
    evidence: Evidence = {
        "checks": int(np.count_nonzero(named(trace, facts.marked(found), ASKS_NAN.__eq__))),
        "checking_ns": int(checking.sum()),
    }
    if facts.has_device:
        # Here the CPU waited, and the device afterwards.
        whole = facts.gaps.checked // facts.devices
        evidence["device_idle_after_ns"] = int(facts.gaps.checked.sum())
    else:
        kept, each_ns = _kept_stacks(facts)
        stacks = by_line(location[kept], facts.lines, np.full(len(kept), each_ns, np.int64))
        whole = checking + stacks
        evidence |= {"stacks": len(kept), "stacks_ns": int(stacks.sum())}
    saving = int(whole.sum())
    if saving < ANOMALY_DETECTION.worth_ns(facts):
        return
    by_trainer = settings is not None and settings.trainer.get("detect_anomaly") is True
    finding = ANOMALY_DETECTION.finding(
        facts,
        location=-1,
        message="autograd looks for anomalies: it keeps a stack for each operator, and seeks NaN in each gradient",
        evidence=evidence,
        saving_ns=saving,
        remedy=_ANOMALY_DETECTION_LIGHTNING if by_trainer else _ANOMALY_DETECTION_REMEDY,
    )
    file, line = facts.texts.only_call("detect_anomaly", _SWITCHES.search)
    yield replace(finding, file=file, line=line)


def _kept_stacks(facts: Facts) -> tuple[Int64, int]:
    """The forward operators (events) that a stack was kept for, and what one costs: the mean of views beyond `VIEW_NS`.

    A view does nothing else, so that its own time is that of the stack, as deep as the program's are. Each node keeps
    one as it is made; the nodes are counted as the backward pass runs them.
    """
    attribution, events, trace = facts.attribution, facts.trace.events, facts.trace
    operators = attribution.operators
    roots = facts.backward_nodes
    gathers = named(trace, facts.marked(roots), partial(evaluates, ACCUMULATES_GRADIENT))
    roots = roots[~gathers[roots] & facts.analysis.extent.holds(events.start_ns[roots])]
    forward = pick(attribution.calls.up, roots)
    forward = forward[forward >= 0]
    forward = forward[~attribution.calls.backward[forward]]
    views = named(trace, facts.marked(forward), _VIEWS.__contains__)[forward]
    own = operators.self_ns[operators.around[forward[views]]]
    return forward, max(int(own.mean()) - VIEW_NS, 0) if len(own) else 0


ANOMALY_DETECTION = Rule("DS022", "Anomaly detection left on", _find_anomaly_detection, measured_on=("cpu",))
