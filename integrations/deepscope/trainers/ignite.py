"""`attach` for PyTorch-Ignite: records iterations of an `Engine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ignite.engine import Events

from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.trainers.training_run import TrainingRun

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import OptionKeywords


def attach(
    engine: Any,
    folder: str | Path = DEFAULT_FOLDER,
    *,
    evaluators: Iterable[Any] = (),
    filename: str | None = None,
    **options: Unpack[OptionKeywords],
) -> EngineRecording:
    """Record some iterations of each run of the engine that trains, until `detach`.

    Args:
        engine: the one that trains.
        folder: where the traces go.
        evaluators: engines whose runs are evaluations, and part of no step.
        filename: first part of the traces' names, or a template of them.
        **options: as for `deepscope.profile`; the schedule is wait=1, warmup=1, active=3 unless given.

    Raises:
        OptionError: an option does not exist or has a value that cannot be used.
    """
    return EngineRecording(engine, Path(folder), evaluators, filename=filename, **options)


class EngineRecording(TrainingRun):
    """What `attach` gives: the handlers of one engine and of its evaluators."""

    def __init__(
        self,
        engine: Any,
        folder: Path,
        evaluators: Iterable[Any],
        *,
        filename: str | None,
        **options: Unpack[OptionKeywords],
    ) -> None:
        super().__init__(filename=filename, **options)
        self._engine = engine
        self._folder = folder
        self._iterations = 0
        """Those whose steps have ended."""
        self._handlers: list[Any] = []
        self._on(engine, Events.STARTED, self._begin)
        self._on(engine, Events.ITERATION_COMPLETED, self._count)
        self._on(engine, Events.EXCEPTION_RAISED, self._raised)
        self._on(engine, Events.TERMINATE | Events.COMPLETED, self.stop)
        for evaluator in evaluators:
            self._on(evaluator, Events.STARTED, self._begin_evaluation)
            self._on(evaluator, Events.TERMINATE | Events.COMPLETED, self._end_evaluation)

    def detach(self) -> None:
        """End a run that goes on, and take the handlers off the engines."""
        self.stop(complete=False)
        handlers, self._handlers = self._handlers, []
        for handler in handlers:
            handler.remove()

    def _on(self, engine: Any, event: Any, handler: Callable[..., None]) -> None:
        self._handlers.append(engine.add_event_handler(event, handler))

    def _begin(self) -> None:
        state = self._engine.state
        self._iterations = state.iteration
        self.start(self._folder, total_steps=_iterations_left(state))

    def _count(self) -> None:
        """An iteration is completed; handlers that come before this one may have had an evaluation since."""
        if self._iterations != self._engine.state.iteration:
            self._iterations = self._engine.state.iteration
            self.end_step()

    def _begin_evaluation(self) -> None:
        last = self._engine.last_event_name
        if last == Events.ITERATION_COMPLETED:
            self._count()
        if last in {Events.ITERATION_COMPLETED, Events.EPOCH_STARTED, Events.EPOCH_COMPLETED}:
            self.pause(for_evaluation=True)

    def _end_evaluation(self) -> None:
        self.end_part("evaluation")
        self.resume()

    def _raised(self, error: BaseException) -> None:
        """Ignite raises an exception only where nobody handles it: other handlers than this one may."""
        self.fail(error)
        if len(self._engine._event_handlers[Events.EXCEPTION_RAISED]) == 1:
            raise error


def _iterations_left(state: Any) -> int | None:
    """How many iterations a run that begins now is to have; None where that is unknown."""
    if state.max_iters is not None:
        total = state.max_iters
    elif state.max_epochs is not None and state.epoch_length is not None:
        total = state.max_epochs * state.epoch_length
    else:
        return None
    return max(int(total - state.iteration), 0) or None
