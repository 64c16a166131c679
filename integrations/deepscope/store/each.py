"""A map over traces: from the files of several ranks to what is wanted of each, or why it cannot be had.

Answers come from the cache where it has them, else from processes, from a Dask cluster or from this process. Each trace
is read alone and let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepscope.errors import DeepScopeError, OptionError, TraceError, in_words
from deepscope.processes import Progress
from deepscope.records import View
from deepscope.store.cache import Kind, prune, save_body
from deepscope.store.files import TraceFile
from deepscope.store.pool import Got, ReadAnswer, RequestProgress, answers_of_processes, workers_for
from deepscope.store.requests import FilesProgress, ReadRequest, answer, kept_answer, trace_error


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of each trace."""

    kind: Kind
    view: View
    partial: bool = False
    cache: bool = True
    scheduler: str = ""
    """The address of a Dask scheduler whose workers read; "" for this machine."""


def read_each(
    files: Sequence[TraceFile], wanted: Wanted, *, progress: Progress | None = None
) -> list[bytes | TraceError]:
    """For each file the record that is wanted, encoded; or the reason why its trace cannot be read.

    A trace without the step that is wanted is such a one, where another one has it.

    Raises:
        OptionError: no trace has such a step.
        DeepScopeError: what is no matter of one trace: a missing extra, say.
    """
    requests = [ReadRequest(file, wanted.kind, wanted.view, wanted.partial, wanted.cache) for file in files]
    account = _Account(progress, files)
    found: list[ReadAnswer | None] = []
    for index, request in enumerate(requests):
        found.append(kept_answer(request))
        if found[index] is not None:
            account.answered(index, request.file.size_bytes)
    missing = [index for index, one in enumerate(found) if one is None]

    def got(place: int, one: ReadAnswer) -> None:
        found[missing[place]] = one
        account.answered(missing[place], files[missing[place]].size_bytes)

    try:
        _elsewhere(
            [requests[index] for index in missing], wanted, got, lambda at, done: account.advance(missing[at], done)
        )
        for index in missing:
            if found[index] is None:
                found[index] = _read_here(requests[index], account.of_file(index))
                account.answered(index, files[index].size_bytes)
    finally:
        if missing and wanted.cache:
            prune()
    has_some = any(isinstance(answered, bytes) for answered in found)
    return [_one(answered, file, has_some=has_some) for answered, file in zip(found, files, strict=True)]


def _elsewhere(requests: Sequence[ReadRequest], wanted: Wanted, got: Got, on_progress: RequestProgress) -> None:
    """Has a cluster or processes answer; what gets no answer is left to this process."""
    if wanted.scheduler and requests:
        from deepscope.store.cluster import answers_of_cluster

        def kept(place: int, one: ReadAnswer) -> None:
            request = requests[place]
            if wanted.cache and isinstance(one, bytes):
                save_body(request.kind, request.file, one, request.view, partial=request.partial)
            got(place, one)

        answers_of_cluster(wanted.scheduler, requests, got=kept)
    elif (workers := workers_for([request.file for request in requests])) > 1:
        answers_of_processes(requests, workers=workers, got=got, progress=on_progress)


def _read_here(request: ReadRequest, progress: Progress | None) -> ReadAnswer:
    try:
        return answer(request, progress, workers=None)
    except (DeepScopeError, MemoryError) as error:
        return error if isinstance(error, DeepScopeError) else trace_error(request.file, error)


def _one(answered: ReadAnswer | None, file: TraceFile, *, has_some: bool) -> bytes | TraceError:
    assert answered is not None
    if isinstance(answered, OptionError) and has_some:
        return TraceError(f"{file.path}: {answered.message(in_words)}")
    if isinstance(answered, DeepScopeError) and not isinstance(answered, TraceError):
        raise answered
    return answered


class _Account:
    """Adds up the progress of several files."""

    def __init__(self, progress: Progress | None, files: Sequence[TraceFile]) -> None:
        self._progress = progress
        self._counting = progress if isinstance(progress, FilesProgress) else None
        self._done = [0] * len(files)
        self._files_done = 0
        self._sum = 0
        self._total = sum(file.size_bytes for file in files)

    def answered(self, index: int, size_bytes: int) -> None:
        """A file has its answer."""
        self._files_done += 1
        if self._counting is not None:
            self._counting.files_done(self._files_done, len(self._done))
        self.advance(index, size_bytes)

    def advance(self, index: int, done: int) -> None:
        """So many bytes of a file are done."""
        self._sum += done - self._done[index]
        self._done[index] = done
        if self._progress is not None:
            self._progress(self._sum, self._total)

    def of_file(self, index: int) -> Progress | None:
        """The callback for reading one file; None where nobody wants to know."""
        return None if self._progress is None else lambda done, _: self.advance(index, done)
