"""Which run is shown: what was picked, else the newest that is whole and whose code is here; and the run before."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.comparison.pairing import is_same_program
from deepscope.errors import DeepScopeError, NotATraceError, OptionError, TraceError, TruncatedTraceError
from deepscope.printable import without_secrets
from deepscope.records import Profile
from deepscope.store.files import local_file
from deepscope.store.load import cached_profile
from deepscope.store.runs import FoundTrace, Recognizer
from deepscope.store.selection import TraceSelection
from deepscope.store.worker_process import CancelledLoadError, Loader
from deepscope_lsp.engine.discovery import Candidates, SearchPlaces, find_traces, resolve_places, run_of
from deepscope_lsp.engine.settings import in_settings
from deepscope_lsp.features import loading
from deepscope_lsp.features.editor_requests import refresh, tell_status

if TYPE_CHECKING:
    from deepscope.store.files import TraceFile
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

UNFINISHED_SECONDS = 20.0
"""A trace that ends early and was written so recently is taken for one that is still being written."""

PLACES_SECONDS = 15.0
"""Globs are looked through again after this time."""


@dataclass
class TraceSearch:
    """The search of one project."""

    entries: tuple[str, ...]
    """The places of the settings, or what was picked; `places` is what they mean."""
    places: SearchPlaces = field(default_factory=lambda: SearchPlaces((), ()))
    resolved_at: float = -math.inf
    recognizer: Recognizer = field(default_factory=Recognizer)
    found: tuple[FoundTrace, ...] = ()
    seen: tuple[TraceFile, ...] | None = None
    """The files of `found`; None before the first look."""
    seen_at: float = 0.0
    look_seconds: float = 0.0
    """How long the last look took."""
    unfinished: tuple[TraceFile, ...] | None = None
    """The traces that were there when the newest was not whole yet; looked at again when they change, or it is old."""
    passed_over: tuple[TraceFile, ...] = ()
    """Of these, those that an older one is shown in place of."""
    tried: str = ""
    """The path that was loaded last."""
    broken: set[tuple[TraceFile, ...]] = field(default_factory=set)
    """What could not be read, in just these versions: never tried again."""

    async def look(self, root: str) -> None:
        """Looks for traces; places are relative to `root`."""
        loop = asyncio.get_running_loop()
        now = time.monotonic()
        if now - self.resolved_at > PLACES_SECONDS:
            self.resolved_at = now  # before the work: whoever resets it meanwhile wants the work done again
            self.places = await loop.run_in_executor(None, resolve_places, self.entries, root or str(Path.cwd()))
        started = time.monotonic()
        found = await loop.run_in_executor(None, find_traces, self.places, self.recognizer)
        self.passed_over = ()
        self.look_seconds = time.monotonic() - started
        seen = tuple(one.file for one in found)
        if seen != self.seen:
            self.found, self.seen, self.seen_at = tuple(found), seen, now


def entries_of(project: Project) -> tuple[str, ...]:
    """Where traces are looked for: what was picked, else the settings' places."""
    settings, memory = project.settings, project.remembered.memory
    picked = settings.show.trace or ("" if memory.is_run else memory.trace)
    if picked:
        return (picked,)
    # Without a workspace folder there is nothing that relative places could be relative to.
    return settings.traces if project.root else tuple(one for one in settings.traces if os.path.isabs(one))  # noqa: PTH117


def age(stamps: tuple[TraceFile, ...]) -> float:
    """Seconds since the last write to any of them."""
    return time.time() - max((stamp.mtime_ns for stamp in stamps), default=0) / 1e9


def is_perhaps_unfinished(error: DeepScopeError, stamps: tuple[TraceFile, ...]) -> bool:
    """Whether an error may be that of a trace that is still being written."""
    return isinstance(error, TruncatedTraceError | NotATraceError) and age(stamps) < UNFINISHED_SECONDS


EARLIER_RUNS = 20
"""At most so many earlier runs are looked at for one of the same program."""

FOREIGN_RUNS = 20
"""At most so many of the newest runs are looked at for one whose code is here."""


async def read_picked(server: DeepScopeServer, project: Project, watched: TraceSearch) -> Profile | None:
    """The user's choice as it is, or a remote folder where nothing is here; None where neither is asked for.

    Raises:
        DeepScopeError: it cannot be read.
    """
    places, memory = watched.places, project.remembered.memory
    if project.settings.show.trace or (memory.trace and not memory.is_run):
        path = next(iter([*places.files, *places.folders, *places.urls]), "")
    elif memory.trace:
        show = project.settings.show
        selection = run_of(memory.trace, watched.found, rank=show.rank, stage=show.stage)
        return await _read(server, project, watched, memory.trace, selection)
    else:
        path = "" if watched.seen else next(iter(places.urls), "")
    return await _read(server, project, watched, path) if path else None


