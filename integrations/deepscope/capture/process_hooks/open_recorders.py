"""Which recorders of this process are open, and whose window is: torch has room for one; SIGTERM saves it.

A scheduler ends a job by SIGTERM. On the main thread, where nobody else has a handler, the window is saved as with
Ctrl-C, and the process then ends by the signal as it would have.
"""

from __future__ import annotations

import functools
import os
import signal
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeVar

from deepscope.capture.notices import error_words, warn
from deepscope.capture.process_hooks.interrupts import comes_from_handler, is_main_thread
from deepscope.errors import DeepScopeError, NestedProfileError

_saves: list[tuple[object, Callable[[], None]]] = []
_pid = 0
_is_ending = False


def keep_at_end(recorder: object, save: Callable[[], None]) -> None:
    """Call `save` when SIGTERM arrives, until `forget`; does nothing where somebody else handles it.

    Several may be kept for one recorder; `forget` ends them all.
    """
    global _pid
    if _is_ending or not is_main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(ValueError, OSError):  # an interpreter that lets no handler be set
            signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        _pid = os.getpid()
        _saves.append((recorder, save))


def forget(recorder: object) -> None:
    """The recorder has ended; after the last one the signal does again what it did before."""
    _saves[:] = [entry for entry in _saves if entry[0] is not recorder]
    if _saves or _is_ending or signal.getsignal(signal.SIGTERM) is not _on_sigterm:
        return
    if is_main_thread():
        _give_back()
    else:
        _give_back_on_main_thread()


def _give_back_on_main_thread() -> None:
    """Python lets no other thread set handlers; the main one does so as soon as it runs Python again."""
    import ctypes

    ctypes.pythonapi.Py_AddPendingCall(_pending_call(), None)


@functools.cache  # it must live until it is called
def _pending_call() -> object:
    import ctypes

    def call(_: object) -> int:
        _give_back()
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)


def _give_back() -> None:
    if not _saves and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        with suppress(ValueError, OSError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, _frame: FrameType | None) -> None:
    global _is_ending
    is_last = (
        signal.getsignal(number) is _on_sigterm
    )  # else a handler that was set later has called this one, and goes on
    if is_last:
        signal.signal(
            number, signal.SIG_DFL
        )  # at first: a second signal ends the process at once, whatever the saving does
    _is_ending = is_last
    saves = list(_saves) if os.getpid() == _pid else []
    _saves.clear()
    for _, save in reversed(saves):
        with suppress(Exception):  # the process ends in any case
            save()
    if is_last:
        os.kill(os.getpid(), number)


def _after_fork() -> None:
    """A child that is told to end does so at once, also from within C where no Python handler would run."""
    global _is_ending
    _is_ending = False
    _saves.clear()
    if is_main_thread():
        _give_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
