"""Remedies that are one switch of torch: threads, precision of products, cuDNN, anomaly and deterministic mode."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from deepscope.trials.messages import ProgramFacts, Settings
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.hooks import RemedyHooks

TF32_ROUNDING = 2.0**-11
"""TF32 has ten bits behind the point."""


def _thread_a_core(facts: ProgramFacts) -> Decision:
    workers = max((loader.workers for loader in facts.loaders), default=0)
    free = max(1, facts.cores - workers)
    if facts.threads == free:
        beside = f" beside {workers} workers" if workers else ""
        return f"there are {free} threads for {facts.cores} cores{beside} already"
    return {"threads": free}


def _hold(setter: str, settings: Settings, hooks: RemedyHooks) -> None:
    """Hold a function of torch's at what is set; at False where nothing is."""
    import torch

    hooks.hold(torch, setter, next(iter(settings.values()), False))


def _tf32(facts: ProgramFacts) -> Decision:
    if not facts.has_tf32:
        return "the program uses no device that multiplies in TF32"
    if facts.matmul_precision != "highest":
        return f"float32 products have the precision {facts.matmul_precision!r} already"
    return {"precision": "high"}


def _benchmark(facts: ProgramFacts) -> Decision:
    if not facts.has_cuda:
        return "the program uses no CUDA device"
    if not any(module.has_convolutions for module in facts.modules):
        return "the model has no 2-D convolutions"
    if facts.cudnn_benchmark:
        return "cuDNN's benchmark is on already"
    return {}


def _set_benchmark(_: Settings, hooks: RemedyHooks) -> None:
    import torch

    def on() -> None:
        torch.backends.cudnn.benchmark = True

    hooks.repeat(on)


def _checks(facts: ProgramFacts) -> Decision:
    return {} if facts.checks_distributions else "the arguments of distributions are not checked, or there are none"


def _no_checks(_: Settings, hooks: RemedyHooks) -> None:
    from torch.distributions import Distribution

    hooks.hold(Distribution, "set_default_validate_args", False)


def _not_deterministic(_: Settings, hooks: RemedyHooks) -> None:
    import torch

    def off() -> None:
        torch.backends.cudnn.deterministic = False

    hooks.hold(torch, "use_deterministic_algorithms", False)
    hooks.repeat(off)


REMEDIES = (
    AppliedRemedy(
        name="threads",
        written="torch.set_num_threads({threads})",
        findings=("DS029", "DS039", "DS003"),
        decide=_thread_a_core,
        apply=partial(_hold, "set_num_threads"),
        clashes=frozenset({"one-thread"}),
    ),
    AppliedRemedy(
        name="one-thread",
        written="torch.set_num_threads({threads})",
        findings=("DS007", "DS029", "DS039"),
        decide=lambda facts: "there is one thread already" if facts.threads == 1 else {"threads": 1},
        apply=partial(_hold, "set_num_threads"),
        clashes=frozenset({"threads"}),
    ),
    AppliedRemedy(
        name="anomaly-off",
        written="torch.autograd.set_detect_anomaly(False)",
        findings=("DS022",),
        decide=lambda facts: {} if facts.has_anomaly_detection else "anomaly detection is off",
        apply=partial(_hold, "set_anomaly_enabled"),
    ),
    AppliedRemedy(
        name="no-argument-checks",
        written="torch.distributions.Distribution.set_default_validate_args(False)",
        findings=("DS048",),
        decide=_checks,
        apply=_no_checks,
    ),
    AppliedRemedy(
        name="deterministic-off",
        written="torch.use_deterministic_algorithms(False)",
        decide=lambda facts: {} if facts.is_deterministic else "deterministic algorithms are not asked for",
        apply=_not_deterministic,
    ),
    AppliedRemedy(
        name="matmul-precision",
        written='torch.set_float32_matmul_precision("{precision}")',
        findings=("DS006",),
        decide=_tf32,
        apply=partial(_hold, "set_float32_matmul_precision"),
        rounding=TF32_ROUNDING,
    ),
    AppliedRemedy(
        name="cudnn-benchmark",
        written="torch.backends.cudnn.benchmark = True",
        decide=_benchmark,
        apply=_set_benchmark,
    ),
)
