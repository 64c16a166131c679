"""From a path to the analysis of each of its traces: for what is as long as the trace, and in no Profile."""

from __future__ import annotations

import os
from collections.abc import Iterator

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.errors import TraceError, in_words
from deepscope.records import View
from deepscope.store.files import TraceFile
from deepscope.store.load import read_newest
from deepscope.store.opening import open_attribution
from deepscope.store.runs import TraceSelection, select


class Traces:
    """The traces that `load_profile` would merge for the same arguments, by rank; analysed one at a time, as asked for.

    Like there, what cannot be read is skipped: single ranks, and newer traces of a folder where none of a window can.

    Raises:
        TraceError: none can be read (while they are gone through).
        OptionError: there is no such rank or stage, or (while they are gone through) no such step.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        step: int | None = None,
        rank: int | None = None,
        stage: str | None = None,
        partial: bool = False,
    ) -> None:
        self._path, self._rank, self._stage = os.fspath(path), rank, stage
        self._count = len(select(self._path, rank=rank, stage=stage).files)
        self._step, self._partial = step, partial
        self.skipped: list[str] = []
        """A sentence for each trace that was skipped, once they were gone through."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Analysis]:
        self.skipped = []
        newest = read_newest(self._path, self._first, rank=self._rank, stage=self._stage)
        first, place = newest.answer
        files = newest.selection.files[place + 1 :]
        self._count = len(newest.selection.files)
        self.skipped = [*newest.skipped, *self.skipped]
        yield first
        del first, newest
        for file in files:
            try:
                analysis = self._analysis(file)
            except TraceError as error:
                self.skipped.append(_left_out(error))
            else:
                yield analysis

    def _first(self, selection: TraceSelection) -> tuple[Analysis, int]:
        """The first trace of a selection that can be read, and its place."""
        errors: list[TraceError] = []
        for place, file in enumerate(selection.files):
            try:
                analysis = self._analysis(file)
            except TraceError as error:
                errors.append(error)
            else:
                self.skipped = [_left_out(error) for error in errors]
                return analysis, place
        raise errors[0]

    def _analysis(self, file: TraceFile) -> Analysis:
        return analyse(open_attribution(file, partial=self._partial), View(step=self._step))


def _left_out(error: TraceError) -> str:
    return f"a rank is left out: {error.message(in_words)}"


def rank_of(analysis: Analysis) -> int:
    """The rank that a trace was recorded on, -1 where it does not say."""
    from deepscope.analysis.tables.trace_info import trace_info

    work, scopes = analysis.attribution.work, analysis.attribution.scopes
    info = trace_info(analysis.attribution.trace, scopes.source, has_device=work.metric == "device")
    return info.ranks[0] if info.ranks else -1
