"""`with profiler.profile(action)`: what Lightning enters some forty times in a batch."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from deepscope.lightning.on_demand import OnDemandStage
from deepscope.lightning.stages import StageWindows


class _Profiler(Protocol):
    """Who is told of the actions."""

    _current: StageWindows | OnDemandStage | None

    def start(self, action_name: str) -> None: ...
    def stop(self, action_name: str) -> None: ...
    def fail(self, action_name: str, error: BaseException) -> None: ...


class Profiled:
    """`with profiler.profile(action)`; one object for each action, for some forty are entered in a batch."""

    __slots__ = ("_action_name", "_annotation", "_profiler")

    def __init__(self, profiler: _Profiler, action_name: str, annotation: str) -> None:
        self._profiler = profiler
        self._action_name = action_name
        self._annotation = annotation

    def __enter__(self) -> str:
        self._profiler.start(self._action_name)
        return self._action_name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._profiler.fail(self._action_name, error)
        self._profiler.stop(self._action_name)


class Annotated(Profiled):
    """An action that says nothing of batches: outside the windows it costs next to nothing."""

    __slots__ = ()

    def __enter__(self) -> str:
        if (current := self._profiler._current) is not None:
            current.push(self._annotation)
        return self._action_name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._profiler.fail(self._action_name, error)
        if (current := self._profiler._current) is not None:
            current.pop(self._annotation)
