"""What was tried on a trace's program, kept beside the trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from deepscope.records.tries import Try
from deepscope.store.files import TraceFile
from deepscope.trace.format.tries import tries_path
from deepscope.trace.kineto.remote import is_url

FORMAT = 1
_MOST_BYTES = 1 << 20
"""A longer file is none of ours."""


class TriesFile(msgspec.Struct, frozen=True):
    """The file's content."""

    tries: list[Try]
    format: int = FORMAT


def tries_of(files: Sequence[TraceFile]) -> list[Try]:
    """What was tried on the program of these traces; remote stores are not looked at."""
    found: dict[str, Try] = {}
    for file in files:
        if not is_url(file.path):
            found.update((one.remedy, one) for one in read_tries(Path(file.path)))
    return list(found.values())


def read_tries(trace: Path) -> list[Try]:
    """What the file beside a trace tells; nothing where there is none, or none of ours."""
    try:
        with tries_path(trace).open("rb") as stream:
            kept = msgspec.json.decode(stream.read(_MOST_BYTES), type=TriesFile)
    except (OSError, ValueError, msgspec.MsgspecError):  # ValueError: a NUL in the path, text that is no UTF-8
        return []
    return kept.tries if kept.format == FORMAT else []


def keep_tries(trace: Path, tries: Sequence[Try]) -> None:
    """Write them beside a trace, those that are there already among them; a remedy that was tried again is replaced.

    Raises `OSError` where the folder cannot be written.
    """
    by_remedy = {one.remedy: one for one in [*read_tries(trace), *tries]}
    path = tries_path(trace)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(msgspec.json.encode(TriesFile(list(by_remedy.values()))) + b"\n")
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
