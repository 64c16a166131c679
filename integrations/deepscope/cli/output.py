"""What the commands write: their options for it, where it goes, and a bar meanwhile."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, TypeVar

import click

from deepscope.errors import DeepScopeError
from deepscope.printable import printable
from deepscope.whole_files import whole_file

ROWS = 20
"""Rows of a table as text, where `-n` says nothing else."""
WARNINGS = 10
PIPED_WIDTH = 120
"""Cells of a line where standard output is no terminal."""

Function = TypeVar("Function", bound=Callable[..., Any])


def with_options(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Adds options to a command, which its help lists in this order."""

    def add(command: Function) -> Function:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def rows_option(command: Function) -> Function:
    """Adds `-n`, as `limit`; `rows_shown` makes a number of it."""
    return click.option(
        "-n",
        "limit",
        type=click.IntRange(0),
        metavar="ROWS",
        help=f"Rows to show, 0 for all.  [default: {ROWS}; json, csv: all]",
    )(command)


def form_option(*forms: str) -> Callable[[Function], Function]:
    """Adds `--format`, as `form`; the first one is the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True)


def rows_shown(limit: int | None, form: str = "text") -> int:
    """The rows of a table, 0 for all."""
    return (ROWS if form in {"text", "markdown"} else 0) if limit is None else limit


def terminal() -> dict[str, Any]:
    """`width` in cells and `color` of a text for standard output."""
    from deepscope.report.terminal import wants_color

    width = shutil.get_terminal_size((PIPED_WIDTH, 0)).columns
    return {"width": width, "color": wants_color(sys.stdout)}


def tell(text: str) -> None:
    """Writes a line of the command's own to standard error."""
    click.echo(f"deepscope: {printable(text)}", err=True)


def warn(sentences: Sequence[str]) -> None:
    """Writes the first warnings to standard error, a line each, and how many there are."""
    for sentence in sentences[:WARNINGS]:
        click.echo(f"Warning: {printable(sentence)}", err=True)
    if len(sentences) > WARNINGS:
        click.echo(f"{WARNINGS} of {len(sentences):,} warnings shown", err=True)


def emit(text: str, path: str | None = None) -> None:
    """Writes to a file, or to standard output; a reader that has gone (`| head`) ends the command in silence.

    Raises:
        DeepScopeError: it cannot be written (a full disk, no such folder, no right to).
    """
    emit_pieces([text], path)


def emit_pieces(pieces: Iterable[str], path: str | None) -> None:
    """The same of a text that comes piece by piece.

    Raises:
        DeepScopeError: as `emit`.
    """
    with writing(path or "standard output"):
        if path is not None and path != "-":
            with (
                whole_file(Path(path)) as part,
                part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream,
            ):
                stream.writelines(pieces)
            return
        is_chosen = "PYTHONIOENCODING" in os.environ
        if isinstance(sys.stdout, io.TextIOWrapper) and not is_chosen and not sys.stdout.isatty():
            sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # `> FILE` is the same on all systems
        sys.stdout.writelines(pieces)
        sys.stdout.flush()


def emit_bytes(content: bytes, path: str | None) -> None:
    """The same of a binary file, which no terminal gets.

    Raises:
        DeepScopeError: as `emit`; or it would go to a terminal.
    """
    with writing(path or "standard output"):
        if path is not None and path != "-":
            with whole_file(Path(path)) as part:
                part.write_bytes(content)
            return
        if sys.stdout.isatty():
            raise DeepScopeError("standard output: a terminal cannot show this form; name a file with -o FILE")
        sys.stdout.buffer.write(content)
        sys.stdout.flush()


@contextmanager
def writing(where: str) -> Iterator[None]:
    """What fails to be written is an error of one line; a reader that has gone ends the command in silence.

    Raises:
        DeepScopeError: it cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        # Python flushes standard output once more at its end: to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise DeepScopeError(f"{where}: cannot be written: {error.strerror or error}") from error


PATIENCE_SECONDS = 0.5
REDRAW_SECONDS = 0.1
WIDTH = 30


class Bar:
    """A context manager that is called with bytes done and bytes in all; silent where the stream is no terminal."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._next = clock() + PATIENCE_SECONDS
        self._is_drawn = False
        self._files = ""

    def __enter__(self) -> Bar | None:
        return self if self._stream.isatty() else None

    def files_done(self, done: int, total: int) -> None:
        """So many of several files are done; shown when the bar is drawn next."""
        self._files = f" {done:,} of {total:,} ranks"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, done: int, total: int) -> None:
        """So many bytes are done."""
        now = self._clock()
        is_last = self._is_drawn and done >= total  # what follows may take long
        if not total or (now < self._next and not is_last):
            return
        self._next = now + REDRAW_SECONDS
        self._is_drawn = True
        ratio = min(1.0, done / total)
        filled = round(ratio * WIDTH)
        what = "reading" if done < total else "analysing"
        self._stream.write(f"\r{what} [{'#' * filled}{'.' * (WIDTH - filled)}] {ratio:4.0%}{self._files}\x1b[K")
        self._stream.flush()
