"""Runs in the served folders as the command line reads them: one profile, its repeats, its ranks."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from deepscope.mcp_server.served_folders import ServedFolders
from deepscope.printable import without_secrets
from deepscope.ranks.results import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import WHOLE, Profile
from deepscope.store.load import load_selection
from deepscope.store.ranks import ReadRanks, read_selected
from deepscope.store.readable import read_newest
from deepscope.store.repeats import load_repeats
from deepscope.store.runs import TraceSelection, select_from

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
        return load_repeats(self._folders.checked(path), self._alone(load_selection))

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
        self,
        path: str,
        read: Callable[[TraceSelection], T],
        *,
        rank: int | None = None,
        stage: str | None = None,
    ) -> tuple[T, list[str]]:
        """What is read of a run, and a sentence for each newer one that was skipped."""
        if traces := self._folders.ranks_at(path):
            return self._alone(read)(select_from(traces, rank=rank, stage=stage)), []
        newest = read_newest(self._folders.checked(path), self._alone(read), rank=rank, stage=stage)
        return newest.answer, newest.skipped

    def _alone(self, read: Callable[[TraceSelection], T]) -> Callable[[TraceSelection], T]:
        """Reads what lies in the folders while nothing else is read."""

        def read_checked(selection: TraceSelection) -> T:
            self._folders.check(selection)
            with self._reading:
                return read(selection)

        return read_checked
