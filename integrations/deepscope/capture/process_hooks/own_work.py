"""DeepScope's own work in the middle of the user's step: it is no part of the line that it happens in.

Whoever records lines watches here. While such work goes on no hook sees it, and marks in the recording tell how long it
took.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class OwnWorkWatcher(Protocol):
    """Is called on the thread that the work is done on, once for work within other work; must not raise."""

    def begin_own_work(self) -> None:
        """It begins."""

    def end_own_work(self) -> None:
        """It has ended."""


watchers: list[OwnWorkWatcher] = []
_depths: dict[int, int] = {}
"""By thread: functions set apart that run within each other."""


def is_under_way() -> bool:
    """Whether a function that is set apart runs on this thread."""
    return get_ident() in _depths


def set_apart(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make all that `function` does DeepScope's own work."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        thread = get_ident()
        depth = _depths.get(thread, 0)
        _depths[thread] = depth + 1
        if not depth:
            for one in watchers:
                one.begin_own_work()
        try:
            return function(*args, **kwargs)
        finally:
            if depth:
                _depths[thread] = depth
            else:
                del _depths[thread]
                for one in watchers:
                    one.end_own_work()

    return call
