"""`DeepScopeCallback` for the `Trainer` of Hugging Face's transformers, and for TRL's trainers, which are Trainers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.trainers.training_run import TrainingRun

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import OptionKeywords


class DeepScopeCallback(TrainingRun, TrainerCallback):  # type: ignore[misc]  # transformers is not followed by mypy
    """`Trainer(callbacks=[DeepScopeCallback()])`: records some optimizer steps of each `train()`.

    A step lasts to `on_step_end`: the Trainer fetches the batches of the next one before `on_step_begin`. Evaluations
    and checkpoints are part of no step. The Trainer tells nobody of an exception: the recording that it leaves open is
    saved at the end of `with DeepScopeCallback() as callback:`, by the next recording, or at the end of the process.

    `folder`: where the traces go; `deepscope_logs` in the Trainer's `output_dir` by default. All else: `TrainingRun`.
    """

    def __init__(
        self, folder: str | Path | None = None, *, filename: str | None = None, **options: Unpack[OptionKeywords]
    ) -> None:
        super().__init__(filename=filename, **options)
        self._folder = folder
        self._is_in_step = False

    def on_train_begin(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        """`train()` is about to ask for the first batch, maybe once more with a smaller one."""
        folder = Path(args.output_dir) / DEFAULT_FOLDER if self._folder is None else Path(self._folder)
        steps = state.max_steps - state.global_step
        self._is_in_step = False
        self.start(folder, total_steps=steps if steps > 0 else None)

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """The batches of the step are there."""
        self._is_in_step = True
        self.resume()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        self._is_in_step = False
        self.end_step()
        self._pause_for(control)

    def on_epoch_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        self._pause_for(control)

    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        """A batch of an evaluation, which a callback may have begun, or which is one of several."""
        if not self._is_in_step:
            self.pause(for_evaluation=True)

    def on_evaluate(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """An evaluation is over, and a checkpoint may follow."""
        self.end_part("evaluation")
        if not control.should_save:
            self.resume()

    def on_log(self, _args: Any, _state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        """Something is logged; that which an evaluation logs is the evaluation's."""
        if "loss" in (logs or {}):
            self.end_part("logging")

    def on_save(self, *_: Any, **__: Any) -> None:
        self.end_part("checkpoint")
        self.resume()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.stop()

    def _pause_for(self, control: Any) -> None:
        if control.should_evaluate or control.should_save or control.should_training_stop:
            self.pause(for_evaluation=control.should_evaluate)
