"""Traces in the configured places, the newest first: which of them to load, and their list with its runs."""

from __future__ import annotations

import fnmatch
import os
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deepscope.errors import TraceError
from deepscope.store import cache
from deepscope.store.files import SKIPPED_FOLDERS, TRACE_ENDINGS, TraceFile, list_files, local_file
from deepscope.store.runs import STAGES, FoundTrace, Recognizer
from deepscope.store.selection import TraceSelection, select_from
from deepscope.trace.kineto.remote import is_url
from deepscope_lsp.answers import ListedTrace, Run
from deepscope_lsp.engine.profile_index import mean_step_ns, program_of
from deepscope_lsp.engine.wording import quantities

GLOB_FOLDER_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class SearchPlaces:
    """Where one workspace folder's traces are looked for."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    """Named one by one: taken whatever they are called."""
    matched: tuple[str, ...] = ()
    """Files that a glob names: taken if they are traces."""
    urls: tuple[str, ...] = ()
    """Remote folders: loaded when asked for, never polled."""


def resolve_places(entries: Sequence[str], root: str) -> SearchPlaces:
    """What the setting `deepscope.traces` means in one workspace folder: folders, files, globs and URLs."""
    folders: list[str] = []
    files: list[str] = []
    matched: list[str] = []
    urls: list[str] = []
    for entry in entries:
        if "\0" in entry:  # no file system has such a name
            continue
        if is_url(entry):
            urls.append(entry)
            continue
        path = os.path.join(root, Path(entry).expanduser())  # noqa: PTH118 - an absolute entry stands as it is
        is_glob = any(sign in entry for sign in "*?[")
        for match in _expand(path) if is_glob else [path]:
            place = os.path.normpath(match)
            if not os.path.isfile(match):  # noqa: PTH113
                folders.append(place)
            elif not is_glob:
                files.append(place)
            elif match.endswith(TRACE_ENDINGS):
                matched.append(place)
    folders, files, matched = ([*dict.fromkeys(one)] for one in (folders, files, matched))
    return SearchPlaces(tuple(folders), tuple(files), tuple(matched), tuple(urls))


def lies_below(folder: str, root: str) -> bool:
    """Whether a folder really lies below another one, so that an editor watches it; a link may lead out of it."""
    real_folder, real_root = (os.path.normcase(os.path.realpath(one)) for one in (folder, root))
    return real_folder.startswith(os.path.join(real_root, ""))  # noqa: PTH118


def patterns_of(entries: Sequence[str]) -> list[str]:
    """Globs of all that lies below the settings' places, for an editor that watches the workspace folders."""
    inside = [entry for entry in entries if not is_url(entry) and not Path(entry).expanduser().is_absolute()]
    words = ["/".join(part for part in Path(entry).parts if part not in {".", "**"}) for entry in inside]
    return list(dict.fromkeys(f"**/{one}/**" for one in words if one and ".." not in one.split("/")))


def find_traces(places: SearchPlaces, recognizer: Recognizer) -> list[FoundTrace]:
    """All traces that are there now, the newest first; what cannot be read is not there."""
    named = [file for path in places.files if (file := local_file(path)) is not None]
    listed = {path: file for path in places.matched if (file := local_file(path)) is not None}
    for folder in places.folders:
        with suppress(TraceError):
            listed.update((file.path, file) for file in list_files(folder))
    return recognizer.traces(listed.values(), named=named)


def _expand(pattern: str) -> list[str]:
    """Folders and files that a glob names; `**` does not go into hidden folders, environments and packages."""
    anchor, *parts = Path(pattern).parts
    found = [anchor]
    for part in parts:
        if part == "**":
            found = [below for folder in found for below in _folders_below(folder)]
        elif any(sign in part for sign in "*?["):
            found = [os.path.join(folder, name) for folder in found for name in _names(folder, part)]  # noqa: PTH118
        else:
            found = [os.path.join(folder, part) for folder in found]  # noqa: PTH118
    return [path for path in found if os.path.exists(path)]  # noqa: PTH110


def _folders_below(top: str) -> list[str]:
    folders = []
    for folder, names, files in os.walk(top):
        if "pyvenv.cfg" in files:
            names.clear()
            continue
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        folders.append(folder)
        if len(folders) >= GLOB_FOLDER_LIMIT:
            break
    return folders


