"""Which of many files are traces: each version of a file is looked into once, and the answer kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deepscope.store.ascend.folders import cluster_folder
from deepscope.store.files import TraceFile
from deepscope.store.identity import Identity, identify_all

ASCEND = "ascend"
"""The word of runs on Ascend devices: a folder a rank."""

SAME_RUN_NS = 600 * 10**9
"""Ranks without a run id belong together when they were recorded within ten minutes."""

_RANK_FOLDER = re.compile(r"([/\\]rank[-_]?)\d+[/\\]$", re.IGNORECASE)
"""The end of a path where each rank has a folder of its own."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What traces of one run share."""

    folder: str
    word: str


@dataclass(frozen=True, slots=True)
class FoundTrace:
    """A trace with what its name and head say."""

    file: TraceFile
    identity: Identity
    run: RunKey

    @property
    def time_ns(self) -> int:
        """When it was recorded, since the epoch: as the trace says, else its name, else when the file was written."""
        return self.identity.recorded_ns or self.file.named_ns or self.file.mtime_ns

    @property
    def is_lost(self) -> bool:
        """Whether it has its place in a run and is no trace that could be read."""
        return not self.identity.looks_like_trace

    @property
    def written_ns(self) -> int:
        """When it was written, as its name says, else its folder."""
        return self.file.named_ns or self.file.mtime_ns

    @property
    def newest_first(self) -> tuple[int, int, int, str]:
        """The key to sort by: a copy's date says nothing of what is in it, so it only decides between equals."""
        return -self.time_ns, -self.file.named_ns, -self.file.mtime_ns, self.file.path


class Recognizer:
    """Remembers what each file was found to be, by path, size and date."""

    def __init__(self) -> None:
        self._known: dict[TraceFile, Identity | None] = {}

    def traces(self, files: Iterable[TraceFile], *, named: Iterable[TraceFile] = ()) -> list[FoundTrace]:
        """The traces among `files`, by their first bytes, and all of `named`; the newest first.

        A file named like a trace counts as one; its reader says what is wrong with it. So does a file that cannot be a
        trace but has its place among the ranks of a run, by its name and time. What is known of other files is
        forgotten.
        """
        before, self._known = self._known, {}
        known: dict[TraceFile, Identity | None] = {}
        found: dict[str, FoundTrace] = {}
        taken = set(named)
        every = list(dict.fromkeys((*taken, *files)))
        unknown = [file for file in every if file not in before or (before[file] is None and file in taken)]
        identities = {**before, **dict(zip(unknown, identify_all(unknown), strict=True))}
        broken: list[FoundTrace] = []
        for file in every:
            what = identities[file]
            known[file] = what
            if what is None:
                continue
            one = FoundTrace(file=file, identity=what, run=_run_of(file, what))
            if what.looks_like_trace or file in taken:
                found[file.path] = one
            else:
                broken.append(one)
        for one in lost_ranks(broken, list(found.values())):
            found[one.file.path] = one
        for one in broken:
            if one.file.path not in found:
                if one.file.is_named_trace:
                    found[one.file.path] = one
                else:
                    known[one.file] = None
        self._known = known
        return sorted(found.values(), key=lambda one: one.newest_first)


def lost_ranks(broken: Sequence[FoundTrace], found: Sequence[FoundTrace]) -> list[FoundTrace]:
    """Those of the broken files that are ranks of a run: named as its files but for the digits, and of about its time.

    Each has the run, stage and window of the file that is nearest in time, unless that has its rank already.
    """
    ranks: dict[tuple[str, str], list[FoundTrace]] = {}
    for one in found:
        if one.identity.world_size > 1 or one.identity.rank is not None:
            ranks.setdefault((one.file.folder, one.identity.worker_pattern), []).append(one)
    taken = {(one.run, one.identity.stage, one.identity.window, one.identity.rank) for one in found}
    lost = []
    for one in broken:
        beside = ranks.get((one.file.folder, one.identity.worker_pattern), [])
        if one.identity.stage:
            beside = [other for other in beside if other.identity.stage == one.identity.stage]
        nearest = min(beside, key=lambda other: abs(other.written_ns - one.written_ns), default=None)
        if nearest is None or abs(nearest.written_ns - one.written_ns) > SAME_RUN_NS:
            continue
        of_it = nearest.identity
        rank = one.identity.rank
        if rank is None or (nearest.run, of_it.stage, of_it.window, rank) not in taken:
            identity = replace(of_it, looks_like_trace=False, worker=one.identity.worker, rank=rank, recorded_ns=0)
            lost.append(replace(one, identity=identity, run=nearest.run))
    return lost


def _run_of(file: TraceFile, what: Identity) -> RunKey:
    if what.run_id:
        return RunKey("", what.run_id)
    if (cluster := cluster_folder(file.path)) and what.rank is not None:
        return RunKey(cluster, ASCEND)  # a folder a rank
    if what.world_size > 1 or what.rank is not None:
        # A rank's file is named by host and process id: their digits differ between the ranks of a run.
        folder = _RANK_FOLDER.sub(r"\1*/", file.folder) + file.archive
        return RunKey(folder, f"{what.world_size} of {what.worker_pattern}")
    return RunKey(file.folder + file.archive, what.worker)
