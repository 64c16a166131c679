"""A run on Ascend devices, from its folder: what each rank's tables tell, else what msprof-analyze made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from deepscope.errors import DeepScopeError
from deepscope.ranks.ascend_rank import AscendRank, AscendStep
from deepscope.ranks.results import Failure
from deepscope.store.ascend.cluster_output import read_cluster_output, read_database
from deepscope.store.ascend.folders import CLUSTER_FILES, METADATA, RANK_FILES, RankFolder, rank_folder_of, rank_folders
from deepscope.store.ascend.numbers import rank_of
from deepscope.store.ascend.tables import decoded, groups_of, read_calls, read_links, read_steps
from deepscope.store.files import TraceFile, list_files, open_file
from deepscope.trace.kineto.remote import is_url

_ENDINGS = (".json", ".csv", ".db")
_MOST_BYTES = 1 << 29
"""Of one table; larger ones are told as failures."""
_T = TypeVar("_T")


@dataclass(slots=True)
class Cluster:
    """What the tables of a run tell."""

    ranks: dict[int, AscendRank] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    world_size: int = 0
    """As the metadata tell; 0 where they do not."""
    steps: set[int] = field(default_factory=set)
    """All that there are, whether asked for or not."""

    def add(self, other: Cluster) -> None:
        """Takes the ranks of another folder in; those that are here already stay, and the others are told."""
        for rank, summary in other.ranks.items():
            own = self.ranks.setdefault(rank, summary)
            if own.folder != summary.folder:
                why = f"{summary.folder}: claims to be rank {rank}, which {own.folder} is; left out"
                self.failures.append(Failure(path=summary.folder, rank=rank, message=why))
        self.failures += [one for one in other.failures if one not in self.failures]
        self.world_size = max(self.world_size, other.world_size)
        self.steps |= other.steps


def find_cluster(path: str, step: int | None = None) -> Cluster:
    """What is found below a folder; nothing where no rank of an Ascend run lies there.

    Ranks without a number have the first that are free. What is damaged is told and left out.

    Args:
        path: a folder, or an fsspec URL of one.
        step: only this step.
    """
    found = Cluster()
    try:
        files = list_files(rank_folder_of(path), _ENDINGS)
    except DeepScopeError:
        return found
    folders = rank_folders(files)
    taken = {one.rank for one in folders}
    free = (number for number in range(len(taken) + len(folders) + 1) if number not in taken)
    for folder in folders:
        rank = next(free) if folder.rank is None else folder.rank
        found.ranks[rank] = _Reader(found, folder, rank, step).read()
    newest = {file.name: file for file in sorted(files, key=lambda one: one.mtime_ns) if file.name in CLUSTER_FILES}
    if newest:
        _add_output(found, newest, step)
    return found


def _add_output(found: Cluster, files: dict[str, TraceFile], step: int | None) -> None:
    """What msprof-analyze tells of ranks that have no such table of their own."""
    texts = {name: _try(found, file, None, bytes, b"") for name, file in files.items()}
    summaries, damaged, steps = read_cluster_output({name: text for name, text in texts.items() if text}, step)
    found.failures += [Failure(path=files[name].path, message=f"{files[name].path}: {why}") for name, why in damaged]
    found.steps |= steps
    own_links = any(one.links for one in found.ranks.values())
    for rank, other in summaries.items():
        mine = found.ranks.setdefault(rank, AscendRank(folder=other.folder or next(iter(files.values())).folder))
        mine.steps = mine.steps or other.steps
        mine.calls = mine.calls or other.calls
        mine.links = mine.links if own_links else other.links
        mine.groups = mine.groups or other.groups


class _Reader:
    """Reads the tables of one rank."""

    def __init__(self, cluster: Cluster, folder: RankFolder, rank: int, step: int | None) -> None:
        self._cluster, self._folder, self._rank, self._step = cluster, folder, rank, step

    def read(self) -> AscendRank:
        """All that its tables tell."""
        step_times, communication, matrix, database = RANK_FILES
        steps: list[AscendStep] = self._table(step_times, read_steps, [])
        self._cluster.steps |= {one.step for one in steps}
        found = AscendRank(
            folder=self._folder.path,
            steps=[one for one in steps if self._step is None or one.step == self._step],
            calls=self._table(communication, lambda text: read_calls(text, self._step), []),
            links=self._table(matrix, lambda text: read_links(text, self._step), []),
        )
        metadata = self._table(METADATA, decoded, None)
        found.groups = groups_of(metadata)
        arguments = metadata.get("distributed_args") if isinstance(metadata, dict) else None
        size = rank_of(arguments.get("world_size")) if isinstance(arguments, dict) else None
        last = max((rank for group in found.groups for rank in group.ranks), default=-1)
        self._cluster.world_size = max(self._cluster.world_size, size or 0, last + 1)
        if database in self._folder.files and not (found.steps and found.calls and found.links):
            self._add_database(found, self._folder.files[database])
        return found

    def _table(self, name: str, read: Callable[[bytes], _T], nothing: _T) -> _T:
        file = self._folder.files.get(name)
        return nothing if file is None else _try(self._cluster, file, self._rank, read, nothing)

    def _add_database(self, found: AscendRank, file: TraceFile) -> None:
        """What the text files do not tell."""
        if is_url(file.path):
            why = f"{file.path}: a database is read on this machine alone; copy it, or export text"
            self._cluster.failures.append(Failure(path=file.path, rank=self._rank, message=why))
            return
        try:
            steps, calls, links = read_database(file.path, self._step)
        except ValueError as error:
            self._cluster.failures.append(Failure(path=file.path, rank=self._rank, message=f"{file.path}: {error}"))
            return
        self._cluster.steps |= {one.step for one in steps}
        found.steps = found.steps or [one for one in steps if self._step is None or one.step == self._step]
        found.calls, found.links = found.calls or calls, found.links or links


def _try(cluster: Cluster, file: TraceFile, rank: int | None, read: Callable[[bytes], _T], nothing: _T) -> _T:
    """What is read of a file; a failure is told."""
    try:
        with open_file(file) as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError("larger than 512 MiB")  # noqa: TRY301
        return read(text)
    except (OSError, ValueError, DeepScopeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        cluster.failures.append(Failure(path=file.path, rank=rank, message=f"{file.path}: {reason}"))
        return nothing
