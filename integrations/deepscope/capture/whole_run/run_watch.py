"""Watches a plain loop's run: its steps, which others report, its data loaders and its checkpoints."""

from __future__ import annotations

import inspect
import sys
import threading
from _thread import get_ident
from collections.abc import Callable
from types import FrameType
from typing import Any

from deepscope.capture import machine_use
from deepscope.capture.lines import UserCode
from deepscope.capture.whole_run.further_windows import EvaluationWindow
from deepscope.capture.whole_run.loader_passes import LoaderPass, ModelModes, PassKind
from deepscope.capture.whole_run.loop_timer import LoopTimer
from deepscope.capture.whole_run.pause_sampler import PauseSampler
from deepscope.capture.whole_run.run_timer import RunTimer
from deepscope.trace.format.run_account import RunAccount, RunPartName


class TrainingThread:
    """The thread that tells of steps first; until then the one that this is made on.

    Of things within each other only the outermost counts: a data set may have loaders of its own.
    """

    def __init__(self) -> None:
        self._number = get_ident()
        self._is_known = False
        self._depth = 0

    @property
    def number(self) -> int:
        return self._number

    @property
    def is_here(self) -> bool:
        return get_ident() == self._number

    @property
    def is_free(self) -> bool:
        """Whether it is the current thread, and nothing goes on there."""
        return not self._depth and get_ident() == self._number

    def adopt(self) -> bool:
        """A step is reported here; whether this is the thread that trains, as also one is that comes after it."""
        if not self.is_here and not (self._is_known and _is_alive(self._number)):
            self._number, self._depth = get_ident(), 0
        is_here = self.is_here
        self._is_known = self._is_known or is_here
        return is_here

    def begin(self) -> bool:
        """Whether what begins here counts."""
        if get_ident() != self._number:
            return False
        self._depth += 1
        return self._depth == 1

    def ends(self) -> bool:
        """Whether what ends here counts; it goes on until `end` then."""
        if get_ident() != self._number or not self._depth:
            return False
        if self._depth == 1:
            return True
        self._depth -= 1
        return False

    def end(self) -> None:
        self._depth = 0


def _is_alive(thread: int) -> bool:
    return any(one.ident == thread for one in threading.enumerate())