async def find_newest(
    server: DeepScopeServer, project: Project, watched: TraceSearch, *, strict: bool
) -> tuple[Profile, Profile | None]:
    """The newest run that can be read and whose code is here, and the newest of all where that is another one.

    Unless `strict`, a newer one that may be still being written is passed over.

    Raises:
        DeepScopeError: none can be read, or the newest is not whole yet and what comes after it is shown already.
    """
    show = project.settings.show
    candidates = Candidates(watched.found, rank=show.rank, stage=show.stage, broken=watched.broken)
    problem: DeepScopeError | None = None
    elsewhere: list[Profile] = []
    while len(elsewhere) < FOREIGN_RUNS and (selection := candidates.next()) is not None:
        if problem is not None and watched.passed_over and _is_shown(project, selection):
            raise problem
        count = candidates.position(selection)
        try:
            profile = await _read(server, project, watched, selection.files[0].path, selection, count=count)
        except (CancelledLoadError, OptionError):
            raise
        except DeepScopeError as error:
            if not strict and is_perhaps_unfinished(error, selection.files):
                watched.passed_over += selection.files
            else:
                if problem is None and not elsewhere:
                    tell_error(server, project, error)
                watched.broken.add(selection.files)
            problem = problem or error
            candidates.drop(selection)
        else:
            roots = server.session.roots
            loop = asyncio.get_running_loop()
            if not project.root or await loop.run_in_executor(None, project.is_here, profile, roots):
                return profile, elsewhere[0] if elsewhere else None
            elsewhere.append(profile)
            candidates.drop_run(selection)
    if elsewhere:
        return elsewhere[0], None
    raise problem or TraceError(project.error or "none of the traces can be read")


async def find_previous(project: Project, watched: TraceSearch, profile: Profile) -> Profile | TraceSelection | None:
    """The run before, of the same program; its selection where it was never read, None where there is none."""
    if not project.wants_previous:
        return None
    earlier = earlier_traces(watched.found, profile)
    candidates = Candidates(earlier, rank=project.settings.show.rank, stage=None, broken=watched.broken)
    loop = asyncio.get_running_loop()
    for _ in range(EARLIER_RUNS):
        try:
            selection = candidates.next()
            if selection is None:
                return None
            request = loading.request_for(project, selection.files[0].path, selection)
            kept = await loop.run_in_executor(None, cached_profile, request)
        except DeepScopeError:
            return None
        if kept is None:
            return selection
        if is_same_program(kept, profile):
            return kept
        candidates.drop_run(selection)
    return None


async def read_previous(
    server: DeepScopeServer, project: Project, watched: TraceSearch, profile: Profile, selection: TraceSelection
) -> None:
    """Reads earlier runs while the newest one is looked at, until one is of the same program."""
    found: Profile | TraceSelection | None = selection
    tried: list[TraceSelection] = []
    while isinstance(found, TraceSelection) and found not in tried:
        tried.append(found)
        loader = Loader(loading.request_for(project, found.files[0].path, found))
        try:
            previous = await asyncio.get_running_loop().run_in_executor(None, loader.load)
        except asyncio.CancelledError:
            loader.cancel()
            raise
        except DeepScopeError as error:
            watched.broken.add(found.files)
            _mark_unreadable(project, found.files[0].path, found, error)
            previous = None
        if project.index is None or project.index.profile is not profile:
            return
        is_it = previous is not None and is_same_program(previous, profile)
        found = previous if is_it else await find_previous(project, watched, profile)
    if isinstance(found, Profile) and project.index is not None and project.index.profile is profile:
        project.compare_with_previous(found)
        refresh(server)
        tell_status(server, project, "ready")


def tell_error(server: DeepScopeServer, project: Project, error: DeepScopeError) -> None:
    """Keeps what went wrong, and says it."""
    project.error = error.message(in_settings)
    server.say(types.MessageType.Error, f"DeepScope: {project.error}")


def _is_shown(project: Project, selection: TraceSelection) -> bool:
    """Whether just these versions of traces are shown."""
    if project.index is None or not set(selection.files) <= set(project.stamps):
        return False
    info = project.index.profile.trace
    return [without_secrets(file.path) for file in selection.files] == (info.paths or [info.path])


async def _read(
    server: DeepScopeServer,
    project: Project,
    watched: TraceSearch,
    path: str,
    selection: TraceSelection | None = None,
    *,
    count: str = "",
) -> Profile:
    watched.tried = path
    tell_status(server, project, "loading", f"{count}: {path}" if count else path)
    try:
        return await loading.load(server, project, loading.request_for(project, path, selection))
    except (CancelledLoadError, OptionError):
        raise
    except DeepScopeError as error:
        _mark_unreadable(project, path, selection, error)
        raise


def _mark_unreadable(project: Project, path: str, selection: TraceSelection | None, error: DeepScopeError) -> None:
    files = selection.files if selection is not None else [file for file in [local_file(path)] if file is not None]
    words = error.message(in_settings)
    named = [file for file in files if file.path in words] or list(files)
    project.unreadable.update(dict.fromkeys(named, words))


def earlier_traces(found: Sequence[FoundTrace], profile: Profile) -> list[FoundTrace]:
    """Traces of earlier runs that state the same script and arguments in their heads; in the order of `found`."""
    own = set(profile.trace.paths or [profile.trace.path])
    shown = [one for one in found if without_secrets(one.file.path) in own]
    stated = profile.trace.program, profile.trace.arguments
    if not shown or not all(stated):
        return []
    runs, recorded_ns = {one.run for one in shown}, min(one.time_ns for one in shown)
    return [
        one
        for one in found
        if one.run not in runs
        and one.time_ns < recorded_ns
        and one.identity.stage == shown[0].identity.stage
        and (one.identity.program, one.identity.arguments) == stated
    ]
