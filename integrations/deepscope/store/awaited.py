"""The traces of all ranks of one window, waited for while other processes still write them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from deepscope.errors import NoTraceError
from deepscope.store.recognition import FoundTrace, Recognizer
from deepscope.store.runs import Selection, find_traces

_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class AwaitedWindow(Selection):
    """A window, and the ranks that its traces are of."""

    ranks: tuple[int, ...] = ()


def awaited_ranks(
    own: Path, expected: Collection[int], *, timeout_s: float, is_pending: Callable[[Path], bool]
) -> AwaitedWindow:
    """The window that the trace `own` is of, with the traces of all ranks that are in its folder.

    Args:
        own: a whole trace.
        expected: the ranks that are waited for.
        timeout_s: how long; it is extended up to tenfold while `is_pending`.
        is_pending: whether somebody still writes into the folder.

    Raises:
        NoTraceError: `own` is gone.
    """
    recognizer = Recognizer()
    begun = time.monotonic()
    while True:
        window = _window_of(own, recognizer)
        waited_s = time.monotonic() - begun
        is_late = waited_s >= timeout_s * (10 if is_pending(own.parent) else 1)
        if is_late or set(expected) <= {one.identity.rank for one in window}:
            ranks = sorted(window, key=lambda one: -1 if one.identity.rank is None else one.identity.rank)
            return AwaitedWindow(
                files=tuple(one.file for one in ranks),
                stage=ranks[0].identity.stage,
                ranks=tuple(one.identity.rank for one in ranks if one.identity.rank is not None),
            )
        time.sleep(_EVERY_S)


def _window_of(own: Path, recognizer: Recognizer) -> list[FoundTrace]:
    found = find_traces(str(own.parent), recognizer)
    mine = next((one for one in found if Path(one.file.path).name == own.name), None)
    if mine is None:
        raise NoTraceError(f"{own}: the trace is gone")
    is_of_window = [
        one
        for one in found
        if one.run == mine.run
        and (one.identity.stage, one.identity.window) == (mine.identity.stage, mine.identity.window)
    ]
    newest = {one.identity.rank: one for one in reversed(is_of_window)}
    return [*newest.values()]
