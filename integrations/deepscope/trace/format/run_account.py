"""The files beside a trace: what is in the account of its whole run, how they are called, and how they are written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

import msgspec

RunPartName = Literal["steps", "data", "evaluation", "checkpoint", "logging", "recording", "start", "rest"]
PARTS: tuple[RunPartName, ...] = get_args(RunPartName)


class PartAccount(msgspec.Struct, frozen=True):
    """One part of the run's time."""

    name: RunPartName
    time_ns: int
    times: int
    """How often it came; 0 for what is not counted."""


class EpochAccount(msgspec.Struct, frozen=True):
    """The steps of an epoch, or of several in a row."""

    number: int
    """Of the first one, from 0 on in this run."""
    epochs: int
    steps: int
    steps_ns: int
    """Without the wait for data."""
    data_ns: int


class CompiledAccount(msgspec.Struct, frozen=True):
    """A function that torch.compile compiled in the run."""

    file: str
    line: int
    """The function's first one."""
    function: str
    times: int
    time_ns: int
    """Of all times; it is part of the steps', or of whatever else went on meanwhile."""
    reason: str = ""
    """Why it was compiled again, the last time; "" where it was compiled once."""


class PauseAccount(msgspec.Struct, frozen=True):
    """The line that most of a part's time is at in which no step ends for long, with what it calls; of samples."""

    part: RunPartName
    file: str
    line: int
    function: str
    time_ns: int
    times: int
    """How many such pauses the part had."""


class RunAccount(msgspec.Struct, frozen=True):
    """What a run's time went to; the parts sum to its length."""

    duration_ns: int
    parts: list[PartAccount]
    """A part that was not measured is missing."""
    first_step_ns: int
    """With its wait for data."""
    epochs: list[EpochAccount]
    compiled: list[CompiledAccount] = []
    """What took longest to compile, the longest first."""
    format: int = 1
    usual_step_ns: int = 0
    """The median, about, with its wait for data and without the first one; 0 where that is not known."""
    long_steps: int = 0
    """Steps that took at least four times as long, at regular intervals, without waiting for a core."""
    long_steps_ns: int = 0
    """All of them together."""
    repeated_data_ns: int = 0
    """Of evaluations: those on the data that the run trains on."""
    pauses: list[PauseAccount] = []


def encoded_account(account: RunAccount) -> bytes:
    """The file's content, JSON."""
    return msgspec.json.encode(account) + b"\n"


def decoded_account(content: bytes) -> RunAccount | None:
    """The account in a file; None where it is damaged, of a later format, or does not add up."""
    try:
        account = msgspec.json.decode(content, type=RunAccount)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    adds_up = sum(part.time_ns for part in account.parts) == account.duration_ns
    is_sound = account.format == 1 and account.duration_ns > 0 and all(part.time_ns >= 0 for part in account.parts)
    rest = (account.usual_step_ns, account.long_steps, account.long_steps_ns, account.repeated_data_ns)
    is_sound = is_sound and min(rest) >= 0
    rows: list[CompiledAccount | PauseAccount] = [*account.compiled, *account.pauses]
    is_sound = is_sound and all(one.time_ns >= 0 and one.times >= 0 and one.line > 0 for one in rows)
    return account if adds_up and is_sound else None


_ACCOUNT, _TRIES, _SNAPSHOT = ENDINGS_BESIDE = (".deepscope-run", ".deepscope-tries", ".memory.pickle")
_TRACE_ENDING = re.compile(r"(\.pt\.trace)?\.json(\.gz)?$")


def account_path(trace: Path) -> Path:
    """The file that accounts for the trace's whole run."""
    return _beside(trace, _ACCOUNT)


def tries_path(trace: Path) -> Path:
    """The file that keeps what was tried on the trace's program."""
    return _beside(trace, _TRIES)


def snapshot_path(trace: Path) -> Path:
    """The file with torch's snapshot of the memory at the end of the trace's window."""
    return _beside(trace, _SNAPSHOT)


def files_beside(trace: Path) -> tuple[Path, ...]:
    """All that goes with the trace where it is removed, whether it is there or not."""
    return account_path(trace), tries_path(trace), snapshot_path(trace)


def _beside(trace: Path, ending: str) -> Path:
    return trace.with_name(f"{_TRACE_ENDING.sub('', trace.name)}{ending}")


@contextmanager
def renamed_when_whole(path: Path) -> Iterator[Path]:
    """A file to write, which gets the name `path` behind the block; where that fails, nothing is left of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.deepscope-part")
    try:
        yield part
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