def _names(folder: str, pattern: str) -> list[str]:
    try:
        return sorted(fnmatch.filter(os.listdir(folder), pattern))  # noqa: PTH208
    except OSError:
        return []


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
        self._alone: list[TraceSelection] = []
        self._rank = rank
        self._stage = stage
        self._broken = broken

    def next(self) -> TraceSelection | None:
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

    def position(self, selection: TraceSelection) -> str:
        """`12 of 56`: how many of the traces were looked at once this selection was; "" where there are no others.

        A rank that is tried alone was looked at before, with the others of its run.
        """
        files = set(selection.files)
        left = sum(one.file not in files for one in self._left)
        return f"{self._total - left} of {self._total}" if self._total > len(files) else ""

    def drop(self, selection: TraceSelection) -> None:
        """One of its files is broken: older windows and runs come next."""
        files = set(selection.files)
        self._left = [one for one in self._left if one.file not in files]
        if len(files) > 1:
            self._alone.extend(TraceSelection((file,), selection.stage) for file in selection.files)

    def drop_run(self, selection: TraceSelection) -> None:
        """It can be read and is not what is wanted; nor is anything else of its run."""
        runs = {one.run for one in self._left if one.file in selection.files}
        self._left = [one for one in self._left if one.run not in runs]


def run_of(path: str, found: Sequence[FoundTrace], *, rank: int | None, stage: str | None) -> TraceSelection | None:
    """The run that a trace belongs to, with all its ranks; None where the trace was not found.

    Raises:
        OptionError: the run has no such stage or rank.
    """
    runs = {one.run for one in found if one.file.path == path}
    own = [one for one in found if one.run in runs]
    return select_from(own, rank=rank, stage=stage) if own else None


def listed_trace(found: FoundTrace, *, is_shown: bool, problem: str = "") -> ListedTrace:
    """One trace; `problem` is what was wrong when it was read."""
    file, head = found.file, found.identity
    kept = cache.load_kept(file, partial=False)
    info = kept.trace if kept is not None else None
    step_ns = mean_step_ns(kept) if kept is not None else None
    return ListedTrace(
        path=file.path,
        name=file.name,
        size_bytes=file.size_bytes,
        size_words=quantities.size(file.size_bytes),
        recorded_ns=found.time_ns,
        run=f"{found.run.folder}#{found.run.word}",
        program=head.program or (program_of(kept) if kept is not None else ""),
        step_ns=step_ns,
        step_time_words=_step_time_words(step_ns),
        rank=head.rank if head.rank is not None else (info.ranks[0] if info is not None and info.ranks else None),
        world_size=head.world_size,
        window=head.window,
        stage=head.stage or (info.stage if info is not None else ""),
        device=info.device if info is not None else "",
        commit=info.git_commit if info is not None else "",
        selected=is_shown,
        problem=problem or ("it does not begin as a trace does" if found.is_lost else ""),
    )


def runs_of(traces: Sequence[ListedTrace]) -> list[Run]:
    """Traces by their runs, the newest first."""
    groups: dict[str, list[ListedTrace]] = defaultdict(list)
    for trace in sorted(traces, key=lambda trace: (-trace.recorded_ns, trace.name)):
        groups[trace.run].append(trace)
    return [_run(name, members) for name, members in groups.items()]


def _run(name: str, traces: list[ListedTrace]) -> Run:
    return Run(
        id=name,
        recorded_ns=traces[0].recorded_ns,
        program=next((trace.program for trace in traces if trace.program), ""),
        step_time_words=_step_time_words(_mean_step_ns(traces)),
        ranks=len({trace.rank for trace in traces}),
        selected=any(trace.selected for trace in traces),
        traces=traces,
    )


def _mean_step_ns(traces: Sequence[ListedTrace]) -> float | None:
    """The mean over the ranks, from the newest trace of each that was read; of the training, if it is among them."""
    recorded = {trace.stage for trace in traces}
    stage = next((one for one in STAGES if one in recorded), None)
    of_rank: dict[int | None, int] = {}
    for trace in traces:
        if trace.step_ns is not None and stage in {None, trace.stage}:
            of_rank.setdefault(trace.rank, trace.step_ns)
    return sum(of_rank.values()) / len(of_rank) if of_rank else None


def _step_time_words(step_ns: float | None) -> str:
    return "" if step_ns is None else f"{quantities.duration(step_ns)} a step"
