"""DS035: what each step computes, or makes of numbers of Python's, though it is the same in each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from deepscope.analysis.array_ops.intervals import Intervals, covered_by
from deepscope.analysis.findings.audited_work import both_passes_ns, unused_names, unused_ns, usual_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import planned_epochs
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.sliced_calls import is_below, sliced_lines
from deepscope.quantities import bytes_text, count_text
from deepscope.records import Finding
from deepscope.trace.arrays import nearest_to, pick
from deepscope.trace.format.audit import SameWork
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class _Same:
    """What one function does anew."""

    work: SameWork
    lines: set[int]
    """Those that are done in vain with all that they call."""
    runs: Int64
    """Of these lines, none within another; events, ascending."""
    built_ns: int
    """What the runs take."""
    saving_ns: int


def built_anew(facts: Facts) -> Intervals:
    """When lines made the same tensors of numbers of Python's, as far as a finding claims that time."""
    events, worth_ns = facts.trace.events, RULE.worth_ns(facts)
    runs = np.concatenate([np.zeros(0, np.int64), *(one.runs for one in _all(facts) if one.saving_ns >= worth_ns)])
    return covered_by(events, runs)


def computed_again_ns(facts: Facts) -> Counter[int]:
    """By line: what findings claim of the time of operators that compute again what they have computed."""
    found: Counter[int] = Counter()
    for one in _all(facts):
        if one.work.again and one.saving_ns >= RULE.worth_ns(facts):
            found[facts.audited_line(one.work.place)] += one.saving_ns
    return found


def _find(facts: Facts) -> Iterator[Finding]:
    for one in _all(facts):
        names = unused_names(one.work.operators)
        if one.work.of_batch:
            yield from _find_epochs(facts, one)
            continue
        computed = f"from constants or tensors that no step changes: {names}"
        if one.work.built:
            computed = f"of numbers of Python's that do not change{f': {names}' if names else ''}"
        message = f"each step {'makes' if one.work.built else 'computes'} the same here, {computed}"
        if one.work.again:
            message = f"a step computes here what it has computed before, from the same tensors: {names}"
        if one.work.rerun:
            message = (
                "no backward pass goes through this, and a pass that has one computes the same, from the same tensors "
                f"but for updates of parameters: {names}"
            )
        yield from RULE.found_at(
            facts,
            one.work.place,
            takes_ns=one.saving_ns,
            message=message,
            evidence={
                "same_ns": one.saving_ns,
                **({"built_ns": one.built_ns} if one.built_ns else {}),
                "operators_per_step": one.work.unused_calls,
                "result_bytes_per_step": one.work.result_bytes,
            },
            remedy=_remedy(one.work),
        )
    yield from _find_prefixes(facts)


_EPOCH_WORTH = 0.1
"""What each epoch computes anew is named if it takes at least this share of the wall time: it has to be stored."""
_PREFIX_WORTH = 0.05
"""A loop is named if what it computes again takes at least this share of the wall time."""


def _find_epochs(facts: Facts, one: _Same) -> Iterator[Finding]:
    if planned_epochs(facts.trace) == 1 or _loads_at_random(facts):
        return
    stored = f" ({size} for a batch)" if (size := bytes_text(one.work.stored_bytes)) else ""
    yield from RULE.found_at(
        facts,
        one.work.place,
        takes_ns=one.saving_ns,
        worth=_EPOCH_WORTH,
        message="this depends on the batch and on frozen parameters or constants alone "
        f"({unused_names(one.work.operators)}): what it gives for a sample is the same in each epoch",
        evidence={
            "same_ns": one.saving_ns,
            "operators_per_step": one.work.unused_calls,
            "result_bytes_per_step": one.work.result_bytes,
            "stored_bytes_per_step": one.work.stored_bytes,
        },
        remedy="With several epochs compute it once for each sample, before the loop or in the data set's `__init__`, "
        f"and train on what is stored{stored}. Not where samples are changed at random (augmentation).",
        is_bound=True,
    )


_RANDOM = re.compile(
    r"(?:^|[._])(?:rng|generator|random\w*|rand|randn|randint|randperm|uniform|normal|choices?|shuffle|permut\w+|bernoulli)"
    r"(?:$|\.)",
    re.IGNORECASE,
)
"""In a dotted name of what draws random numbers."""


def _loads_at_random(facts: Facts) -> bool:
    """Whether a line of the user's that loads data, here or in a worker, draws random numbers."""
    runs = facts.attribution.runs
    loading = facts.loading.locate(facts.trace.events.start_ns[runs.nodes]) >= 0
    lines = {*runs.location[loading].tolist(), *np.flatnonzero(facts.analysis.columns["worker_ns"][:-1]).tolist()} - {
        -1
    }
    return any(_RANDOM.search(name) for line in lines for name in facts.source(line).uses)


