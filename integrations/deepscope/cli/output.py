"""Where a command's result goes: standard output or a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from deepscope.errors import DeepScopeError
from deepscope.printable import printable

__all__ = ["emit", "emit_bytes", "emit_pieces", "warn", "writing"]


def warn(sentences: Iterable[str]) -> None:
    """Writes warnings to standard error, a line each."""
    for sentence in sentences:
        click.echo(f"Warning: {printable(sentence)}", err=True)


def emit(text: str, path: str | None) -> None:
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
            with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
                stream.writelines(pieces)
            return
        sys.stdout.writelines(pieces)
        sys.stdout.flush()


def emit_bytes(content: bytes, path: str | None) -> None:
    """The same of a binary file, which no terminal gets.

    Raises:
        DeepScopeError: as `emit`; or it would go to a terminal.
    """
    with writing(path or "standard output"):
        if path is not None and path != "-":
            Path(path).write_bytes(content)
            return
        if sys.stdout.isatty():
            raise DeepScopeError("standard output: a terminal cannot show this form; name a file with -o FILE")
        sys.stdout.buffer.write(content)
        sys.stdout.flush()


@contextmanager
def writing(where: str) -> Iterator[None]:
    """What fails to be written is told in a line; a reader that has gone ends the command in silence.

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
