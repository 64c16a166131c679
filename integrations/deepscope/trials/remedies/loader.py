"""Remedies of data loading: workers, pinned memory, workers that live on, batches made ahead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from deepscope.trials.messages import LoaderFacts, ProgramFacts, Settings
from deepscope.trials.remedy import AppliedRemedy, Decision

if TYPE_CHECKING:
    from deepscope.trials.child.hooks import RemedyHooks

MOST_WORKERS = 8
_PREFETCH = 4
_NO_LOADER = "the program iterates over no DataLoader while it trains"


def _workers(facts: ProgramFacts) -> Decision:
    if not facts.loaders:
        return _NO_LOADER
    reasons = [_against_workers(loader, facts) for loader in facts.loaders]
    if all(reasons):
        return reasons[0]
    return {"num_workers": min(MOST_WORKERS, max(1, facts.cores - 1))}


def _against_workers(loader: LoaderFacts, facts: ProgramFacts) -> str:
    """Why a loader can have no workers; "" where it can."""
    reason = ""
    if loader.workers:
        reason = f"the loader has {loader.workers} workers already"
    elif loader.is_iterable and loader.is_sharded:
        reason = f"{loader.dataset} is an IterableDataset: with workers its samples come in another order"
    elif loader.is_iterable:
        reason = f"{loader.dataset} is an IterableDataset without get_worker_info(): each worker would give all of it"
    elif loader.device != "cpu":
        reason = f"{loader.dataset} has tensors on {loader.device}, which workers cannot share"
    elif loader.start_method != "fork" and loader.unpicklable:
        reason = f"workers start by {loader.start_method}, and {loader.unpicklable}"
    elif loader.start_method != "fork" and not facts.is_guarded:
        reason = f'workers start by {loader.start_method}, and the program has no `if __name__ == "__main__":`'
    return reason


def _give_workers(settings: Settings, hooks: RemedyHooks) -> None:
    from torch.utils.data import DataLoader, IterableDataset

    def keywords(given: Mapping[str, Any]) -> Mapping[str, Any]:
        if given.get("num_workers") or isinstance(given.get("dataset"), IterableDataset):
            return {}
        return settings

    hooks.construct_with(DataLoader, keywords)


def _with_workers(facts: ProgramFacts) -> list[LoaderFacts] | str:
    if not facts.loaders:
        return _NO_LOADER
    found = [loader for loader in facts.loaders if loader.workers]
    return found or "the loader has no workers"


def _persistent(facts: ProgramFacts) -> Decision:
    found = _with_workers(facts)
    if isinstance(found, str):
        return found
    if all(loader.persistent_workers for loader in found):
        return "the loader's workers live on already"
    if all(loader.iterators < 2 for loader in found if not loader.persistent_workers):
        return "no second epoch begins within the steps that are run; ask for more with --steps"
    return {}


def _prefetch(facts: ProgramFacts) -> Decision:
    found = _with_workers(facts)
    if isinstance(found, str):
        return found
    if all((loader.prefetch_factor or 0) >= _PREFETCH for loader in found):
        return f"each worker makes {found[0].prefetch_factor} batches ahead already"
    return {"prefetch_factor": _PREFETCH}


def _pin(facts: ProgramFacts) -> Decision:
    if not facts.loaders:
        return _NO_LOADER
    if not facts.has_cuda:
        return "the program uses no CUDA device"
    if all(loader.pin_memory for loader in facts.loaders):
        return "the loader pins its batches already"
    if all(loader.device != "cpu" for loader in facts.loaders):
        return "the batches are on the device already"
    return {}


def _set_with_workers(settings: Settings, hooks: RemedyHooks, **fixed: object) -> None:
    from torch.utils.data import DataLoader

    hooks.construct_with(DataLoader, lambda given: {**settings, **fixed} if given.get("num_workers") else {})


def _set_pinned(_: Settings, hooks: RemedyHooks) -> None:
    from torch.utils.data import DataLoader

    hooks.construct_with(DataLoader, lambda given: {} if given.get("pin_memory") else {"pin_memory": True})


REMEDIES = (
    AppliedRemedy(
        name="loader-workers",
        written="DataLoader(num_workers={num_workers})",
        findings=("DS003", "DS013"),
        decide=_workers,
        apply=_give_workers,
        draws_otherwise=True,
    ),
    AppliedRemedy(
        name="persistent-workers",
        written="DataLoader(persistent_workers=True)",
        findings=("DS021", "DS003"),
        decide=_persistent,
        apply=partial(_set_with_workers, persistent_workers=True),
        draws_otherwise=True,
    ),
    AppliedRemedy(
        name="prefetch",
        written="DataLoader(prefetch_factor={prefetch_factor})",
        findings=("DS003",),
        decide=_prefetch,
        apply=_set_with_workers,
    ),
    AppliedRemedy(
        name="pin-memory",
        written="DataLoader(pin_memory=True)",
        findings=("DS002", "DS003"),
        decide=_pin,
        apply=_set_pinned,
    ),
)
