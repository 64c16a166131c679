"""`%%deepscope` records the training steps of a cell, `%deepscope` a single line; what they cost is shown below."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import publish_display_data

from deepscope.capture.notices import unannounced
from deepscope.capture.process_hooks.open_recorders import fail
from deepscope.capture.program import Recorded, record_steps, record_whole
from deepscope.cli.recording import asked_options, given_options, run_options
from deepscope.notebook.cell import MagicCell
from deepscope.notebook.cell_page import cell_page
from deepscope.report.text import text_report
from deepscope.store import load_profile

_NO_STEPS = (
    "DeepScope recorded nothing: no torch optimizer made enough steps in this cell. `%%deepscope --whole` records all."
)
_record_steps = partial(record_steps, may_record_itself=False)
Record = Callable[..., AbstractContextManager[Recorded]]


@click.command("%%deepscope")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Where the trace is kept; else nowhere."
)
@click.option("--whole", is_flag=True, help="Record all of the cell instead: for code without an optimizer.")
@asked_options
@run_options
def _options(**_: Any) -> None:
    """Record training steps of the cell, and show below it what its lines cost. `%deepscope CODE` records a line."""


@magics_class
class DeepScopeMagics(Magics):
    """The magics of `%load_ext deepscope`."""

    @line_cell_magic
    def deepscope(self, line: str, cell: str | None = None) -> Any:
        """Record a cell's training steps, or behind `%deepscope` a line; `%%deepscope --help` has the options."""
        __tracebackhide__ = True
        if cell is None:
            return self._recorded(MagicCell(self._shell, line, line), record_whole, None, {})
        given = _parsed(line)
        if given is None:
            return None
        folder, record = given.pop("folder", None), record_whole if given.pop("whole") else _record_steps
        return self._recorded(MagicCell(self._shell, cell, self._text_of(line, cell)), record, folder, given)

    @property
    def _shell(self) -> InteractiveShell:
        assert isinstance(self.shell, InteractiveShell)
        return self.shell

    def _text_of(self, line: str, cell: str) -> str:
        """The cell as the user sees it."""
        history = self._shell.history_manager
        kept = history.input_hist_raw[-1] if history is not None else ""
        return kept if kept.rstrip().endswith(cell.rstrip()) else f"%%deepscope {line}\n{cell}"

    def _recorded(self, cell: MagicCell, record: Record, folder: Path | None, options: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        with ExitStack() as end:
            if folder is None:
                folder = Path(tempfile.mkdtemp(prefix="deepscope-"))
                end.callback(shutil.rmtree, folder, ignore_errors=True)
                end.enter_context(unannounced())
            with record(folder, exclude=[cell.caller], **options) as recorded:
                try:
                    value = cell.run()
                except BaseException as error:
                    recorded.is_complete = False
                    fail(error)
                    raise
            _show(cell, recorded)
        return value


def _parsed(line: str) -> dict[str, Any] | None:
    """The options as keywords of what records; None where help was asked for, and printed.

    Raises:
        UsageError: for wrong ones.
    """
    try:
        with _options.make_context("%%deepscope", shlex.split(line)) as context:
            return given_options(context.params)
    except click.exceptions.Exit:
        return None
    except (click.ClickException, ValueError) as error:
        words = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(f"%%deepscope: {words}") from None


def _show(cell: MagicCell, recorded: Recorded) -> None:
    if not recorded.traces:
        publish_display_data({"text/plain": _NO_STEPS})
        return
    profile = load_profile(recorded.traces[-1], cache=False)
    page = {"text/plain": text_report(profile, width=120), "text/html": cell_page(profile, cell.file, cell.text)}
    publish_display_data(page)


def register(shell: InteractiveShell) -> None:
    """Makes the magics known."""
    shell.register_magics(DeepScopeMagics)
