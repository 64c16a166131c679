"""Who is told when an optimizer has stepped.

torch goes through its own dict of hooks while it calls them, and raises into the user's step where one of them adds or
removes another. So torch has one hook of DeepScope's while anybody listens, and who listens stands in a list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from deepscope.capture.dynamo import hide_modules, undisturbed

Listener = Callable[..., None]

_listeners: list[Listener] = []
_hook: Any = None


def listen(listener: Listener) -> Callable[[], None]:
    """Have `listener(optimizer, …)` called after each step of any optimizer, until what is returned is called.

    Outside a step the first to come and the last to go change torch's hooks; whoever is there over all of a program's
    steps (`deepscope run`) lets others come and go within one.
    """
    global _hook
    entry: Listener = partial(listener)  # one of its own, however often the same one listens
    if not _listeners:
        hide_modules([sys.modules[__name__]])
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


def _tell(*args: Any) -> None:
    for listener in tuple(_listeners):
        undisturbed(listener, *args)


# As torch.compiler.disable marks a function, which would import dynamo. A step that is compiled is then a graph break
# here, after its last operator; otherwise dynamo would run the recorder as it traces, and compile it.
_tell._torchdynamo_disable = True  # type: ignore[attr-defined]
