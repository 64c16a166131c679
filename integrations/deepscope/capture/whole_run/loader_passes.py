"""Passes over data loaders, what each is part of, and whether a model evaluates meanwhile."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Any

from deepscope.capture.whole_run.run_timer import RunTimer


def length_of(loader: Any) -> int | None:
    """How many batches a loader says that it has; None where it does not say."""
    try:
        return len(loader)
    except Exception:  # noqa: BLE001 - TypeError of what has no length; a loader of its own kind raises what it likes
        return None


def _counts_what_it_is_asked(loader: Any) -> bool:
    """Whether a loader warns, once asked for its length, of batches beyond it."""
    from torch.utils.data import IterableDataset

    return isinstance(getattr(loader, "dataset", None), IterableDataset)


class PassKind(Enum):
    """What a pass is part of."""

    UNDECIDED = auto()
    """No step has ended among its batches so far; until then it counts as training."""
    TRAINING = auto()
    EVALUATION = auto()
    OTHER = auto()
    """It is over, and no step was made with it."""


class LoaderPass:
    """From the making of an iterator to its end. Neither the iterator nor its loader is kept alive."""

    def __init__(self, timer: RunTimer, loader: Any = None) -> None:
        self.mark = TimeMark(timer)
        """Where it began."""
        self.kind = PassKind.UNDECIDED
        self.batches = 0
        self.is_over = False
        self.key = 0
        """The iterator's number."""
        self._iterator: weakref.ref[Any] | None = None
        self._loader = None if loader is None else weakref.ref(loader)  # it may go before its iterator
        self.evaluates_from_ns = 0
        """Of the run's evaluations, what had passed before it."""
        self.length = None if loader is None or _counts_what_it_is_asked(loader) else length_of(loader)
        """How many batches its loader says that it has; None where it does not say."""

    @property
    def may_train(self) -> bool:
        """Whether it is training, as far as is known."""
        return self.kind is PassKind.TRAINING or self.kind is PassKind.UNDECIDED

    def goes_over(self, loader: Any) -> bool:
        return self._loader is not None and self._loader() is loader

    @property
    def data(self) -> Any:
        """The data set of its loader; None where that is gone, or has none."""
        with suppress(Exception):  # a loader of its own kind
            return None if self._loader is None else getattr(self._loader(), "dataset", None)
        return None

    def follow(self, iterator: Any, died: Callable[[LoaderPass], None]) -> None:
        """Have `died` called as the iterator goes: a loop that is left by `break` drops it, and tells nobody else."""
        self.key = id(iterator)
        with suppress(TypeError):  # a class of the user's with slots
            self._iterator = weakref.ref(iterator, lambda _: died(self))


class TimeMark:
    """A moment of the run: what passed since then can be moved to another part."""

    def __init__(self, timer: RunTimer) -> None:
        self._timer = timer
        self.move_to_now()

    def move_to_now(self) -> None:
        """The last turn is the moment now."""
        so_far_ns = self._timer.so_far_ns
        self._data_ns, self._steps_ns = so_far_ns("data"), so_far_ns("steps")
        self._evaluation_ns = so_far_ns("evaluation")

    def later(self, other: TimeMark) -> TimeMark:
        return self if self._data_ns + self._steps_ns >= other._data_ns + other._steps_ns else other

    def since(self, timer: RunTimer) -> tuple[int, int]:
        """The wait for data and the time of steps since then; what was moved away is no part of them."""
        data_ns, steps_ns = timer.so_far_ns("data") - self._data_ns, timer.so_far_ns("steps") - self._steps_ns
        return max(data_ns, 0), max(steps_ns, 0)

    @property
    def evaluation_since_ns(self) -> int:
        """The time of evaluations since then."""
        return max(self._timer.so_far_ns("evaluation") - self._evaluation_ns, 0)


_MOST_SCANS = 8
_MOST_MODULES = 64
"""So many modules of an optimizer are looked at."""


class ModelModes:
    """The modules of each optimizer, held weakly."""

    def __init__(self) -> None:
        self._modules: list[list[weakref.ref[Any]]] = []
        self._scans = 0

    def is_evaluating(self) -> bool:
        """Whether all modules of an optimizer are in evaluation mode; False where none is known."""
        groups = self._living()
        if not groups and self._scans < _MOST_SCANS:
            self._scan()
            groups = self._living()
        return any(all(not one.training for one in group) for group in groups)

    def _living(self) -> list[list[Any]]:
        groups = ([one for reference in group if (one := reference()) is not None] for group in self._modules)
        return [group for group in groups if group]

    def _scan(self) -> None:
        """It takes some 30 ms in a program of a million objects."""
        from torch import nn, optim

        from deepscope.capture.process_hooks.live_objects import live_objects

        self._scans += 1
        modules, optimizers = live_objects([nn.Module, optim.Optimizer])
        owners: dict[int, Any] = {}
        for module in modules:
            with suppress(Exception):  # one that is not made to its end
                owners.update((id(one), module) for one in module._parameters.values() if one is not None)
        self._modules = [_owners_of(optimizer, owners) for optimizer in optimizers]


def _owners_of(optimizer: Any, owners: dict[int, Any]) -> list[weakref.ref[Any]]:
    found: dict[int, Any] = {}
    with suppress(Exception):  # an optimizer of the user's own kind
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                module = owners.get(id(parameter))
                if module is not None and len(found) < _MOST_MODULES:
                    found[id(module)] = module
    return [weakref.ref(module) for module in found.values()]
