"""`DeepProfileKwargs` for Hugging Face's accelerate: `Accelerator.profile` records with DeepScope."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelerate.utils import ProfileKwargs

from deepscope.capture.naming import DEFAULT_FOLDER, check_template
from deepscope.capture.options import checked_options
from deepscope.capture.recording import Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import OptionKeywords


class DeepProfileKwargs(ProfileKwargs):  # type: ignore[misc]  # accelerate is not followed by mypy
    """`Accelerator(kwargs_handlers=[DeepProfileKwargs("runs/exp1", wait=1)])`: `accelerator.profile()` is a recording.

    `with accelerator.profile() as prof:` gives a `deepscope.Recording`, with its own `prof.step()`. An exception inside
    saves what was recorded, and goes on. Without a schedule the whole block is recorded. The arguments are those of
    `deepscope.profile`. Raises `OptionError` for an option that does not exist or has a value that cannot be used.
    """

    def __init__(
        self,
        folder: str | Path = DEFAULT_FOLDER,
        *,
        filename: str | None = None,
        total_steps: int | None = None,
        **options: Unpack[OptionKeywords],
    ) -> None:
        super().__init__()
        checked_options(options)
        check_template(filename)
        self._folder, self._name, self._total_steps, self._options = folder, filename, total_steps, options

    @property  # type: ignore[misc]  # it can be set, too, of an object
    def __class__(self) -> Any:
        """The base class: the Accelerator looks its handlers up by that, and takes none of a subclass."""
        return ProfileKwargs

    def build(self) -> Recording:
        """What `accelerator.profile()` enters, and gives to the block."""
        return Recording(self._folder, filename=self._name, total_steps=self._total_steps, **self._options)