class PausedSteps:
    """Pauses what records steps while an evaluation goes on between two of them; one behind each step is part of it."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._is_evaluating = False
        self._is_paused = False
        self._may_pause = False
        self._steps = 0
        """Since the last evaluation."""

    def pause(self) -> None:
        """An evaluation goes on."""
        self._is_evaluating = True
        if self._may_pause and not self._is_paused:
            self._is_paused = True
            self._pause()

    def resume(self) -> None:
        """None goes on any more."""
        if self._is_evaluating:
            self._is_evaluating = False
            self._steps = 0
        if self._is_paused:
            self._is_paused = False
            self._resume()

    def end_step(self) -> None:
        self.resume()
        self._steps += 1
        self._may_pause = self._steps > 1


_BATCHES_WITHOUT_STEP = 6
"""A loader has given so many, and there was no step: the program evaluates."""

_HELPERS = (EvaluationWindow, LoaderPass, LoopTimer, ModelModes, PausedSteps, RunTimer, TrainingThread)


class RunWatch:
    """Begins with the run. Steps are reported by `end_step`, on the thread that reports first; `listen` sees the rest.

    `begins_step`: whether the first step begins here if no loader says when it does. Else it is part of the start.
    """

    def __init__(self, *, begins_step: bool = False) -> None:
        self._loop = LoopTimer(begins_step=begins_step)
        self._thread = TrainingThread()
        self._passes: dict[int, LoaderPass] = {}
        """By the number of the iterator, as long as that lives."""
        self._opening: LoaderPass | None = None
        self._dead: list[LoaderPass] = []
        """Their iterators went while something else was going on."""
        self._has_gradients: Callable[[], bool] = lambda: True
        self._is_evaluation_next = False
        self._leave: Callable[[], None] | None = None
        self.evaluations: EvaluationWindow | None = None
        """What records one of them; None where none is to be recorded."""
        self.without_steps: Callable[[], EvaluationWindow | None] | None = None
        """What makes one for a loader's batches where no step is made; None where nobody wants it."""
        self.paused: PausedSteps | None = None
        """What records the steps; None where it goes on during evaluations."""
        self._is_lost = False
        self._pauses: PauseSampler | None = None

    def listen(self) -> RunWatch:
        """See the process's data loaders and checkpoints from here on; imports torch."""
        import torch

        from deepscope.capture.dynamo import hide_modules
        from deepscope.capture.process_hooks import run_events

        hide_modules([machine_use, *(sys.modules[kind.__module__] for kind in (RunWatch, *_HELPERS))])
        self._has_gradients = torch.is_grad_enabled
        self._leave = run_events.listen(self)
        self._pauses = PauseSampler(self._loop.timer, lambda: self._thread.number, UserCode.find())
        self._pauses.start()
        return self

    def close(self) -> None:
        self._end_evaluation()
        if self._pauses is not None:
            self._pauses.stop()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def give_up(self) -> None:
        """Something went wrong: there is no account."""
        self._is_lost = True

    def account(self) -> RunAccount | None:
        """Of the run up to now, which may go on; None without steps, and in a process that was forked."""
        return None if self._is_lost else self._loop.account(self._pauses.account() if self._pauses else ())

    @property
    def steps_ns(self) -> int:
        """What all steps took up to now, with their data, and what lies between them and is nothing that is known."""
        timer = self._loop.timer
        return timer.so_far_ns("steps") + timer.so_far_ns("data") + timer.so_far_ns("rest")

    @property
    def is_evaluation_open(self) -> bool:
        return self.evaluations is not None and self.evaluations.is_open

    def give_to_recording(self, time_ns: int) -> None:
        """So much of what passes now was the recorder's work."""
        if self._thread.is_here:
            self._loop.timer.give_to_recording(time_ns)

    def end_step(self) -> None:
        if self._thread.adopt() and self._thread.is_free:
            self._thread.begin()
            self._settle_dead()
            self._loop.end_step()
            self._end_evaluation()
            if self.paused is not None:
                self.paused.end_step()
            self._thread.end()

    def train(self) -> None:
        """Another optimizer than the one that ends steps has made one."""
        if self._thread.is_free:
            self._loop.train()

    def expect_evaluation(self, *, is_next: bool) -> None:
        """Whether loaders that are asked from here on are an evaluation's, as the program tells."""
        self._is_evaluation_next = is_next

    def end_part(self, part: RunPartName) -> None:
        """Something beside the steps has ended: it had all since the last step, evaluation or such part."""
        if self._thread.is_free:
            self._loop.end_part(part)

    def count_steps(self, steps: int) -> None:
        """So many steps have ended that nobody reported; their time is in that of the others."""
        if steps and self._thread.is_free:
            self._loop.timer.count("steps", steps)

    def open_pass(self) -> LoaderPass | None:
        """A pass over something begins, all batches of which are steps; `fetched` is to follow.

        None on another thread than that which trains.
        """
        return self._loop.begin_training() if self._thread.adopt() and self._thread.begin() else None

    def end_pass(self, one: LoaderPass | None) -> None:
        """Such a pass is over, in whatever way."""
        if one is not None and self._thread.is_here:
            self._loop.end_training(one)
            self._thread.end()

    # What `run_events` tells, as `RunListener` says, and `Recording.iterate` of the passes that it opened.

    def opening(self, loader: Any) -> None:
        if not self._thread.begin():
            return
        self._settle_dead()
        for one in list(self._passes.values()):
            if not one.is_over and one.goes_over(loader):
                self._loop.leave(one)
        self._opening = LoaderPass(self._loop.timer, loader)
        is_between = self._loop.is_between_steps
        self._loop.open(self._opening, has_gradients=self._may_train())
        self._pause_steps(is_between=is_between)

    def opened(self, _loader: Any, iterator: Any) -> None:
        if self._thread.ends():
            one, self._opening = self._opening, None
            if one is not None:
                self._passes[id(iterator)] = one
                one.follow(iterator, self._died)
                self._loop.go_on()
            self._thread.end()

    def fetching(self, iterator: Any) -> None:
        if self._thread.begin():
            self._settle_dead()
            one = iterator if isinstance(iterator, LoaderPass) else self._pass_of(iterator)
            is_between = self._loop.is_between_steps
            self._loop.fetch(one, has_gradients=self._may_train())
            if self.paused is not None:
                if one.kind is PassKind.TRAINING:
                    self.paused.resume()
                self._pause_steps(is_between=is_between)
            if not self._loop.has_begun and one.batches == _BATCHES_WITHOUT_STEP and self.without_steps is not None:
                self.evaluations, self.without_steps = self.without_steps(), None
            if self.evaluations is not None and (one.kind is PassKind.EVALUATION or not self._loop.has_begun):
                began_ns = self._loop.timer.now_ns()
                share = self._loop.timer.share("evaluation") if self._loop.has_begun else 1
                self.evaluations.next_batch(one, share)
                self._give_since(began_ns)

    def fetched(self, iterator: Any) -> None:
        if self._thread.ends():
            one = iterator if isinstance(iterator, LoaderPass) else self._passes.get(id(iterator))
            if one is not None:
                self._loop.take(one)
            self._thread.end()

    def exhausted(self, iterator: Any) -> None:
        if self._thread.ends():
            one = self._passes.get(id(iterator))
            if one is not None:
                self._loop.end_pass(one, is_ahead=_is_generator(sys._getframe(1)))
                self._end_evaluation(one)
                self._resume_steps()
            self._thread.end()

    def failed(self) -> None:
        if self._thread.ends():
            self._opening = None
            self._loop.go_on()
            self._thread.end()

    def saving(self) -> None:
        if self._thread.begin():
            self._loop.timer.begin("checkpoint")

    def saved(self) -> None:
        if self._thread.ends():
            self._loop.timer.end("checkpoint")
            self._thread.end()

    def evaluating(self) -> None:
        if self._thread.is_free:
            self._loop.begin_evaluating()
            self._pause_steps(is_between=self._loop.is_between_steps)

    def training(self) -> None:
        if self._thread.is_free:
            self._loop.end_evaluating()
            self._resume_steps()

    def _may_train(self) -> bool:
        return not self._is_evaluation_next and self._has_gradients()

    def _end_evaluation(self, one: LoaderPass | None = None) -> None:
        if self.evaluations is not None and self.evaluations.is_open:
            began_ns = self._loop.timer.now_ns()
            self.evaluations.end(one)
            self._give_since(began_ns)

    def _pause_steps(self, *, is_between: bool) -> None:
        if self.paused is not None and is_between and self._loop.is_evaluating:
            self.paused.pause()

    def _resume_steps(self) -> None:
        if self.paused is not None and not self._loop.is_evaluating:
            self.paused.resume()

    def _give_since(self, began_ns: int) -> None:
        self._loop.timer.give_to_recording(self._loop.timer.now_ns() - began_ns)

    def _pass_of(self, iterator: Any) -> LoaderPass:
        one = self._passes.get(id(iterator))
        if one is None:  # made before the watch began, or on another thread
            one = self._passes[id(iterator)] = LoaderPass(self._loop.timer)
            one.follow(iterator, self._died)
        return one

    def _died(self, one: LoaderPass) -> None:
        """The iterator is no more; at any moment, and on any thread."""
        if self._passes.get(one.key) is one:
            self._passes.pop(one.key, None)
        if self._thread.is_free:
            self._thread.begin()
            self._loop.leave(one)
            self._resume_steps()
            self._thread.end()
        else:
            self._dead.append(one)

    def _settle_dead(self) -> None:
        while self._dead:
            self._loop.leave(self._dead.pop())


def _is_generator(frame: FrameType | None) -> bool:
    """Whether a generator asked for the batch: then it may have one that it fetched ahead."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("deepscope."):
        frame = frame.f_back
    return frame is not None and bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
