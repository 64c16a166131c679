"""Who is told when an optimizer has stepped, or in a program without any, when a backward pass has ended.

torch goes through its own dict of hooks while it calls them, and raises into the user's step where one of them adds or
removes another. So torch has one hook of DeepScope's while anybody listens, and who listens stands in a list.
"""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from deepscope.capture import torch_compat
from deepscope.capture.dynamo import hide_modules, undisturbed
from deepscope.capture.process_hooks import open_recorders
from deepscope.capture.process_hooks.live_objects import live_objects
from deepscope.capture.process_hooks.open_recorders import own_work

Listener = Callable[..., None]

_listeners: list[Listener] = []
_hook: Any = None
_PASSES = 4
"""With so many backward passes and no optimizer, a program changes its parameters itself."""


class BackwardPasses:
    """Stands for the optimizer of a program that has none: each of its backward passes ends a step."""

    param_groups = ()

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._count = 0
        self._take_out = torch_compat.watch_backward(self._around)

    def leave(self) -> None:
        """There is an optimizer, or nobody listens any more."""
        self._take_out()
        self._listener = _ignore

    def _around(self, _results: Any, *settings: Any) -> Callable[[], None]:
        makes_graph = len(settings) > 2 and settings[2]  # a derivative that the forward pass goes on with
        return _ignore if makes_graph or torch_compat.is_within_pass() else self._passed

    @own_work
    def _passed(self) -> None:
        self._count += 1
        if self._count == _PASSES and live_objects([Optimizer])[0]:
            self.leave()  # it steps once its gradients are summed up
        elif self._count >= _PASSES:
            undisturbed(self._listener, self)


def _ignore(*_: Any) -> None:
    """Nobody listens."""


def listen_to_steps(listener: Listener) -> Callable[[], None]:
    """As `listen`; in a program without optimizers `listener(BackwardPasses)` is called behind each backward pass."""
    passes = BackwardPasses(listener)

    def stepped(*args: Any) -> None:
        passes.leave()
        listener(*args)

    leave = listen(stepped)

    def leave_both() -> None:
        leave()
        passes.leave()

    return leave_both


def listen(listener: Listener) -> Callable[[], None]:
    """Have `listener(optimizer, …)` called after each step of any optimizer, until what is returned is called.

    Outside a step the first to come and the last to go change torch's hooks; whoever is there over all of a program's
    steps (`deepscope run`) lets others come and go within one.
    """
    global _hook
    entry: Listener = partial(listener)  # one of its own, however often the same one listens
    if not _listeners:
        hide_modules([sys.modules[__name__], open_recorders])
        _hook = register_optimizer_step_post_hook(_tell)
    _listeners.append(entry)

    def leave() -> None:
        global _hook
        if any(one is entry for one in _listeners):
            _listeners[:] = [one for one in _listeners if one is not entry]
            if not _listeners and _hook is not None:
                _hook.remove()
                _hook = None

    return leave


_threads_within: list[int] = []
"""Those that tell of a step."""


def is_within_step() -> bool:
    """Whether a step's listeners are being called on this thread: torch's own span of that step is still open."""
    return get_ident() in _threads_within


@own_work
def _tell(*args: Any) -> None:
    thread = get_ident()
    _threads_within.append(thread)
    try:
        for listener in tuple(_listeners):
            undisturbed(listener, *args)
    finally:
        _threads_within.remove(thread)


# As torch.compiler.disable marks a function, which would import dynamo. A step that is compiled is then a graph break
# here, after its last operator; otherwise dynamo would run the recorder as it traces, and compile it.
_tell._torchdynamo_disable = True  # type: ignore[attr-defined]


_FOLLOWERS = 64
"""After so many steps of other optimizers, and none of the leading one, another one leads."""


class LeadingOptimizer:
    """Held weakly: a program may train one model after the other."""

    def __init__(self) -> None:
        self._leader: Callable[[], Any] = lambda: None
        self._others = 0
        self._most_others = 0
        """Between two steps of the one that leads."""
        self.missed = 0
        """Steps before this one that were the program's, too, as is known since another one leads."""

    def leads(self, optimizer: Any, *, may_change: bool = True) -> bool:
        """Whether the step that `optimizer` has made is one of the program's."""
        if self._leader() is optimizer:
            self._most_others = max(self._most_others, self._others)
            self._others = self.missed = 0
            return True
        self._others += 1
        if self._leader() is None or (self._others >= _FOLLOWERS and may_change):
            self._leader = weakref.ref(optimizer)
            self.missed, self._others, self._most_others = self._others - 1, 0, 0
            return True
        return False

    @property
    def missed_at_end(self) -> int:
        """Steps behind the last one of the leader, if they are more than those of others that come between its own."""
        return self._others if self._others > 2 * self._most_others + 1 else 0
