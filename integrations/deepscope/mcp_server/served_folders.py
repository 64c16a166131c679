"""The folders that a server was started for: which paths lie in them, their runs, and the profiles of these."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

from deepscope.errors import DeepScopeError, NoTraceError, TraceError
from deepscope.printable import without_secrets
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import WHOLE, Profile
from deepscope.records.source_files import short_path
from deepscope.store.load import load_repeats, load_selection
from deepscope.store.ranks import ReadRanks, read_selected
from deepscope.store.runs import FoundRun, FoundTrace, Recognizer, find_traces, runs_of
from deepscope.store.selection import TraceSelection, newest_folder, read_newest, select_from
from deepscope.trace.kineto.remote import is_url


@dataclass(frozen=True, slots=True)
class ServedRun:
    """A run with the path that the tools take for it: that of its trace, of several ranks the first one's."""

    path: str
    run: FoundRun
    has_ranks: bool


class ServedFolders:
    """The folders of a server; some may not exist yet."""

    def __init__(self, folders: Sequence[str]) -> None:
        for one in folders:
            if is_url(one):
                raise TraceError(f"{one}: this server reads no remote folders; copy the traces to this machine")
        self._folders = {folder: Recognizer() for folder in map(os.path.abspath, folders)}

    @property
    def names(self) -> list[str]:
        """The folders as they are shown."""
        return [short_path(folder) or "." for folder in self._folders]

    @property
    def first(self) -> str:
        """Where a new run is recorded."""
        return next(iter(self._folders))

    def checked(self, path: str) -> str:
        """The path of a run in the folders; of "" the folder with the newest run.

        Raises:
            TraceError: it lies outside the folders, or is a URL.
            NoTraceError: there is no run in any of them.
        """
        if not path:
            return self._newest()
        if is_url(path):
            raise TraceError(
                f"{path}: this server reads no remote paths; copy the trace into {self._listed()}, or ask the user to "
                f"run: deepscope report {path}"
            )
        if not self._holds(path):
            raise TraceError(
                f"{path}: not in the folders of this server ({self._listed()}); take a path that list_runs shows, or "
                f"ask the user to start `deepscope mcp` with its folder"
            )
        return path

    def check(self, selection: TraceSelection) -> None:
        """Raises TraceError where a trace is a link that leads out of the folders."""
        for file in selection.files:
            if not self._holds(file.path):
                raise TraceError(f"{file.path}: a link that leads out of the folders of this server; it is not read")

    def runs(self) -> list[ServedRun]:
        """The runs in the folders, the newest first; links that lead out are left out."""
        return [_served(one) for one in runs_of(self._traces())]

    def ranks_at(self, path: str) -> Sequence[FoundTrace]:
        """All traces of the run of several ranks that has this handle; none of any other path."""
        where = Path.cwd() / path
        return next((one.run.traces for one in self.runs() if one.has_ranks and Path.cwd() / one.path == where), ())

    def _traces(self) -> Iterator[FoundTrace]:
        found: dict[str, FoundTrace] = {}
        for folder, recognizer in self._folders.items():
            with suppress(DeepScopeError):  # none is there so far; the others are shown
                found |= {one.file.path: one for one in find_traces(folder, recognizer)}
        return (one for one in found.values() if self._holds(one.file.path))

    def _newest(self) -> str:
        try:
            return newest_folder(folder for folder in self._folders if Path(folder).exists())
        except NoTraceError:
            raise NoTraceError(f"no run in {self._listed()}; record one: deepscope run train.py") from None

    def _holds(self, path: str) -> bool:
        """Whether a path, with its links followed, lies in one of the folders."""
        try:
            real = Path(path).resolve()
            return any(real.is_relative_to(Path(folder).resolve()) for folder in self._folders)
        except (OSError, ValueError, RuntimeError):  # too long, a NUL, links in a circle
            return False

    def _listed(self) -> str:
        return ", ".join(self.names)


def _served(run: FoundRun) -> ServedRun:
    files = select_from(run.traces).files
    return ServedRun(short_path(files[0].path), run, has_ranks=len(files) > 1)


T = TypeVar("T")


class RunReader:
    """Reads one run at a time, so that several calls need no more memory than one."""

    def __init__(self, folders: ServedFolders) -> None:
        self._folders = folders
        self._reading = Lock()

    def profile(self, path: str, *, rank: int | None = None, stage: str | None = None) -> Profile:
        """The profile that `deepscope report` shows of a path; of "" the newest run's.

        Raises:
            TraceError: it is not in the folders, or cannot be read.
            OptionError: the run has no such rank or stage.
        """

        def load(selection: TraceSelection) -> Profile:
            return load_selection(selection, rank=rank, stage=stage)

        profile, skipped = self._read(path, load, rank=rank, stage=stage)
        profile.trace.warnings.extend(skipped)
        return profile

    def repeats(self, path: str) -> list[Profile]:
        """The run with those beside it that ran the same code, as `deepscope compare` takes them.

        Raises:
            TraceError: as `profile`.
        """
        if self._folders.ranks_at(path):
            return [self.profile(path)]
        return load_repeats(self._folders.checked(path), self._one_at_a_time(load_selection))

    def ranks(self, path: str) -> tuple[RanksReport, list[str]]:
        """The ranks of the run side by side, and a sentence for each newer run that was skipped.

        Raises:
            TraceError: as `profile`.
        """

        def read(selection: TraceSelection) -> ReadRanks:
            return read_selected(selection, WHOLE)

        found, skipped = self._read(path, read)
        return side_by_side(found.summaries, found.failures, without_secrets(path)), skipped

    def _read(
        self, path: str, read: Callable[[TraceSelection], T], *, rank: int | None = None, stage: str | None = None
    ) -> tuple[T, list[str]]:
        """What is read of a run, and a sentence for each newer one that was skipped."""
        if traces := self._folders.ranks_at(path):
            return self._one_at_a_time(read)(select_from(traces, rank=rank, stage=stage)), []
        newest = read_newest(self._folders.checked(path), self._one_at_a_time(read), rank=rank, stage=stage)
        return newest.answer, newest.skipped

    def _one_at_a_time(self, read: Callable[[TraceSelection], T]) -> Callable[[TraceSelection], T]:
        """Reads what lies in the folders while nothing else is read."""

        def read_checked(selection: TraceSelection) -> T:
            self._folders.check(selection)
            with self._reading:
                return read(selection)

        return read_checked
