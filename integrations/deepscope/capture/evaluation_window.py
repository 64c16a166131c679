"""Passes over data loaders; a window of its own for an evaluation in a plain loop; whether a model evaluates."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from deepscope.capture.notices import warn
from deepscope.capture.run_timer import RunTimer
from deepscope.errors import DeepScopeError

if TYPE_CHECKING:
    from deepscope.capture.options import RecordingOptions


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


WORTH = 0.2
"""Of the run up to now, which evaluations take from then on."""
WORTH_LOOKING = 0.1
"""The same, where steps are looked at, too."""
STAGE = "validate"


class EvaluationRecorder(Protocol):
    """What is needed of `deepscope.capture.recorder.Recorder`."""

    @property
    def recording(self) -> bool: ...
    @property
    def is_stopped(self) -> bool: ...
    @property
    def is_at_rest(self) -> bool: ...
    @property
    def traces(self) -> list[Path]: ...
    def start(self) -> None: ...
    def step(self) -> None: ...
    def pause(self) -> None: ...
    def stop(self) -> None: ...
    def discard(self) -> None: ...
    def wait(self) -> bool: ...


class EvaluationWindow:
    """Opens once, with a batch of an evaluation; each of its batches is a step.

    Steps behind it that are looked at (`audit`) may be the next evaluation's.
    `make` makes the recorder for a pass over so many batches (None: unknown), of which it takes `batches`; `is_free`
    says whether nothing else is being recorded; `worth` is the share of the run that evaluations have to take.
    """

    def __init__(
        self,
        make: Callable[[int | None], EvaluationRecorder],
        is_free: Callable[[], bool],
        *,
        batches: int = 1,
        worth: float = WORTH,
    ) -> None:
        self._make = make
        self._worth = worth
        self._needed = batches
        self._is_free = is_free
        self._pass: LoaderPass | None = None
        self._recorder: EvaluationRecorder | None = None
        self._batches = 0
        """Those that the pass had before."""
        self._asked: LoaderPass | None = None
        """The last one that had no window."""

    @property
    def is_open(self) -> bool:
        return self._pass is not None

    @property
    def traces(self) -> list[Path]:
        """The file, once it is written."""
        return [] if self._recorder is None else self._recorder.traces

    def next_batch(self, one: LoaderPass, share: float) -> None:
        """An evaluation asks for its next batch; `share` is that of all evaluations, of the run up to now."""
        if self._recorder is None:
            if self._has_room(one) and share >= self._worth and self._is_free():
                self._open(one)
        elif one is self._pass:
            if one.batches != one.length:  # else there is none, and `end` follows
                self._recorder.step()
        elif self._pass is None and self._looks_at_steps and self._is_free():
            self._pass, self._batches = one, one.batches
            self._recorder.step()

    def _has_room(self, one: LoaderPass) -> bool:
        """Whether a pass has as many batches left as are needed, or of fewer all that are left once it is known."""
        left = self._needed if one.length is None else one.length - one.batches
        is_first, self._asked = self._asked is not one, one
        return left >= self._needed or (left > 0 and is_first and one.batches <= 1)

    @property
    def _looks_at_steps(self) -> bool:
        """Whether the window is over, and steps behind it are to be looked at."""
        return self._recorder is not None and self._recorder.is_stopped and not self._recorder.is_at_rest

    def end(self, one: LoaderPass | None = None) -> None:
        """The evaluation has worked on its last batch, or (None) something else goes on by now."""
        if self._pass is None or self._recorder is None or (one is not None and one is not self._pass):
            return
        ended, self._pass = self._pass, None
        if ended.batches == self._batches and not self._recorder.is_stopped:  # it had no more
            self._recorder.discard()
            self._recorder = None
            return
        if one is not None:
            self._recorder.step()
        if self._looks_at_steps:
            self._recorder.pause()
            return
        has_recorded = self._recorder.recording or self._recorder.is_stopped
        self._recorder.stop()
        if not has_recorded:  # it had fewer than it takes to warm up
            self._recorder = None

    def wait(self) -> None:
        """Return once the trace is written; no evaluation follows."""
        if self._recorder is not None:
            if self._looks_at_steps:
                self._recorder.stop()
            self._recorder.wait()

    def _open(self, one: LoaderPass) -> None:
        try:
            recorder = self._recorder = self._make(None if one.length is None else max(one.length - one.batches, 1))
            recorder.start()
        except DeepScopeError as error:
            warn(f"evaluations are not recorded: {error}")
        else:
            self._pass, self._batches = one, one.batches


def at_once(options: RecordingOptions) -> RecordingOptions:
    """A recording's options for a window that begins at once, and does not come again."""
    return replace(options, skip_first=0, wait=0, repeat=1, schedule=None)


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
