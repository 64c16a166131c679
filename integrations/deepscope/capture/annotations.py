"""Named spans in the trace, none of which outlives the window it was opened in."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from os import getpid

from torch.profiler import record_function

from deepscope.capture.lines.scopes import Pair, keep_forever, make_pair
from deepscope.trace.format.span_names import annotation_name


class Annotations:
    """The spans that are open in one window, on the thread that opened it; elsewhere, as in a forked child, none is.

    A span that is open when torch's profiler stops, and ends during a later recording, corrupts torch's heap. So
    `close_all` ends whatever is open before the window ends, and later ends of the same spans do nothing. A span is
    noted before it is opened and forgotten after it is closed, since Ctrl-C may arrive in between.

    What Lightning's actions go through is inline: on Python 3.11 each call in a window costs one of the trace function.
    """

    def __init__(self) -> None:
        self._place = get_ident(), getpid()
        self._numbers: dict[str, int] = {}
        self._open: list[tuple[str, Pair, list[Pair]]] = []
        self._light: dict[str, list[Pair]] = {}

    @property
    def names(self) -> dict[str, str]:
        """What each span is called in torch's recording → what it stands for."""
        return {annotation_name(number): name for name, number in self._numbers.items()}

    def push(self, name: str) -> None:
        """Open a span that the devices' timelines get, too."""
        if (get_ident(), getpid()) == self._place:
            self._enter(name, _heavy(annotation_name(self._number(name))))

    def push_step(self, name: str) -> None:
        """As `push`, for a name in ASCII that torch's recording is to have as it is."""
        if (get_ident(), getpid()) == self._place:
            self._enter(name, _heavy(name))

    def push_light(self, name: str) -> None:
        """Open a span of the CPU's timeline, at a tenth of the cost: there may be dozens in a step."""
        if (get_ident(), getpid()) == self._place:
            idle = self._light.get(name)
            if idle is None:
                idle = self._light[name] = []
            pair = idle.pop() if idle else make_pair(annotation_name(self._number(name)))
            self._open.append((name, pair, idle))
            pair[0]()

    def pop(self, name: str) -> None:
        """End the span opened last under `name`; where there is none this does nothing."""
        if (get_ident(), getpid()) != self._place:
            return
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == name:
                self._exit(index)
                return

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A span around a block."""
        self.push(name)
        try:
            yield
        finally:
            self.pop(name)

    def close_all(self) -> None:
        """End every open span, the last one first."""
        while self._open:
            self._exit(-1)

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _enter(self, name: str, pair: Pair) -> None:
        self._open.append((name, pair, []))
        pair[0]()

    def _exit(self, index: int) -> None:
        _, pair, idle = self._open[index]
        try:
            pair[1]()
        except RuntimeError:  # Ctrl-C came between the note and the span
            keep_forever(pair)
        else:
            idle.append(pair)
        del self._open[index]


def warm_up() -> None:
    """Have torch load what the first span of a process needs, 70 ms, before anybody's lines are timed."""
    with record_function("deepscope"):
        pass


def _heavy(name: str) -> Pair:
    span = record_function(name)
    return span.__enter__, lambda: span.__exit__(None, None, None)
