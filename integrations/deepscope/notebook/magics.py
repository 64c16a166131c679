"""`%%deepscope` records the training steps of a cell, `%deepscope` a single line; what they cost is shown below."""

from __future__ import annotations

import ast
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
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
from deepscope.notebook.cell_page import cell_page
from deepscope.report.text import text_report
from deepscope.store import load_profile

_APART = "# recorded by DeepScope"


class MagicCell:
    """Python that stands in a cell behind a magic: the lines below it, or the rest of its line.

    IPython compiles what stands below `%%time` as a text of its own, whose lines are in no cell. Here they are compiled
    under the cell's name with their numbers in it, and the cell's whole text is what a traceback and a trace show.

    Raises:
        SyntaxError: it is no Python.
    """

    def __init__(self, shell: InteractiveShell, body: str, text: str) -> None:
        self._shell = shell
        self.text = text
        """The whole cell."""
        number = getattr(shell.compile, "_filename_map", {}).get(self.caller, shell.execution_count)
        self.file: str = shell.compile.cache(text, number, raw_code=f"{text}\n{_APART}")
        """What Python calls it: not as the call of the magic, which stands in the same cell and is no user's work."""
        python = shell.transform_cell(body)  # without empty lines at its begin
        tree = shell.transform_ast(shell.compile.ast_parse(python, self.file))
        ast.increment_lineno(tree, text.rstrip().count("\n") - python.rstrip().count("\n"))
        self._tree: ast.Module = tree
        last = tree.body[-1] if tree.body else None
        self._last = last.value if isinstance(last, ast.Expr) else None
        if self._last is not None:
            tree.body.pop()

    def run(self) -> Any:
        """Runs it in the user's namespace; returns the value of an expression that ends it, as a cell has one."""
        __tracebackhide__ = True
        names = self._shell.user_global_ns, self._shell.user_ns
        exec(self._compiled(self._tree, "exec"), *names)  # noqa: S102
        if self._last is None:
            return None
        return eval(self._compiled(ast.Expression(self._last), "eval"), *names)  # noqa: S307

    @property
    def caller(self) -> str:
        """What Python calls the text that calls the magic."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals is not self._shell.user_global_ns:
            frame = frame.f_back
        return "" if frame is None else frame.f_code.co_filename

    def _compiled(self, tree: ast.Module | ast.Expression, mode: str) -> CodeType:
        code: CodeType = compile(tree, self.file, mode, self._shell.compile.flags, dont_inherit=True)
        return code


_NO_STEPS = (
    "DeepScope recorded nothing: too few training steps were made in this cell. `%%deepscope --whole` records all."
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
