"""Inductor's provenance level: at 0, its default, it forgets which lines a kernel was made from.

Level 2 keeps the stack of each kernel's nodes. Generated code is the same but for comments. The level is part of the
key of inductor's cache, so that a program's first run with it compiles once more. It is held as long as there is a
recording to come or under way, and put back then. Nothing here imports torch: inductor alone takes seconds.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any

LEVEL = 2
"""Inductor's "basic". Level 1 keeps the nodes' whole history, too, and takes longer to compile."""

_VARIABLE = "INDUCTOR_PROVENANCE"
_DEBUG = "TORCH_COMPILE_DEBUG"
_CONFIG = "torch._inductor.config"
_OPTION = "trace.provenance_tracking_level"

_holds = 0
_own_variable = False
"""Whether the environment's variable is ours."""
_own_level = False
"""Whether the level in inductor's configuration is ours."""


class ProvenanceHold:
    """Has graphs that are compiled from `take` to `release` know their lines; takes at once.

    Several may be held, and a user's own choice of a level is left alone. One that is dropped without `release` is
    released then.
    """

    def __init__(self) -> None:
        self._end: Any = None
        self.take()

    def take(self) -> None:
        """Hold, unless this is held already."""
        if self._end is None or not self._end.alive:
            self._end = weakref.finalize(self, _released)
            self._end.atexit = False
            _taken()

    def release(self) -> None:
        """Hold no longer; safe to call twice."""
        self._end()


def _taken() -> None:
    global _holds, _own_variable, _own_level
    _holds += 1
    config = sys.modules.get(_CONFIG)
    if config is not None:
        if _level(config) == 0:
            _set_level(config, LEVEL)
            _own_level = True
    elif not _own_variable and _VARIABLE not in os.environ and _DEBUG not in os.environ:
        os.environ[_VARIABLE] = str(LEVEL)
        _own_variable = True


def _released() -> None:
    global _holds, _own_variable, _own_level
    _holds -= 1
    if _holds:
        return
    config = sys.modules.get(_CONFIG)
    if config is not None and (_own_level or _own_variable) and _level(config) == LEVEL:
        _set_level(config, 0)
    if _own_variable and os.environ.get(_VARIABLE) == str(LEVEL):
        del os.environ[_VARIABLE]
    _own_variable = _own_level = False


def _level(config: Any) -> int | None:
    """The level now; None where this torch has none (before 2.9)."""
    return getattr(getattr(config, "trace", None), "provenance_tracking_level", None)


def _set_level(config: Any, level: int) -> None:
    """Sets it for all threads: an assignment holds for one (autograd compiles backward graphs on a thread of its own).

    Inductor keeps what stands in the code, or in the environment, apart from what was assigned.
    """
    entry: Any = getattr(config, "_config", {}).get(_OPTION)
    if hasattr(entry, "default"):
        entry.default = level
    if _level(config) != level:
        config.trace.provenance_tracking_level = level
