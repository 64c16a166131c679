"""From a path to what is known of each of its ranks: every trace is read alone and let go."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from deepscope.errors import TraceError, in_words
from deepscope.printable import without_secrets
from deepscope.ranks.results import Failure
from deepscope.ranks.summary import RankSummary
from deepscope.records import View
from deepscope.records.decoding import decoded
from deepscope.store.ascend.cluster import Cluster
from deepscope.store.ascend.ranks import select_with_tables, tables_beside, with_tables
from deepscope.store.each import Wanted, read_each
from deepscope.store.read import Progress
from deepscope.store.requests import kept_answers
from deepscope.store.runs import Selection

__all__ = ["ReadRanks", "kept_ranks", "read_ranks", "read_selected"]


@dataclass(frozen=True, slots=True)
class ReadRanks:
    """Ranks of a run, and those whose traces could not be read."""

    summaries: list[RankSummary] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def read_ranks(
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    stage: str | None = None,
    partial: bool = False,
    cache: bool = True,
    scheduler: str = "",
    progress: Progress | None = None,
) -> ReadRanks:
    """The ranks of the newest run at a path. What fails of single ranks is told, and the rest goes on.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        step: only this `ProfilerStep#N`.
        stage: this stage of the run in place of the training stage.
        partial: of traces that end early, read what is whole.
        cache: take profiles from the user's cache folder, and keep there what is read.
        scheduler: the address of a Dask scheduler, whose workers then read the ranks.
        progress: called with bytes done and bytes in all.

    Raises:
        NoTraceError: nothing is there, or no trace.
        TraceError: none of the traces could be read; the first one's reason.
        OptionError: no rank has such a step or stage.
    """
    selection, cluster = select_with_tables(os.fspath(path), step=step, stage=stage)
    return _read(selection, cluster, Wanted("summary", View(step=step), partial, cache, scheduler), progress)


def read_selected(
    selection: Selection,
    view: View,
    *,
    partial: bool = False,
    cache: bool = True,
    scheduler: str = "",
    progress: Progress | None = None,
) -> ReadRanks:
    """The same of traces that were selected already, and of any part of them. Tables know no parts but steps.

    Raises:
        TraceError: none of the traces could be read; the first one's reason.
        OptionError: no rank has such a step, phase or module.
    """
    cluster = Cluster() if view.phase or view.module else tables_beside(selection, view.step)
    return _read(selection, cluster, Wanted("summary", view, partial, cache, scheduler), progress)


def _read(selection: Selection, cluster: Cluster, wanted: Wanted, progress: Progress | None) -> ReadRanks:
    """The ranks by their traces, with what their tables tell."""
    found, reason = ReadRanks(), None
    read = read_each(selection.files, wanted, progress=progress) if selection.files else []
    for place, one in enumerate(read):
        if isinstance(one, TraceError):
            reason = reason or one
            found.failures.append(
                Failure(path=selection.files[place].path, rank=selection.rank_of(place), message=one.told(in_words))
            )
        else:
            found.summaries.append(decoded(one, RankSummary))
    if reason is not None and not found.summaries and not cluster.ranks:
        raise reason
    failures = [
        Failure(path=without_secrets(one.path), rank=one.rank, message=without_secrets(one.message))
        for one in found.failures + cluster.failures
    ]
    return ReadRanks(with_tables(found.summaries, cluster), failures)


def kept_ranks(selection: Selection, view: View, *, partial: bool = False) -> ReadRanks | None:
    """What `read_selected` gives, if the cache has every rank; None if some trace or table has to be read."""
    if selection.tables:
        return None
    bodies = kept_answers(selection.files, "summary", view, partial=partial)
    return None if bodies is None else ReadRanks([decoded(body, RankSummary) for body in bodies])
