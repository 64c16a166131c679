"""From a path to what is known of each of its ranks: every trace is read alone and let go."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deepscope.errors import NoTraceError, TraceError, in_words
from deepscope.printable import without_secrets
from deepscope.processes import Progress
from deepscope.ranks.results import Failure
from deepscope.ranks.summary import RankSummary
from deepscope.records import View
from deepscope.records.merging import decoded
from deepscope.store.ascend.cluster import Cluster
from deepscope.store.ascend_ranks import tables_alone, tables_beside, tables_of_several, with_tables
from deepscope.store.each import Wanted, read_each
from deepscope.store.readable import read_newest
from deepscope.store.requests import kept_answers
from deepscope.store.runs import Selection, expanded, find_traces, select_together
from deepscope.trace.kineto.remote import is_url

_NAMED = 3
"""Files that are named of those left out."""


@dataclass(frozen=True, slots=True)
class ReadRanks:
    """Ranks of a run, and those whose traces could not be read."""

    summaries: list[RankSummary] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """A sentence for each newer window or run of which no rank can be read, and for files of other ranks left out."""


def read_ranks(
    path: str | os.PathLike[str] | Sequence[str],
    *,
    step: int | None = None,
    stage: str | None = None,
    partial: bool = False,
    cache: bool = True,
    scheduler: str = "",
    progress: Progress | None = None,
) -> ReadRanks:
    """The ranks of the newest run at a path of which one can be read. What fails is told, and the rest goes on.

    Args:
        path: a trace, a folder, an fsspec URL of one, or a pattern such as `runs/*.json`; several are one run.
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
    paths = expanded([os.fspath(path)] if isinstance(path, (str, os.PathLike)) else path)
    where, wanted = paths[0], Wanted("summary", View(step=step), partial, cache, scheduler)
    if len(paths) > 1:
        selected = select_together(paths, stage=stage)
        together = _read(selected.selection, tables_of_several(selected, step), wanted, progress)
        return replace(together, skipped=[*_left_out(paths, together)])

    def read(selection: Selection) -> ReadRanks:
        return _read(selection, tables_beside(selection, step), wanted, progress)

    try:
        newest = read_newest(where, read, stage=stage)
    except NoTraceError:
        cluster = tables_alone(where, step)
        if not cluster.ranks:
            raise
        return _read(Selection(files=(), stage=stage or ""), cluster, wanted, progress)
    return replace(newest.answer, skipped=[*newest.skipped, *_left_out(paths, newest.answer)])


def _left_out(paths: Sequence[str], read: ReadRanks) -> Iterator[str]:
    """A sentence about traces beside those that were read, if they name ranks that are missing."""
    world = max((one.world_size for one in read.summaries), default=1)
    here = {one.rank for one in read.summaries} | {one.rank for one in read.failures}
    if world <= len(here):
        return
    others: dict[str, str] = {}
    for folder in dict.fromkeys(path if is_url(path) or Path(path).is_dir() else _folder_of(path) for path in paths):
        with suppress(NoTraceError):
            others |= {
                one.file.path: one.file.name
                for one in find_traces(folder)
                if one.identity.world_size == world and one.identity.rank is not None and one.identity.rank not in here
            }
    if others:
        files = f"{len(others):,} more files here name" if len(others) > 1 else "1 more file here names"
        names, more = ", ".join(sorted(others.values())[:_NAMED]), ", …" if len(others) > _NAMED else ""
        yield (
            f"{files} other ranks of this world size ({names}{more}); give all paths, or a pattern, if they are of "
            f"one run"
        )


def _folder_of(path: str) -> str:
    return str(Path(path).resolve().parent)


def read_selected(
    selection: Selection, view: View, *, partial: bool = False, progress: Progress | None = None
) -> ReadRanks:
    """The same of traces that were selected already, and of any part of them. Tables know no parts but steps.

    Raises:
        TraceError: none of the traces could be read; the first one's reason.
        OptionError: no rank has such a step, phase or module.
    """
    cluster = Cluster() if view.phase or view.module else tables_beside(selection, view.step)
    return _read(selection, cluster, Wanted("summary", view, partial), progress)


def _read(selection: Selection, cluster: Cluster, wanted: Wanted, progress: Progress | None) -> ReadRanks:
    """The ranks by their traces, with what their tables tell."""
    found, reason = ReadRanks(), None
    read = read_each(selection.files, wanted, progress=progress) if selection.files else []
    for place, one in enumerate(read):
        if isinstance(one, TraceError):
            reason = reason or one
            found.failures.append(
                Failure(path=selection.files[place].path, rank=selection.rank_of(place), message=one.message(in_words))
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
