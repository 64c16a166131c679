"""Remedies that are one switch of torch: threads, precision of products, cuDNN, anomaly and deterministic mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepscope.trials.messages import ProgramFacts, Settings
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.program import Hands

TF32_ROUNDING = 2.0**-11
"""TF32 has ten bits behind the point."""


def _thread_a_core(facts: ProgramFacts) -> Decision:
    workers = max((loader.workers for loader in facts.loaders), default=0)
    free = max(1, facts.cores - workers)
    if facts.threads == free:
        beside = f" beside {workers} workers" if workers else ""
        return f"there are {free} threads for {facts.cores} cores{beside} already"
    return {"threads": free}


def _one_thread(facts: ProgramFacts) -> Decision:
    if facts.threads == 1:
        return "there is one thread already"
    return {"threads": 1}


def _set_threads(settings: Settings, hands: Hands) -> None:
    import torch

    hands.hold(torch, "set_num_threads", lambda setter: setter(settings["threads"]))


def _tf32(facts: ProgramFacts) -> Decision:
    if not facts.has_tf32:
        return "the program uses no device that multiplies in TF32"
    if facts.matmul_precision != "highest":
        return f"float32 products have the precision {facts.matmul_precision!r} already"
    return {"precision": "high"}


def _set_precision(settings: Settings, hands: Hands) -> None:
    import torch

    hands.hold(torch, "set_float32_matmul_precision", lambda setter: setter(settings["precision"]))


def _benchmark(facts: ProgramFacts) -> Decision:
    if not facts.has_cuda:
        return "the program uses no CUDA device"
    if not any(module.has_convolutions for module in facts.modules):
        return "the model has no 2-D convolutions"
    if facts.cudnn_benchmark:
        return "cuDNN's benchmark is on already"
    return {}


def _set_benchmark(settings: Settings, hands: Hands) -> None:
    del settings
    import torch

    def on() -> None:
        torch.backends.cudnn.benchmark = True

    on()
    hands.while_warming(on)
    hands.applied()


def _anomaly(facts: ProgramFacts) -> Decision:
    return {} if facts.has_anomaly_detection else "anomaly detection is off"


def _no_anomaly(settings: Settings, hands: Hands) -> None:
    del settings
    import torch

    hands.hold(torch, "set_anomaly_enabled", lambda setter: setter(False))


def _checks(facts: ProgramFacts) -> Decision:
    return {} if facts.checks_distributions else "the arguments of distributions are not checked, or there are none"


def _no_checks(settings: Settings, hands: Hands) -> None:
    del settings
    from torch.distributions import Distribution

    hands.hold(Distribution, "set_default_validate_args", lambda setter: setter(False))


def _deterministic(facts: ProgramFacts) -> Decision:
    return {} if facts.is_deterministic else "deterministic algorithms are not asked for"


def _not_deterministic(settings: Settings, hands: Hands) -> None:
    del settings
    import torch

    def off() -> None:
        torch.backends.cudnn.deterministic = False

    def setting(setter: Any) -> None:
        setter(False)

    hands.hold(torch, "use_deterministic_algorithms", setting)
    off()
    hands.while_warming(off)


REMEDIES = (
    AppliedRemedy(
        name="threads",
        written="torch.set_num_threads({threads})",
        findings=("DS029", "DS039", "DS003"),
        decide=_thread_a_core,
        apply=_set_threads,
        clashes=frozenset({"one-thread"}),
    ),
    AppliedRemedy(
        name="one-thread",
        written="torch.set_num_threads({threads})",
        findings=("DS007", "DS029", "DS039"),
        decide=_one_thread,
        apply=_set_threads,
        clashes=frozenset({"threads"}),
    ),
    AppliedRemedy(
        name="anomaly-off",
        written="torch.autograd.set_detect_anomaly(False)",
        findings=("DS022",),
        decide=_anomaly,
        apply=_no_anomaly,
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
        decide=_deterministic,
        apply=_not_deterministic,
    ),
    AppliedRemedy(
        name="matmul-precision",
        written='torch.set_float32_matmul_precision("{precision}")',
        findings=("DS006",),
        decide=_tf32,
        apply=_set_precision,
        rounding=TF32_ROUNDING,
    ),
    AppliedRemedy(
        name="cudnn-benchmark",
        written="torch.backends.cudnn.benchmark = True",
        decide=_benchmark,
        apply=_set_benchmark,
    ),
)
