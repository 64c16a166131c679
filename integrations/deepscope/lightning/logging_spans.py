"""Spans for what Lightning reports no action of: collecting a step's metrics and giving them to loggers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

_METHODS = (
    "update_train_step_metrics",
    "update_eval_step_metrics",
    "update_train_epoch_metrics",
    "update_eval_epoch_metrics",
    "log_eval_end_metrics",
    "log_metrics",
)
"""Of the Trainer's logger connector, in every Lightning from 2.1 on; what is missing is left alone."""


class LoggingSpans:
    """The methods of one Trainer's logger connector in spans, until `remove`."""

    def __init__(self, trainer: Any, profile: Callable[[str], AbstractContextManager[Any]]) -> None:
        self._connector = getattr(trainer, "_logger_connector", None)
        self._wrapped: list[str] = []
        for name in _METHODS:
            method = getattr(self._connector, name, None)
            if callable(method) and name not in vars(self._connector):
                setattr(self._connector, name, _in_span(method, profile, f"[Logger]{name}"))
                self._wrapped.append(name)

    def remove(self) -> None:
        """Leave the connector as it was."""
        for name in self._wrapped:
            vars(self._connector).pop(name, None)
        self._wrapped.clear()


def _in_span(
    method: Callable[..., Any], profile: Callable[[str], AbstractContextManager[Any]], action: str
) -> Callable[..., Any]:
    @functools.wraps(method)
    def spanned(*args: Any, **kwargs: Any) -> Any:
        with profile(action):
            return method(*args, **kwargs)

    return spanned
