"""Which of many files are traces: each version of a file is looked into once, and the answer kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deepscope.store.files import TraceFile
from deepscope.store.identity import Identity, identify

__all__ = ["FoundTrace", "Recognizer", "RunKey"]


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
    def newest_first(self) -> tuple[int, int, int, str]:
        """The key to sort by: a copy's date says nothing of what is in it, so it only decides between equals."""
        return -self.time_ns, -self.file.named_ns, -self.file.mtime_ns, self.file.path


class Recognizer:
    """Remembers what each file was found to be, by path, size and date."""

    def __init__(self) -> None:
        self._known: dict[TraceFile, Identity | None] = {}

    def traces(self, files: Iterable[TraceFile], *, named: Iterable[TraceFile] = ()) -> list[FoundTrace]:
        """The traces among `files`, by their first bytes, and all of `named`; the newest first.

        A file named like a trace counts as one; its reader says what is wrong with it. What is known of other files is
        forgotten.
        """
        before, self._known = self._known, {}
        known: dict[TraceFile, Identity | None] = {}
        found: dict[str, FoundTrace] = {}
        taken = set(named)
        for file in (*taken, *files):
            what = before.get(file)
            if file not in before or (what is None and file in taken):
                what = identify(file)
            is_trace = what is not None and (what.looks_like_trace or file.is_named_trace or file in taken)
            known[file] = what if is_trace else None
            if what is not None and is_trace:
                found[file.path] = FoundTrace(file=file, identity=what, run=_run_of(file, what))
        self._known = known
        return sorted(found.values(), key=lambda one: one.newest_first)


def _run_of(file: TraceFile, what: Identity) -> RunKey:
    if what.run_id:
        return RunKey("", what.run_id)
    if what.world_size > 1 or what.rank is not None:
        # A rank's file is named by host and process id: their digits differ between the ranks of a run.
        return RunKey(file.folder, f"{what.world_size} of {what.worker_pattern}")
    return RunKey(file.folder, what.worker)
