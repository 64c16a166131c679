"""What a program may still write although it runs in a scratch folder: told before it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from deepscope.trials.runs import Command
from deepscope.trials.view import make_view

_SHOWN = 5


def may_write(command: Command) -> Iterator[str]:
    """Sentences on what a scratch folder does not hold back."""
    with tempfile.TemporaryDirectory(prefix="deepscope-try-") as folder:
        view = make_view(command.root, Path(folder).resolve() / "view")
    yield f"each run has a scratch folder in the place of {command.root}; loggers are offline"
    linked = [one for one in view.linked_folders if Path(one).name not in {".git", ".venv", "venv"}]
    if linked:
        more = f" and {len(linked) - _SHOWN} more" if len(linked) > _SHOWN else ""
        yield f"too large to stand in it, and written to as they are: {', '.join(linked[:_SHOWN])}{more}"
    absolute = [one for word in command.arguments if Path(one := word.rpartition("=")[2]).is_absolute()]
    if absolute:
        yield f"absolute paths among the arguments, written to as they are: {', '.join(absolute)}"
    if command.target_in(Path("/-")) == str(command.working / command.target) and not command.is_module:
        yield f"{command.target} lies outside of this folder: what it writes beside itself stays there"
    yield "other absolute paths, network connections and ports are the program's own"
