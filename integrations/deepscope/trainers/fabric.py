"""`FabricCallback` for Lightning Fabric, whose loops call what they have named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.trainers.training_run import TrainingRun

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import OptionKeywords


class FabricCallback(TrainingRun):
    """`Fabric(callbacks=[FabricCallback()])`: each `fabric.call("on_train_batch_end")` ends a step.

    The other hooks have the names of Lightning's, and a loop calls those that it likes: the recording begins with
    `on_train_start`, else behind the first step; a validation from `on_validation_start` to `on_validation_end` is part
    of no step; `on_train_end` saves what is recorded, else the end of `with FabricCallback() as callback:` does, or
    that of the process. Each takes any arguments.

    `folder`: where the traces go. All else: `TrainingRun`.
    """

    def __init__(
        self, folder: str | Path = DEFAULT_FOLDER, *, filename: str | None = None, **options: Unpack[OptionKeywords]
    ) -> None:
        super().__init__(filename=filename, **options)
        self._folder = Path(folder)
        self.listen()

    def on_train_start(self, *_: Any, **__: Any) -> None:
        self.start(self._folder)

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        if self._is_open:
            self.end_step()
        else:
            self.start(self._folder, is_first_step_over=True)

    def on_validation_start(self, *_: Any, **__: Any) -> None:
        self.pause(for_evaluation=True)

    def on_validation_end(self, *_: Any, **__: Any) -> None:
        self.end_part("evaluation")
        self.resume()

    def on_exception(self, error: BaseException, *_: Any, **__: Any) -> None:
        self.fail(error)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.stop()

    on_fit_start, on_fit_end = on_train_start, on_train_end
    on_validation_epoch_start, on_validation_epoch_end = on_validation_start, on_validation_end
