"""Remedies of `DistributedDataParallel`: a graph that stays the same, larger buckets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from deepscope.trials.messages import DistributedFacts, ProgramFacts, Settings
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.program import Hands

_BUCKET_MB = 100
_DEFAULT_MB = 25


def _wrapped(facts: ProgramFacts) -> DistributedFacts | str:
    return facts.distributed or "the program makes no DistributedDataParallel"


def _static(facts: ProgramFacts) -> Decision:
    found = _wrapped(facts)
    if isinstance(found, str):
        return found
    return "the graph is static already" if found.static_graph else {}


def _buckets(facts: ProgramFacts) -> Decision:
    found = _wrapped(facts)
    if isinstance(found, str):
        return found
    if found.ranks == 1:
        return "there is one rank, so nothing is sent"
    size = found.bucket_cap_mb or _DEFAULT_MB
    return f"buckets have {size:g} MB already" if size >= _BUCKET_MB else {"bucket_cap_mb": _BUCKET_MB}


def _set(settings: Settings, hands: Hands, **fixed: object) -> None:
    from torch.nn.parallel import DistributedDataParallel

    hands.construct_with(DistributedDataParallel, lambda _: {**settings, **fixed})


REMEDIES = (
    AppliedRemedy(
        name="static-graph",
        written="DistributedDataParallel(static_graph=True)",
        findings=("DS014", "DS016"),
        decide=_static,
        apply=partial(_set, static_graph=True),
    ),
    AppliedRemedy(
        name="larger-buckets",
        written="DistributedDataParallel(bucket_cap_mb={bucket_cap_mb})",
        findings=("DS014", "DS015"),
        decide=_buckets,
        apply=_set,
    ),
)
