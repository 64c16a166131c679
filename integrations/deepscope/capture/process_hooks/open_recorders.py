"""Which recorders of this process are open, and whose window is: torch has room for one.

And what each of them does in the user's program: its errors end the recording alone, its own work is no part of the
user's lines, and a forked child goes on without it.
"""

from __future__ import annotations

import os
import threading
import weakref
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from deepscope.capture.notices import error_words, warn
from deepscope.capture.process_hooks.signals import comes_from_handler
from deepscope.errors import DeepScopeError, NestedProfileError


class _Participant(Protocol):
    is_abandoned: Callable[[], bool]
    """Whether nobody will stop it."""

    def fail(self, error: BaseException) -> None: ...
    def stop(self, *, complete: bool = True) -> None: ...


class _Entry(NamedTuple):
    recorder: _Participant
    owner: object
    pid: int


_open: list[_Entry] = []
_holder: object | None = None


def enter(recorder: _Participant, owner: object) -> None:
    """Note that `recorder` is open. An abandoned one of another owner is ended, and saved with what it has.

    Raises `NestedProfileError` while a recorder of another owner is in use.
    """
    _forget_parent_process()
    others = [entry.recorder for entry in _open if entry.owner is not owner]
    if not all(other.is_abandoned() for other in others):
        raise NestedProfileError(
            "a DeepScope recording is already open in this process; stop it before starting another "
            "(one around the other, or deepscope.profile inside a Trainer with profiler='deep')"
        )
    for other in others:
        other.stop(complete=False)
    if others:
        warn("a recording that nobody had stopped ends here, where another one begins; it is saved with what it has")
    _open.append(_Entry(recorder, owner, os.getpid()))


def leave(recorder: object) -> None:
    """Note that `recorder` is open no longer."""
    _open[:] = [entry for entry in _open if entry.recorder is not recorder]
    release(recorder)


def fail(error: BaseException) -> None:
    """Tell the open recorders of an exception that ends the program, before it lets go of what it holds."""
    for entry in tuple(_open):
        if entry.pid == os.getpid():
            entry.recorder.fail(error)


def is_taken(recorder: object) -> bool:
    """Whether another recorder's window is open."""
    return _holder is not None and _holder is not recorder


def take(recorder: object) -> None:
    """Note that `recorder` has its window open."""
    global _holder
    _holder = recorder


def release(recorder: object) -> None:
    """Note that `recorder` has no window open."""
    global _holder
    if _holder is recorder:
        _holder = None


def _forget_parent_process() -> None:
    """After a fork the parent's recorders are not this process's."""
    global _holder
    if any(entry.pid != os.getpid() for entry in _open):
        _open.clear()
        _holder = None


class GiveWay:
    """Calls `give_way` before a torch profiler of the user's starts on this thread, from `watch` to `rest`.

    Torch has room for one recording. A second one takes the first one's place, and scopes that are open then are closed
    in memory that is gone. Torch announces a start to nobody, so the function that it begins with is wrapped, from the
    warm-up of a window to its end. Where torch begins in another way nothing is done.
    """

    def __init__(self, give_way: Callable[[], None]) -> None:
        self.is_giving_way = False
        """While `give_way` runs: the other profiler counts as entered, and torch knows nothing of it yet."""
        self._give_way = give_way
        self._thread = 0
        self._profiler: Any = None
        """Torch's module."""
        self._prepare: Callable[..., Any] = lambda *_, **__: None
        """Its function; kept for a call that another thread had begun as we rested."""
        self._is_watching = False
        self._may_be_another = True

    def watch(self) -> None:
        """Watch from here on; called after our own profiler was prepared."""
        from torch.autograd import profiler

        self._thread = threading.get_ident()
        if hasattr(profiler, "_prepare_profiler"):
            self._profiler, self._prepare = profiler, profiler._prepare_profiler
            profiler._prepare_profiler = self
            self._is_watching, self._may_be_another = True, False

    @property
    def may_be_another(self) -> bool:
        """Whether a profiler may have come up since `watch`: one has on another thread, or nobody would have told."""
        return self._may_be_another or (self._is_watching and not self._is_in_place)

    @property
    def _is_in_place(self) -> bool:
        return self._profiler._prepare_profiler is self

    def rest(self) -> None:
        """Watch no longer; safe to call twice."""
        if not self._is_watching:
            return
        self._may_be_another = self.may_be_another
        if self._is_in_place:
            self._profiler._prepare_profiler = self._prepare
        self._is_watching = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in for torch's `_prepare_profiler`."""
        if threading.get_ident() != self._thread:
            self._may_be_another = True
        elif self._is_watching:
            self.rest()
            self.is_giving_way = True
            try:
                self._give_way()
            finally:
                self.is_giving_way = False
        return self._prepare(*args, **kwargs)


class _Fallible(Protocol):
    def _give_up(self) -> None: ...


Part = TypeVar("Part")


def guarded(method: Callable[..., None]) -> Callable[..., None]:
    """Let an exception of `method` end the recording with one warning instead of reaching the caller."""

    @wraps(method)
    def call(self: _Fallible, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the training goes on
            end_with(error, self)

    return call


def end_with(error: Exception, owner: _Fallible) -> None:
    """End the recording of `owner` with one warning of an exception that was caught; raise what a handler raised."""
    if comes_from_handler(error):
        raise error
    with suppress(Exception):  # the first error is the one to tell
        owner._give_up()
    if isinstance(error, DeepScopeError):
        warn(f"recording stopped: {error}")
    else:
        warn("recording stopped", error)


def known_or(otherwise: Part, what: str, find: Callable[[], Part], notes: list[str]) -> Part:
    """What `find` returns; where it raises, `otherwise` and a note that the trace is without `what`."""
    try:
        return find()
    except Exception as error:
        if comes_from_handler(error):
            raise
        notes.append(f"this trace is without {what}: {error_words(error)}")
        return otherwise


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class OwnWorkWatcher(Protocol):
    """Whoever records lines; is called on the thread that does the work, once for work within other work.

    Must not raise.
    """

    def begin_own_work(self) -> None:
        """It begins."""

    def end_own_work(self) -> None:
        """It has ended."""


own_work_watchers: list[OwnWorkWatcher] = []
_depths: dict[int, int] = {}
"""By thread: functions of own work that run within each other."""


def is_at_own_work() -> bool:
    """Whether DeepScope is at its own work on this thread."""
    return get_ident() in _depths


def own_work(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make all that `function` does DeepScope's own work: no part of the user's line that it happens in.

    While it goes on no hook of lines sees it, and marks in the recording tell how long it took.
    """

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        thread = get_ident()
        depth = _depths.get(thread, 0)
        _depths[thread] = depth + 1
        if not depth:
            for one in own_work_watchers:
                one.begin_own_work()
        try:
            return function(*args, **kwargs)
        finally:
            if depth:
                _depths[thread] = depth
            else:
                del _depths[thread]
                for one in own_work_watchers:
                    one.end_own_work()

    return call


class Abandoned(Protocol):
    """Something with hooks, which a forked child inherits."""

    def abandon(self) -> None:
        """In a forked child, where nobody records: take the hooks out and end nothing."""


Open = TypeVar("Open", bound=Abandoned)


def abandoned_in_children() -> weakref.WeakSet[Open]:
    """A set for what is open; a forked child abandons all that is in it, and begins with an empty one."""
    opened: weakref.WeakSet[Open] = weakref.WeakSet()

    def after_fork() -> None:
        for one in list(opened):
            one.abandon()
        opened.clear()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=after_fork)
    return opened