def _find_prefixes(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.prefixes:
        work_ns = both_passes_ns(facts, one)
        yield from RULE.found_at(
            facts,
            one.place,
            takes_ns=int((1 - one.needed) * work_ns),
            worth=_PREFIX_WORTH,
            message=f"a loop calls this {count_text(one.times)} times a step for all that it has so far, "
            f"{one.shortest} to {one.longest} positions, of which {one.needed:.0%} are new",
            evidence={
                "same_ns": int((1 - one.needed) * work_ns),
                "work_ns": work_ns,
                "operators_per_step": one.unused_calls,
            },
            remedy="Compute for the new positions alone: attention with the keys and values of the others kept (a KV "
            "cache; `use_cache=True` in transformers), recurrent layers with their last state.",
            is_bound=True,
        )


def _remedy(work: SameWork) -> str:
    if work.rerun:
        return (
            "Take the result of that pass (`.detach()`): if an optimizer stepped in between, it is older by one step, "
            "which does not matter to a log, a metric or a discriminator."
        )
    if work.again:
        words = (
            "Compute it once in a step, before the loop or the calls that need it, and hand it on; parametrized "
            "weights: `with torch.nn.utils.parametrize.cached():`."
        )
        has_statistics = any("batch_norm" in use.name and use.unused for use in work.operators)
        return f"{words} Batch norms then update their running statistics once." if has_statistics else words
    if work.given:
        return "Compute it once, before the loop, and hand it on; anew only where what it is computed from changes."
    return (
        "Compute it once, where the model is made, and keep it as a buffer "
        "(`register_buffer(…, persistent=False)`); for changing lengths keep the longest and slice it."
    )


def _all(facts: Facts) -> list[_Same]:
    """The largest saving first; what a line calls that is done in vain is a part of that."""
    return facts.once(_apart)


def _apart(facts: Facts) -> list[_Same]:
    found: list[_Same] = []
    sliced = sliced_lines(facts)  # on whole tensors nothing of these is done again
    for one in sorted((_same(facts, work) for work in facts.audit.same), key=lambda same: -same.saving_ns):
        above = {line for other in found for line in other.lines} | (sliced if one.work.again else set())
        if not is_below(facts, facts.audited_line(one.work.place), above):
            found.append(one)
    return found


def _same(facts: Facts, work: SameWork) -> _Same:
    lines = _lines(facts, work)
    runs = _runs(facts, lines)
    step = facts.attribution.training.steps.of(facts.trace.events.start_ns[runs])
    duration_ns = facts.trace.events.duration_ns[runs]
    usual = usual_ns(duration_ns, step) / max(int(duration_ns.sum()), 1)
    built_ns = int(usual * _below_ns(facts, lines)) if lines else 0
    others = [use for use in work.operators if facts.audited_line(use.place) not in lines]
    saving_ns = unused_ns(facts, others, backward=False)
    if work.backward and saving_ns:
        whole_ns = unused_ns(facts, [replace(use, part=1.0) for use in others], backward=False)
        saving_ns += unused_ns(facts, work.backward, backward=True) * saving_ns // whole_ns
    return _Same(work, lines, runs, built_ns, built_ns + saving_ns)


def _lines(facts: Facts, work: SameWork) -> set[int]:
    """The lines that make a tensor, and those of the whole function that returns it and of its calls.

    None with a device, where Python's time saves little.
    """
    built = {facts.audited_line(place) for place in work.built} - {-1}
    built = {line for line in built if facts.source(line).makes_tensor()}
    if facts.has_device or not built or facts.attribution.scopes.source != "scopes":
        return set()
    if not any(facts.source(line).is_returned for line in built):
        return built
    functions = {(one.file, one.function) for one in (facts.locations[line] for line in built)}
    names = frozenset(function.rpartition(".")[2] for _, function in functions)
    callers = {facts.audited_line(place) for place in work.callers} - {-1}
    is_called_alone = bool(callers) and all(facts.source(line).makes_tensor(names) for line in callers)
    if is_called_alone:
        built |= callers  # where the time stands of functions that were too expensive to record by the line
    if is_called_alone or work.whole:
        built |= {line for line, one in enumerate(facts.locations) if (one.file, one.function) in functions}
    return built


def _below_ns(facts: Facts, lines: set[int]) -> int:
    """What these lines take on the CPU with all that they call."""
    group = np.full(facts.lines, -1, np.int64)
    group[sorted(lines)] = 0
    return int(facts.attribution.paths.totals(facts.analysis.by_path, group, 1)[0, 2])


def _runs(facts: Facts, lines: set[int]) -> Int64:
    """The runs of some lines on the training thread that lie in no other of them; events, ascending."""
    runs, events = facts.attribution.runs, facts.trace.events
    here = events.thread[runs.nodes] == facts.attribution.training.thread
    chosen = np.isin(runs.location, sorted(lines)) & here
    rows = np.flatnonzero(chosen)
    rows = rows[nearest_to(pick(runs.caller, rows), runs.caller, chosen) < 0]
    nodes = runs.nodes[rows]
    return np.asarray(nodes[facts.analysis.extent.holds(events.start_ns[nodes])])


RULE = Rule("DS035", "The same work over and over", _find, measured_on=("cpu",))
