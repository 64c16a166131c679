"""Which of the found traces to load: the newest run with all its ranks, then what comes after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from deepscope.store.files import TraceFile
from deepscope.store.recognition import FoundTrace
from deepscope.store.runs import Selection, select_from


class Candidates:
    """One selection after the other, until one of them will do.

    Args:
        found: the newest first.
        rank, stage: as the settings choose.
        broken: the files of selections that are known to be of no use.
    """

    def __init__(
        self,
        found: Sequence[FoundTrace],
        *,
        rank: int | None,
        stage: str | None,
        broken: Collection[tuple[TraceFile, ...]],
    ) -> None:
        self._left = list(found)
        self._total = len(found)
        self._alone: list[Selection] = []
        self._rank = rank
        self._stage = stage
        self._broken = broken

    def next(self) -> Selection | None:
        """The newest that is left; None where nothing is. Ranks beside a broken one come last, each alone.

        Raises:
            OptionError: the newest run that is left has no such stage or rank.
        """
        while self._left:
            selection = select_from(self._left, rank=self._rank, stage=self._stage)
            if selection.files not in self._broken:
                return selection
            self.drop(selection)
        while self._alone:
            selection = self._alone.pop(0)
            if selection.files not in self._broken:
                return selection
        return None

    def position(self, selection: Selection) -> str:
        """`12 of 56`: how many of the traces were looked at once this selection was; "" where there are no others.

        A rank that is tried alone was looked at before, with the others of its run.
        """
        files = set(selection.files)
        left = sum(one.file not in files for one in self._left)
        return f"{self._total - left} of {self._total}" if self._total > len(files) else ""

    def drop(self, selection: Selection) -> None:
        """One of its files is broken: older windows and runs come next."""
        files = set(selection.files)
        self._left = [one for one in self._left if one.file not in files]
        if len(files) > 1:
            self._alone.extend(Selection((file,), selection.stage) for file in selection.files)

    def drop_run(self, selection: Selection) -> None:
        """It can be read and is not what is wanted; nor is anything else of its run."""
        runs = {one.run for one in self._left if one.file in selection.files}
        self._left = [one for one in self._left if one.run not in runs]


def run_of(path: str, found: Sequence[FoundTrace], *, rank: int | None, stage: str | None) -> Selection | None:
    """The run that a trace belongs to, with all its ranks; None where the trace was not found.

    Raises:
        OptionError: the run has no such stage or rank.
    """
    runs = {one.run for one in found if one.file.path == path}
    own = [one for one in found if one.run in runs]
    return select_from(own, rank=rank, stage=stage) if own else None
