"""Arguments of distributions that torch checks each time (docs/findings/DS048.md)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import by_line, distinct
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.same_work import computed_again_ns
from deepscope.records import Finding
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64

WORTH = 0.02
"""Of the wall time, all lines together."""
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
    return found if found.total() >= max(WORTH * facts.wall_ns, 1) else Counter()


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


def _find(facts: Facts) -> Iterator[Finding]:
    spent = checked_ns(facts)
    if not spent:
        return
    elsewhere = f" and at {len(spent) - 1} more line{'s' * (len(spent) > 2)}" if len(spent) > 1 else ""
    yield RULE.finding(
        facts,
        location=spent.most_common(1)[0][0],
        message=f"torch checks what distributions are given here{elsewhere}, and reads the answers",
        evidence={"checks_ns": spent.total(), "lines": len(spent)},
        saving_ns=spent.total(),
        remedy=NO_CHECKS,
    )


RULE = Rule("DS048", "Checks of distributions", _find, measured_on=("cpu",))
