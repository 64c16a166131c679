"""The rule that a recorder's own failure costs a warning and never the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Protocol, TypeVar

from deepscope.capture.notices import error_words, warn
from deepscope.capture.process_hooks.interrupts import comes_from_handler
from deepscope.errors import DeepScopeError


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
