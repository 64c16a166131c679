"""Gives the time of a plain loop's run to its parts, pass by pass over its loaders and step by step.

Time is given to a part as it passes, and moved to another one when it becomes known what it was for. A pass over a
loader is an evaluation if its batches are fetched without gradients, or while a model is in evaluation mode, and no
step ends in between. Without a loader one lasts from `model.eval()` to `model.train()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from deepscope.capture.dynamo import compiled_functions
from deepscope.capture.whole_run.loader_passes import LoaderPass, ModelModes, PassKind, TimeMark
from deepscope.capture.whole_run.run_timer import RunTimer
from deepscope.trace.format.run_account import PauseAccount, RunAccount, RunPartName


class LoopTimer:
    """Begins with the run; learns what the thread does that trains.

    `begins_step`: whether the first step begins here if no loader says when it does. Else it is part of the start.
    """

    def __init__(self, *, begins_step: bool = False) -> None:
        self.timer = RunTimer()
        self._begins_step = begins_step
        self.has_begun = False
        """Whether a step has ended."""
        self._is_first_known = True
        self._is_data_known = False
        self._fetched: list[LoaderPass] = []
        """Those that gave a batch since the last step ended."""
        self._lingering: LoaderPass | None = None
        """An evaluation that may still be at its last batch, which it fetched ahead."""
        self._is_epoch_over = False
        """Its loader is; its last step may still end."""
        self._pause: Literal["", "behind step", "between"] = ""
        """What passes now is a step's if another step ends; behind a step also if its loader goes on."""
        self._pause_from_ns = 0
        self._reported: dict[RunPartName, int] = {}
        """How often a part had come when its end was last reported: several files of a checkpoint are one."""
        self._evaluating_from_ns: int | None = None
        """When the model went into evaluation mode; None if a step, a loader or another part has come since."""
        self._steps_since_evaluating = 0
        self._step_end = TimeMark(self.timer)
        self._modes = ModelModes()
        self._training: LoaderPass | None = None
        """The last pass that steps were made with."""
        self._repeated_data_ns = 0
        if begins_step:
            self._begin_pause("between")

    def account(self, pauses: Sequence[PauseAccount] = ()) -> RunAccount | None:
        """Of the run up to now, which may go on; None without steps, and in a process that was forked.

        `pauses`: where it was while no step ended.
        """
        if not self.timer.has_account:
            return None
        timer = self.timer.copied()
        timer.turn_to("rest")
        for one in self._without_step():
            self._move(timer, one, "rest")
        known: dict[RunPartName, bool] = {
            "data": self._is_data_known,
            "evaluation": timer.has_come("evaluation"),  # without any there may be some that nobody tells of
            "checkpoint": timer.has_come("checkpoint"),
            "logging": timer.has_come("logging"),
        }
        unknown = [name for name, is_known in known.items() if not is_known]
        for name in unknown:
            timer.move(name, "rest", timer.so_far_ns(name))
        compiled = compiled_functions(timer.began_epoch_ns)
        account = timer.account(unknown=unknown, compiled=compiled, pauses=pauses)
        first_step_ns = account.first_step_ns if self._is_first_known else 0
        return replace(account, first_step_ns=first_step_ns, repeated_data_ns=self._repeated_data_ns)

    @property
    def is_evaluating(self) -> bool:
        """Whether what passes is an evaluation's, as far as is known by now."""
        return self._evaluating_from_ns is not None or self.timer.part == "evaluation"

    @property
    def is_between_steps(self) -> bool:
        """Whether no batch has been fetched for training since the last step ended."""
        return self.has_begun and not any(one.kind is PassKind.TRAINING for one in self._fetched)

    def end_step(self) -> None:
        self._steps_since_evaluating += 1
        fetched = self._fetched
        is_as_before = self.has_begun and len(fetched) == 1 and fetched[0].kind is PassKind.TRAINING
        is_known = is_as_before or self._decide(fetched)
        self.timer.turn_to(self._idle)
        if self._pause and is_known:
            self._take_pause()
        if is_known:
            self.timer.count("steps")
        else:
            self._is_first_known = False
        self.has_begun = True
        fetched.clear()
        self._begin_pause("behind step")
        self._step_end.move_to_now()

    def train(self) -> None:
        """Passes that gave batches are for training, though no step ends here."""
        if self.has_begun:
            for one in self._fetched:
                if one.kind is PassKind.UNDECIDED:
                    self._train(one)

    def end_part(self, part: RunPartName) -> None:
        """All that passed since the last step, loader pass or such part was this one."""
        if not self.has_begun or not self._pause:
            return
        self._evaluating_from_ns = None
        self.timer.turn_to("rest")
        self.timer.move("rest", part, self.timer.so_far_ns("rest") - self._pause_from_ns)
        if part != "evaluation":  # its passes are counted
            self.timer.count(part, self._reported.get(part, 0) + 1 - self.timer.times(part))
            self._reported[part] = self.timer.times(part)

    def begin_evaluating(self) -> None:
        """A model went into evaluation mode. Where it does so in each step, that is part of the step."""
        if self.has_begun and self._pause and self._steps_since_evaluating > 1:
            self.timer.turn_to("rest")
            self._evaluating_from_ns = self.timer.so_far_ns("rest")
        self._steps_since_evaluating = 0

    def end_evaluating(self) -> None:
        """It went back into training mode."""
        began_ns, self._evaluating_from_ns = self._evaluating_from_ns, None
        if began_ns is not None:
            self.timer.turn_to("rest")
            self.timer.move("rest", "evaluation", self.timer.so_far_ns("rest") - began_ns)
            self.timer.count("evaluation")

    def begin_training(self) -> LoaderPass:
        """A pass over something begins, all batches of which are steps: the first one is fetched."""
        one = LoaderPass(self.timer)
        one.kind = PassKind.TRAINING
        self._is_data_known = True
        self._keep_epoch()
        self._turn_to("data")
        return one

    def end_training(self, one: LoaderPass) -> None:
        """Such a pass is over, in whatever way."""
        one.is_over, self._is_epoch_over = True, False
        self._fetched[:] = [other for other in self._fetched if other is not one]
        self.timer.turn_to("rest")
        self.timer.keep_epoch()
        self._begin_pause("between")

    def open(self, one: LoaderPass, *, has_gradients: bool) -> None:
        """A loader makes an iterator; `go_on` is to follow."""
        for other in self._without_step():
            self._drop(other)
        self._keep_epoch()
        self._lingering = None
        if has_gradients:
            self._turn_to("data")
        else:
            self._evaluate(one)

    def go_on(self) -> None:
        """With what a loader interrupted: a step, if one has its batch, else with nothing that is known."""
        if any(one.may_train and not one.is_over for one in self._fetched):
            self._turn_to("steps")
        else:
            self._begin_pause("between")

    def fetch(self, one: LoaderPass, *, has_gradients: bool) -> None:
        """The next batch is asked for; `take`, `end_pass` or `go_on` is to follow."""
        if self._is_epoch_over:
            self._keep_epoch()
        self._lingering = None
        if one.kind is PassKind.TRAINING:
            self.end_evaluating()
            is_same_step = self._pause == "behind step"
            self.timer.turn_to("data")
            if is_same_step:
                self._take_pause()
            self._end_pause()
        elif not has_gradients or (one.batches > 0 and self._is_model_evaluating()):
            self._evaluate(one)
        elif one.kind is PassKind.EVALUATION:
            self._turn_to(self._evaluation)
        else:
            if one.kind is PassKind.OTHER:
                one.kind, one.is_over, one.mark = PassKind.UNDECIDED, False, TimeMark(self.timer)
            self._turn_to("data")

    def take(self, one: LoaderPass) -> None:
        """There it is."""
        one.batches += 1
        if one not in self._fetched:
            self._fetched.append(one)
        self._turn_to(self._evaluation if one.kind is PassKind.EVALUATION else "steps")

    def end_pass(self, one: LoaderPass, *, is_ahead: bool = False) -> None:
        """It has given its last batch, which may still be worked on if batches are fetched ahead."""
        one.is_over = True
        if one.kind is PassKind.UNDECIDED and self._is_model_evaluating():
            self._evaluate(one)
        if one.kind is PassKind.EVALUATION:
            self._end_evaluation(one)
            if is_ahead:
                self._lingering = one
            else:
                self.go_on()
        elif one.kind is PassKind.TRAINING and any(other.may_train and other is not one for other in self._fetched):
            self._turn_to("steps")  # another loader gives the epoch its length, and its batch is worked on
        else:
            self._is_epoch_over = self._is_epoch_over or one.kind is PassKind.TRAINING
            if one.kind is PassKind.UNDECIDED and not self.has_begun:
                self.timer.turn_to(self._idle)
                self._drop(one)
            self._begin_pause("between")

    def leave(self, one: LoaderPass) -> None:
        """Nobody can ask for a batch of it any more: it was over before, or the loop was left."""
        was_over, one.is_over = one.is_over, True
        is_evaluation = one.kind is PassKind.EVALUATION
        if was_over or is_evaluation:
            if not was_over:
                self._end_evaluation(one)
            if (one is self._lingering or not was_over) and self.timer.part == self._evaluation:
                self.go_on()
            return
        if one.kind is PassKind.TRAINING and self._pause == "behind step":
            self.timer.turn_to(self._idle)
            self._take_pause()
        is_epoch_over = self._is_epoch_over
        self.end_pass(one)
        if one.batches < 2:  # taken from a loader that is made anew for each step
            self._is_epoch_over = is_epoch_over

    @property
    def _idle(self) -> RunPartName:
        return "rest" if self.has_begun else "start"

    @property
    def _evaluation(self) -> RunPartName:
        return "evaluation" if self.has_begun else "start"

    def _turn_to(self, part: RunPartName) -> None:
        self.timer.turn_to(part)
        self._end_pause()

    def _begin_pause(self, kind: Literal["behind step", "between"]) -> None:
        self.timer.turn_to(self._idle)
        self._pause, self._pause_from_ns = kind, self.timer.so_far_ns(self._idle)
        self._evaluating_from_ns = None

    def _end_pause(self) -> None:
        self._pause, self._evaluating_from_ns = "", None

    def _take_pause(self) -> None:
        """It was a step's, as is known once it is over."""
        self._evaluating_from_ns = None
        self.timer.move(self._idle, "steps", self.timer.so_far_ns(self._idle) - self._pause_from_ns)

    def _decide(self, fetched: list[LoaderPass]) -> bool:
        """A step ends: which passes are training; whether it is known when the step began."""
        training = [one for one in fetched if one.may_train]
        has_begin = bool(training) or (self._begins_step and self._pause == "between")
        training = training or [one for one in fetched if not one.is_over]
        for one in training:
            self._train(one)
        return self.has_begun or has_begin

    def _train(self, one: LoaderPass) -> None:
        """A step has ended with a batch of this pass."""
        if one.kind is PassKind.EVALUATION and self.has_begun:  # it was taken for one: fetched without gradients
            self.timer.turn_to("steps")
            marks = (one.mark, self._step_end)
            self.timer.move("evaluation", "steps", min(mark.evaluation_since_ns for mark in marks))
            self.timer.count("evaluation", -1)
        if one.kind is PassKind.UNDECIDED and one.is_over and one.batches > 1:
            self._is_epoch_over = True
        one.kind = PassKind.TRAINING
        self._training = one
        self._is_data_known = True

    def _evaluate(self, one: LoaderPass) -> None:
        """This pass is an evaluation, from its begin on."""
        self._turn_to(self._evaluation)
        if one.kind is PassKind.EVALUATION:
            return
        one.kind = PassKind.EVALUATION
        one.evaluates_from_ns = self.timer.so_far_ns("evaluation")
        self._move(self.timer, one, self._evaluation)
        if self.has_begun:
            self.timer.count("evaluation")

    def _end_evaluation(self, one: LoaderPass) -> None:
        """Its loader is exhausted, or was left."""
        self.timer.turn_to(self.timer.part)
        if self._training is not None and one.data is not None and one.data is self._training.data:
            self._repeated_data_ns += self.timer.so_far_ns("evaluation") - one.evaluates_from_ns

    def _move(self, timer: RunTimer, one: LoaderPass, part: RunPartName) -> None:
        """What a pass took, of which no step was made."""
        data_ns, steps_ns = one.mark.later(self._step_end).since(timer)
        timer.move("data", part, data_ns)
        timer.move("steps", part, steps_ns)

    def _is_model_evaluating(self) -> bool:
        if not self.has_begun:
            return False
        began_ns = self.timer.now_ns()
        is_evaluating = self._modes.is_evaluating()
        self.timer.give_to_recording(self.timer.now_ns() - began_ns)  # it may go through all objects
        return is_evaluating

    def _without_step(self) -> list[LoaderPass]:
        """Passes that are over, and no step ended behind their batches."""
        fetched = self._fetched
        if any(one.may_train and not one.is_over for one in fetched):
            return []
        return [one for one in fetched if one.kind is PassKind.UNDECIDED]

    def _drop(self, one: LoaderPass) -> None:
        self._move(self.timer, one, self._idle)
        one.kind = PassKind.OTHER
        self._fetched[:] = [other for other in self._fetched if other is not one]

    def _keep_epoch(self) -> None:
        if self._is_epoch_over:
            self._is_epoch_over = False
            self.timer.keep_epoch()
