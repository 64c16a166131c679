"""The newest traces at a path that can be read: in a folder, broken ones are skipped and named."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from deepscope.errors import DeepScopeError, OptionError, TraceError, in_words
from deepscope.records import Profile
from deepscope.store.identity import FoundTrace
from deepscope.store.runs import TraceSelection, find_traces, select_below, select_from

T = TypeVar("T")

SKIPPED = "a newer trace is skipped: "
"""What each sentence of `NewestReadable.skipped` begins with."""


@dataclass(frozen=True, slots=True)
class NewestReadable(Generic[T]):
    """What was read, and what was skipped for it."""

    answer: T
    selection: TraceSelection
    found: list[FoundTrace]
    """The traces that were not skipped, the newest first."""
    skipped: list[str]
    """A sentence for each newer selection that cannot be read."""


def read_newest(
    path: str, read: Callable[[TraceSelection], T], *, rank: int | None = None, stage: str | None = None
) -> NewestReadable[T]:
    """Reads the newest selection at a path, or the newest one before it that can be read.

    A killed training leaves empty and cut files: in a folder, older windows and runs are read in their place.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        read: reads a selection.
        rank: only this rank.
        stage: this stage in place of the training stage.

    Raises:
        NoTraceError: no trace is there.
        TraceError: none can be read; the reason of the newest.
        OptionError: the newest run has no such rank or stage; or what `read` raises.
    """
    found = find_traces(path)
    newest: TraceError | None = None
    skipped: list[str] = []
    while found:
        try:
            selection = select_below(path, found, rank=rank, stage=stage)
        except OptionError:
            if newest is not None:  # older runs have no such rank or stage
                break
            raise
        try:
            return NewestReadable(read(selection), selection, found, skipped)
        except TraceError as error:
            newest = newest or error
            skipped.append(skipped_words(error))
            found = without(found, selection)
    assert newest is not None
    raise newest


def without(found: Sequence[FoundTrace], selection: TraceSelection) -> list[FoundTrace]:
    """The traces that a selection leaves."""
    files = set(selection.files)
    return [one for one in found if one.file not in files]


def skipped_words(error: TraceError) -> str:
    """What is said of a trace that is skipped."""
    return f"{SKIPPED}{error.message(in_words)}"


REPEATS = 5
"""Runs of a folder that are looked at."""


def load_repeats(
    path: str | os.PathLike[str],
    load: Callable[[TraceSelection], Profile],
    *,
    rank: int | None = None,
    stage: str | None = None,
    limit: int = REPEATS,
) -> list[Profile]:
    """The newest run at `path` and, of the `limit` newest runs there, those that ran the same code alike.

    These are runs of the same program, arguments, texts, stage, device and number of ranks. A run whose texts are not
    known has no repeats.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        load: loads the profile of a selection.
        rank: only this rank.
        stage: this stage in place of the training stage.
        limit: how many runs are looked at.

    Raises:
        TraceError, OptionError: as `load_profile`, of the newest run; another that cannot be read is no repeat.
    """
    newest = read_newest(os.fspath(path), load, rank=rank, stage=stage)
    newest.answer.trace.warnings.extend(newest.skipped)
    found = newest.found
    profiles = [newest.answer]
    code = _code(newest.answer)
    runs = list(dict.fromkeys(one.run for one in found))
    for run in runs[1:limit] if code else ():
        with suppress(DeepScopeError, OptionError):
            profile = load(select_from([one for one in found if one.run == run], rank=rank, stage=stage))
            if _code(profile) == code:
                profiles.append(profile)
    return profiles


def _code(profile: Profile) -> tuple[object, ...]:
    """What runs share that can be taken for repeats; empty where it is not known."""
    texts = sorted((path, file.sha256) for path, file in profile.files.items() if file.sha256)
    info = profile.trace
    if not texts:
        return ()
    return info.program, info.arguments, info.stage, profile.metric, info.device, len(info.ranks), tuple(texts)
