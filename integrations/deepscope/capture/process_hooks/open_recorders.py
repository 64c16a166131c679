"""Which recorders of this process are open, and whose window is: torch has room for one."""

from __future__ import annotations

import os
import weakref
from typing import NamedTuple, Protocol, TypeVar

from deepscope.capture.notices import warn
from deepscope.errors import NestedProfileError


class _Participant(Protocol):
    @property
    def is_abandoned(self) -> bool: ...
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
    if not all(other.is_abandoned for other in others):
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
