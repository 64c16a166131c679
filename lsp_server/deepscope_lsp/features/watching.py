"""New traces: seen by the editor's file watching or by polling, and shown once they are whole."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.errors import (
    DeepScopeError,
    NotATraceError,
    NoTraceError,
    OptionError,
    TraceError,
    TruncatedTraceError,
)
from deepscope.records import Profile
from deepscope.store.recognition import FoundTrace, Recognizer
from deepscope.store.runs import Selection
from deepscope_lsp.engine.candidates import Candidates
from deepscope_lsp.engine.discovery import Places, find_traces, lies_below, resolve_places
from deepscope_lsp.engine.loading import CancelledLoadError, Loader, cached_profile
from deepscope_lsp.engine.previous import earlier_traces, is_same_program
from deepscope_lsp.engine.wording import in_settings
from deepscope_lsp.features import loading
from deepscope_lsp.features.refreshing import refresh, tell_status

if TYPE_CHECKING:
    from deepscope.store.files import TraceFile
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

__all__ = ["Watcher", "register"]

log = logging.getLogger("deepscope_lsp")

UNFINISHED_SECONDS = 20.0
"""A trace that ends early and was written so recently is taken for one that is still being written."""

PLACES_SECONDS = 15.0
"""Globs are looked through again after this time."""

WATCHED_FACTOR = 10
"""So much rarer are looks where the editor watches: it misses what happens in folders that are new, or far away."""

IDLE_FACTOR = 20
"""A look that took a second is followed by none for so many."""

FIRST_PAUSE_SECONDS = 0.5
"""After what the editor told; later looks come at doubled distances: a new folder is told of before it is filled."""

EARLIER_RUNS = 20
"""So many runs before the newest are looked at for one of the same program."""

FOREIGN_RUNS = 20
"""So many of the newest runs are looked at for one whose code is here."""


def register(server: DeepScopeServer) -> None:
    """Registers `workspace/didChangeWatchedFiles` and the watcher itself."""
    server.watcher = Watcher(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(_: types.DidChangeWatchedFilesParams) -> None:
        server.watcher.look()


@dataclass
class Watched:
    """What the watcher knows of one project."""

    entries: tuple[str, ...]
    """Of the settings, or what was picked; `places` is what they mean."""
    places: Places
    resolved_at: float
    recognizer: Recognizer = field(default_factory=Recognizer)
    found: tuple[FoundTrace, ...] = ()
    seen: tuple[TraceFile, ...] | None = None
    """The files of `found`; None before the first look."""
    seen_at: float = 0.0
    look_seconds: float = 0.0
    """What the last look took."""
    unfinished: tuple[TraceFile, ...] | None = None
    """Traces of which the newest is not whole yet: looked at again when they change, or when it is old."""
    tried: str = ""
    """The path that was loaded last."""
    broken: set[tuple[TraceFile, ...]] = field(default_factory=set)
    """What could not be read, in just these versions: never tried again."""


class Watcher:
    """Looks for traces and loads the newest run, one project after the other."""

    def __init__(self, server: DeepScopeServer) -> None:
        self._server = server
        self._nudged = asyncio.Event()
        self._nudged_at = -math.inf
        self._watched: dict[str, Watched] = {}
        self.editor_watches = False
        """Whether the editor reports new files in the workspace."""

    def look(self) -> None:
        """Has the watcher look now, and again soon."""
        for watched in self._watched.values():
            watched.resolved_at = -math.inf
        self._nudged_at = time.monotonic()
        self._nudged.set()

    def forget(self, project: Project) -> None:
        """What could not be read may be readable now: the settings have changed."""
        self._watched.pop(project.root, None)

    async def run(self) -> None:
        """Looks until the server ends."""
        while True:
            self._nudged.clear()
            waits = [await self._check_safely(project) for project in list(self._server.session.projects)]
            timeout = min((wait for wait in waits if wait is not None), default=None)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), timeout)

    async def load_newest(self, project: Project) -> None:
        """Finds and loads what is to be shown, at once.

        Raises:
            DeepScopeError: it cannot be loaded.
        """
        self._watched.pop(project.root, None)  # a folder that was not there may be there now
        project.orders += 1
        try:
            await self._load(project, await self._look_at(project), strict=True)
        finally:
            project.orders -= 1
            self._nudged.set()

    async def _check_safely(self, project: Project) -> float | None:
        """What goes wrong with the traces of one folder is logged, and the looking goes on."""
        try:
            return await self._check(project)
        except Exception as error:
            log.exception("looking for traces in %s failed", project.root)
            self._tell_error(project, TraceError(f"{type(error).__name__}: {error}"))
            watched = self._watched.get(project.root)
            project.stamps = (watched.seen if watched is not None else None) or ()
            tell_status(self._server, project, "error", project.error)
            return project.settings.watch_poll_seconds

    async def _check(self, project: Project) -> float | None:
        """Loads what has changed and is at rest; answers after how many seconds to look again, None for never."""
        settings = project.settings
        watched = await self._look_at(project)
        if project.orders or watched.entries != self._entries(project):
            return None  # what somebody asks for comes first; this is called again afterwards
        stamps = watched.seen or ()
        if stamps == project.stamps:  # shown, or tried in vain
            if project.index is None and not stamps:
                tell_status(self._server, project, "none", "no trace found")
            return self._pause(watched, project)
        if not settings.watch_enabled and project.index is not None:
            return None
        if stamps == watched.unfinished and _age(stamps) < UNFINISHED_SECONDS:
            return min(UNFINISHED_SECONDS, settings.watch_poll_seconds)
        if not self._is_quiet(watched, project):
            return settings.watch_quiet_seconds / 2
        await self._load(project, watched, strict=False)
        return self._pause(watched, project)

    async def _look_at(self, project: Project) -> Watched:
        loop = asyncio.get_running_loop()
        now = time.monotonic()
        watched, entries = self._watched.get(project.root), self._entries(project)
        if watched is None or watched.entries != entries or now - watched.resolved_at > PLACES_SECONDS:
            places = await loop.run_in_executor(None, resolve_places, entries, project.root or str(Path.cwd()))
            if watched is None or watched.entries != entries:
                watched = Watched(entries, places, now)
            else:
                watched = replace(watched, places=places, resolved_at=now)
            if entries == self._entries(project):
                self._watched[project.root] = watched
        started = time.monotonic()
        found = await loop.run_in_executor(None, find_traces, watched.places, watched.recognizer)
        watched.look_seconds = time.monotonic() - started
        seen = tuple(one.file for one in found)
        if seen != watched.seen:
            watched.found, watched.seen, watched.seen_at = tuple(found), seen, now
        return watched

    def _entries(self, project: Project) -> tuple[str, ...]:
        settings = project.settings
        chosen = settings.trace or project.remembered.memory.trace
        if chosen:
            return (chosen,)
        # Without a workspace folder there is nothing that relative places could be relative to.
        return settings.traces if project.root else tuple(one for one in settings.traces if os.path.isabs(one))  # noqa: PTH117

    def _is_quiet(self, watched: Watched, project: Project) -> bool:
        """Whether nothing was written for a moment: a burst of files is one load, a file being written is let alone."""
        quiet = project.settings.watch_quiet_seconds
        fresh = [stamp for stamp in watched.seen or () if stamp not in project.stamps]
        return _age(tuple(fresh)) >= quiet or time.monotonic() - watched.seen_at >= quiet

    def _pause(self, watched: Watched, project: Project) -> float | None:
        settings = project.settings
        if not settings.watch_enabled:
            return None
        pause = settings.watch_poll_seconds
        if (
            self.editor_watches
            and project.root
            and all(lies_below(folder, project.root) for folder in watched.places.folders)
        ):
            since = time.monotonic() - self._nudged_at
            pause = max(pause, min(WATCHED_FACTOR * pause, max(FIRST_PAUSE_SECONDS, since)))
        return max(pause, IDLE_FACTOR * watched.look_seconds)

    async def _load(self, project: Project, watched: Watched, *, strict: bool) -> None:
        """Loads what was picked, else the newest run that is whole and of code that is here.

        Raises:
            DeepScopeError: only if `strict`: nothing can be loaded.
        """
        settings, stamps = project.settings, watched.seen or ()
        picked = self._picked(project, watched)
        newer: Profile | None = None
        try:
            if picked:
                profile = await self._read(project, watched, picked)
            elif stamps:
                profile, newer = await self._newest(project, watched, strict=strict)
            else:
                project.stamps = stamps
                gone = "the trace is gone; its numbers stay until another is found"
                self._tell_ready(project, gone if project.index else "no trace found")
                if strict:
                    looked = ", ".join(watched.places.folders + watched.places.files) or "the settings"
                    raise NoTraceError(f"no trace in {looked}")
                return
        except CancelledLoadError as error:
            if project.loader is None and (strict or not project.orders):  # no other load took its place
                project.stamps = stamps
                self._tell_ready(project, str(error))
            if strict:
                raise
        except DeepScopeError as error:
            if strict:
                self._tell_ready(project)
                raise
            if self._may_be_unfinished(error, stamps):
                watched.unfinished = stamps
                self._tell_ready(project, f"{watched.tried}: still being written")
                return
            self._tell_error(project, error)
            project.stamps = stamps if project.settings == settings else ()
            tell_status(self._server, project, "error", project.error)
        else:
            # Under other settings since it was begun: it is looked at once more.
            project.stamps = stamps if project.settings == settings else ()
            watched.unfinished = None
            previous = None if picked else await self._previous(project, watched, profile)
            kept = previous if isinstance(previous, Profile) else None
            loading.show(self._server, project, profile, newer=newer, previous=kept)
            if isinstance(previous, Selection):
                self._server.start(self._read_previous(project, profile, previous))

    async def _newest(self, project: Project, watched: Watched, *, strict: bool) -> tuple[Profile, Profile | None]:
        """The newest run that can be read and whose code is here, and the newest of all where that is another one.

        Raises:
            DeepScopeError: none can be read, or, unless `strict`, the newest is not whole yet.
        """
        settings = project.settings
        candidates = Candidates(watched.found, rank=settings.rank, stage=settings.stage, broken=watched.broken)
        problem: DeepScopeError | None = None
        elsewhere: list[Profile] = []
        while len(elsewhere) < FOREIGN_RUNS and (selection := candidates.next()) is not None:
            try:
                profile = await self._read(project, watched, selection.files[0].path, selection)
            except (CancelledLoadError, OptionError):
                raise
            except DeepScopeError as error:
                is_first = problem is None and not elsewhere
                if is_first and not strict and self._may_be_unfinished(error, watched.seen or ()):
                    raise
                if is_first:
                    self._tell_error(project, error)
                problem = problem or error
                watched.broken.add(selection.files)
                candidates.drop(selection)
            else:
                if not project.root or await self._is_here(project, profile):
                    return profile, elsewhere[0] if elsewhere else None
                elsewhere.append(profile)
                candidates.drop_run(selection)
        if elsewhere:
            return elsewhere[0], None
        raise problem or TraceError(project.error or "none of the traces can be read")

    async def _previous(self, project: Project, watched: Watched, profile: Profile) -> Profile | Selection | None:
        """The run before, of the same program; its selection where it was never read, None where there is none."""
        if not project.wants_previous:
            return None
        settings = project.settings
        earlier = earlier_traces(watched.found, profile)
        candidates = Candidates(earlier, rank=settings.rank, stage=None, broken=watched.broken)
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

    async def _read_previous(self, project: Project, profile: Profile, selection: Selection) -> None:
        """Reads the run before while the newest one is looked at; one that cannot be read is none."""
        loader = Loader(loading.request_for(project, selection.files[0].path, selection))
        try:
            previous = await asyncio.get_running_loop().run_in_executor(None, loader.load)
        except asyncio.CancelledError:
            loader.cancel()
            raise
        except DeepScopeError:
            return
        if project.index is not None and project.index.profile is profile and is_same_program(previous, profile):
            project.compare_with_previous(previous)
            refresh(self._server)
            tell_status(self._server, project, "ready")

    async def _is_here(self, project: Project, profile: Profile) -> bool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, project.is_here, profile, self._server.session.roots)

    async def _read(self, project: Project, watched: Watched, path: str, selection: Selection | None = None) -> Profile:
        watched.tried = path
        tell_status(self._server, project, "loading", path)
        return await loading.load(self._server, project, loading.request_for(project, path, selection))

    def _picked(self, project: Project, watched: Watched) -> str:
        """What is loaded as it is: the user's choice, or a remote folder where nothing is here; "" for none."""
        places = watched.places
        if project.settings.trace or project.remembered.memory.trace:
            return next(iter([*places.files, *places.folders, *places.urls]), "")
        return "" if watched.seen else next(iter(places.urls), "")

    def _tell_error(self, project: Project, error: DeepScopeError) -> None:
        project.error = error.told(in_settings)
        self._server.say(types.MessageType.Error, f"DeepScope: {project.error}")

    def _tell_ready(self, project: Project, words: str = "") -> None:
        state = "ready" if project.index is not None else "error" if project.error else "none"
        tell_status(self._server, project, state, words or (project.error if state == "error" else ""))

    @staticmethod
    def _may_be_unfinished(error: DeepScopeError, stamps: tuple[TraceFile, ...]) -> bool:
        return isinstance(error, TruncatedTraceError | NotATraceError) and _age(stamps) < UNFINISHED_SECONDS


def _age(stamps: tuple[TraceFile, ...]) -> float:
    """Seconds since the last write to any of them."""
    return time.time() - max((stamp.mtime_ns for stamp in stamps), default=0) / 1e9
