"""A torch profiler of the user's goes before ours, which can end until just before the other one starts.

Torch has room for one recording. A second one takes the first one's place, and scopes that are open then are closed in
memory that is gone. Torch announces a start to nobody, so the function that it begins with is wrapped, from the warm-up
of a window to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch


class GiveWay:
    """Calls `give_way` before another profiler starts on this thread, from `watch` to `rest`; does nothing where torch
    begins in another way."""

    def __init__(self, give_way: Callable[[], None]) -> None:
        self.is_giving_way = False
        """While `give_way` runs: the other profiler counts as entered, and torch knows nothing of it yet."""
        self._give_way = give_way
        self._thread = 0
        self._original: Callable[..., Any] | None = None
        self._may_be_another = True

    def watch(self) -> None:
        """Watch from here on; called after our own profiler was prepared."""
        self._thread = threading.get_ident()
        self._original = getattr(torch.autograd.profiler, "_prepare_profiler", None)
        if self._original is not None:
            torch.autograd.profiler._prepare_profiler = self
            self._may_be_another = False

    @property
    def may_be_another(self) -> bool:
        """Whether a profiler may have come up since `watch`: one has on another thread, or nobody would have told."""
        return self._may_be_another or (self._original is not None and not self._is_in_place)

    @property
    def _is_in_place(self) -> bool:
        return torch.autograd.profiler._prepare_profiler is self

    def rest(self) -> None:
        """Watch no longer; safe to call twice."""
        if self._original is None:
            return
        self._may_be_another = self.may_be_another
        if self._is_in_place:
            torch.autograd.profiler._prepare_profiler = self._original
        self._original = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in for torch's `_prepare_profiler`."""
        original = self._original or _prepare
        if threading.get_ident() != self._thread:
            self._may_be_another = True
        elif self._original is not None:
            self.rest()
            self.is_giving_way = True
            try:
                self._give_way()
            finally:
                self.is_giving_way = False
        return original(*args, **kwargs)


_prepare: Callable[..., Any] = getattr(torch.autograd.profiler, "_prepare_profiler", lambda *_, **__: None)
"""Torch's own, for a call that another thread had begun as we rested."""
