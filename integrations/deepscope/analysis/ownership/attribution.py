"""A trace with everything joined: who called whom, and which line owns each event and each piece of work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deepscope.analysis.ownership.calls import CallForest, join_backward, nest
from deepscope.analysis.ownership.compiled import find_fused
from deepscope.analysis.ownership.framework import FrameworkSpans, find_framework
from deepscope.analysis.ownership.locations import Scopes, find_scopes
from deepscope.analysis.ownership.owned_work import OwnedWork, owned
from deepscope.analysis.ownership.owners import LineRuns, Operators, Owners, find_operators, find_owners, find_runs
from deepscope.analysis.ownership.paths import PathBuilder, PathTable
from deepscope.analysis.ownership.training import Training, find_training
from deepscope.analysis.ownership.work import find_work
from deepscope.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Attribution:
    """What analyses start from. Each takes the parts that it needs."""

    trace: Trace
    operators: Operators
    scopes: Scopes
    training: Training
    calls: CallForest
    owners: Owners
    work: OwnedWork
    runs: LineRuns
    paths: PathTable
    """The paths of `owners`, `work` and `runs`."""
    framework: FrameworkSpans


def attribute(trace: Trace) -> Attribution:
    """Finds the owner of everything in a trace.

    A kernel gets its line in four steps: the call that launched it (`find_work`), what called that (`join_backward`),
    the line around (`find_owners`), and from the call to its work (`owned`). Compiled kernels go on from there to the
    lines that they were fused from (`find_fused`).
    """
    nested = nest(trace)
    operators = find_operators(trace, nested.parent)
    scopes = find_scopes(trace, nested.parent)
    work = find_work(trace, operators)
    training = find_training(trace, nested.parent, work.node)
    calls = join_backward(trace, nested, scopes.marks, training.thread)
    paths = PathBuilder()
    owners = find_owners(trace, scopes, calls, paths)
    compiled = find_fused(trace, nested.parent, work, scopes.locations)
    done = owned(work, calls, owners, training.steps, paths, compiled=compiled)
    return Attribution(
        trace=trace,
        operators=operators,
        scopes=replace(scopes, locations=compiled.locations_of(done.location[~done.shared])),
        training=training,
        calls=calls,
        owners=owners,
        work=done,
        runs=find_runs(scopes, calls, owners, paths),
        paths=paths.table(),
        framework=find_framework(trace, scopes.marks, nested.parent),
    )
