"""From a path to the analysis of each of its traces: for what is as long as the trace, and in no Profile."""

from __future__ import annotations

import os
from collections.abc import Iterator

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.ownership.attribution import attribute
from deepscope.records import View
from deepscope.store.files import TraceFile
from deepscope.store.runs import select
from deepscope.trace.read import read_trace

__all__ = ["Traces", "rank_of"]


class Traces:
    """The traces that `load_profile` would merge for the same arguments, by rank; analysed one at a time, as asked for.

    Raises:
        TraceError: as `load_profile`, some of it while they are gone through.
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
        self._files = select(os.fspath(path), rank=rank, stage=stage).files
        self._step, self._partial = step, partial

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Analysis]:
        for file in self._files:
            yield _analysis(file, self._step, self._partial)


def _analysis(file: TraceFile, step: int | None, partial: bool) -> Analysis:
    return analyse(attribute(read_trace(file.path, partial=partial)), View(step=step))


def rank_of(analysis: Analysis) -> int:
    """The rank that a trace was recorded on, -1 where it does not say."""
    from deepscope.analysis.tables.trace_info import trace_info

    work, scopes = analysis.attribution.work, analysis.attribution.scopes
    info = trace_info(analysis.attribution.trace, scopes.source, has_device=work.metric == "device")
    return info.ranks[0] if info.ranks else -1
