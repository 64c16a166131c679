"""Remedies of optimizers: all parameters in one step, gradients set to None."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deepscope.trials.messages import ProgramFacts, Settings
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.hooks import RemedyHooks


def _fused(facts: ProgramFacts) -> Decision:
    takers = [one for one in facts.optimizers if one.takes_fused]
    if not takers:
        return f"{_kinds(facts)} has no fused form"
    if all(one.fused for one in takers):
        return "the optimizer is fused already"
    return {}


def _foreach(facts: ProgramFacts) -> Decision:
    takers = [one for one in facts.optimizers if one.takes_foreach]
    if not takers:
        return f"{_kinds(facts)} has no foreach form"
    if all(one.fused for one in takers):
        return "the optimizer is fused, which goes further"
    if all(one.foreach or (one.foreach is None and one.device == "cuda") for one in takers):
        return "the optimizer takes foreach already"
    return {}


def _kinds(facts: ProgramFacts) -> str:
    return ", ".join(dict.fromkeys(one.kind for one in facts.optimizers)) or "the optimizer"


def _construct(option: str, _: Settings, hooks: RemedyHooks) -> None:
    """Have every optimizer of torch's that knows the option take it, and say why where it refuses."""
    import torch

    kinds: list[Any] = [one for one in vars(torch.optim).values() if isinstance(one, type)]
    for kind in kinds:
        if option not in inspect.signature(kind.__init__).parameters:
            continue
        hooks.construct_with(kind, functools.partial(_with_option, option))
        kind.__init__ = _refusing(kind.__init__, hooks)


def _with_option(option: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The option, and the one that excludes it off; `params` may be a generator, which lives through one reading."""
    if given.get(option):
        return {}
    other = "foreach" if option == "fused" else "fused"
    return {option: True, **({other: None} if given.get(other) else {})}


def _refusing(begin: Callable[..., None], hooks: RemedyHooks) -> Callable[..., None]:
    @functools.wraps(begin)
    def begun(*arguments: Any, **keywords: Any) -> None:
        try:
            begin(*arguments, **keywords)
        except (RuntimeError, ValueError) as error:
            hooks.refuse(f"torch says: {error}")
            raise

    return begun


def _zero_to_none(_: Settings, hooks: RemedyHooks) -> None:
    import torch

    for kind in (torch.optim.Optimizer, torch.nn.Module):
        kind.zero_grad = _to_none(kind.zero_grad)
    hooks.is_applied = True


def _to_none(zero: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(zero)
    def to_none(self_: Any, set_to_none: bool = True) -> None:
        del set_to_none
        zero(self_, set_to_none=True)

    return to_none


REMEDIES = (
    AppliedRemedy(
        name="fused-optimizer",
        written="fused=True in the optimizer",
        findings=("DS011",),
        decide=_fused,
        apply=functools.partial(_construct, "fused"),
        clashes=frozenset({"foreach-optimizer"}),
    ),
    AppliedRemedy(
        name="foreach-optimizer",
        written="foreach=True in the optimizer",
        findings=("DS011",),
        decide=_foreach,
        apply=functools.partial(_construct, "foreach"),
        clashes=frozenset({"fused-optimizer"}),
    ),
    AppliedRemedy(
        name="zero-grad-to-none",
        written="zero_grad(set_to_none=True)",
        findings=("DS009",),
        decide=lambda facts: {} if facts.zeroes_in_place else "gradients are set to None already",
        apply=_zero_to_none,
    ),
)
