"""New traces: seen by the editor's file watching or by polling, and shown once they are whole."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.errors import DeepScopeError, NoTraceError, TraceError
from deepscope.records import Profile
from deepscope.store.companion_files import join_files_beside
from deepscope.store.selection import TraceSelection
from deepscope.store.worker_process import CancelledLoadError
from deepscope_lsp.answers import State
from deepscope_lsp.engine.discovery import lies_below
from deepscope_lsp.features import loading
from deepscope_lsp.features.editor_requests import refresh, tell_status
from deepscope_lsp.features.trace_search import (
    UNFINISHED_SECONDS,
    TraceSearch,
    age,
    entries_of,
    find_newest,
    find_previous,
    is_perhaps_unfinished,
    read_picked,
    read_previous,
    tell_error,
)

if TYPE_CHECKING:
    from deepscope.store.files import TraceFile
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

log = logging.getLogger("deepscope_lsp")

WATCHED_FACTOR = 10
"""Where the editor watches, looks are so much rarer: it misses what happens in new folders and in far ones."""

IDLE_FACTOR = 20
"""After a look that took a second, the next comes so many seconds later at the earliest."""

FIRST_PAUSE_SECONDS = 0.5
"""After news from the editor, doubled for each look after it: a new folder is reported before it is filled."""


def register(server: DeepScopeServer, watcher: Watcher) -> None:
    """Registers `workspace/didChangeWatchedFiles`."""

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(_: types.DidChangeWatchedFilesParams) -> None:
        watcher.look()


class Watcher:
    """Looks for traces and loads the newest run, one project after the other."""

    def __init__(self, server: DeepScopeServer) -> None:
        self._server = server
        self._nudged = asyncio.Event()
        self._nudged_at = -math.inf
        self._watched: dict[str, TraceSearch] = {}
        self.editor_watches = False
        """Whether the editor reports new files in the workspace."""

    def look(self) -> None:
        """Makes the watcher look now, and again soon."""
        for watched in self._watched.values():
            watched.resolved_at = -math.inf
        self._nudged_at = time.monotonic()
        self._nudged.set()

    def forget(self, project: Project) -> None:
        """Forgets what could not be read: under changed settings it may be readable."""
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
        """As `_check`; what goes wrong with the traces of one folder is logged, and the watcher goes on."""
        try:
            return await self._check(project)
        except Exception as error:
            log.exception("looking for traces in %s failed", project.root)
            tell_error(self._server, project, TraceError(f"{type(error).__name__}: {error}"))
            watched = self._watched.get(project.root)
            project.stamps = (watched.seen if watched is not None else None) or ()
            tell_status(self._server, project, "error", project.error)
            return project.settings.poll_seconds

    async def _check(self, project: Project) -> float | None:
        """Loads what has changed and is at rest; answers after how many seconds to look again, None for never."""
        settings = project.settings
        watched = await self._look_at(project)
        if project.orders or watched.entries != entries_of(project):
            return None  # what somebody asks for comes first; this is called again afterwards
        stamps = watched.seen or ()
        if stamps == project.stamps:  # shown, or tried in vain
            if project.index is None and not stamps:
                tell_status(self._server, project, "none", "no trace found")
            elif project.index is not None and await _has_more(project.index.profile, stamps):
                tell_status(self._server, project, "ready")
                refresh(self._server)
            return self._pause(watched, project)
        if not settings.is_watching and project.index is not None:
            return None
        if stamps == watched.unfinished and age(stamps) < UNFINISHED_SECONDS:
            return min(UNFINISHED_SECONDS, settings.poll_seconds)
        if not self._is_quiet(watched, project):
            return settings.quiet_seconds / 2
        await self._load(project, watched, strict=False)
        return self._pause(watched, project)

    async def _look_at(self, project: Project) -> TraceSearch:
        entries, watched = entries_of(project), self._watched.get(project.root)
        if watched is None or watched.entries != entries:
            watched = self._watched[project.root] = TraceSearch(entries)
        await watched.look(project.root)
        return watched

    def _is_quiet(self, watched: TraceSearch, project: Project) -> bool:
        """Whether nothing was written for a moment: a burst of files is one load, a file being written is let alone."""
        quiet = project.settings.quiet_seconds
        fresh = [stamp for stamp in watched.seen or () if stamp not in project.stamps]
        return age(tuple(fresh)) >= quiet or time.monotonic() - watched.seen_at >= quiet

    def _pause(self, watched: TraceSearch, project: Project) -> float | None:
        settings = project.settings
        if not settings.is_watching:
            return None
        pause = settings.poll_seconds
        if (
            self.editor_watches
            and project.root
            and all(lies_below(folder, project.root) for folder in watched.places.folders)
        ):
            since = time.monotonic() - self._nudged_at
            pause = max(pause, min(WATCHED_FACTOR * pause, max(FIRST_PAUSE_SECONDS, since)))
        return max(pause, IDLE_FACTOR * watched.look_seconds)

    async def _load(self, project: Project, watched: TraceSearch, *, strict: bool) -> None:
        """Loads what was picked, else the newest run that is whole and of code that is here.

        Raises:
            DeepScopeError: only if `strict`: nothing can be loaded.
        """
        settings, stamps = project.settings, watched.seen or ()
        newer: Profile | None = None
        previous: Profile | TraceSelection | None = None
        try:
            profile = await read_picked(self._server, project, watched)
            if profile is None and stamps:
                profile, newer = await find_newest(self._server, project, watched, strict=strict)
                previous = await find_previous(project, watched, profile)
            if profile is None:
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
            if is_perhaps_unfinished(error, stamps):
                watched.unfinished = stamps
                self._tell_ready(project, f"{watched.tried}: still being written")
                return
            tell_error(self._server, project, error)
            project.stamps = stamps if project.settings == settings else ()
            tell_status(self._server, project, "error", project.error)
        else:
            # Where the settings have changed since the load began, it is looked at once more.
            unfinished = watched.passed_over
            tried = tuple(stamp for stamp in stamps if stamp not in unfinished)
            project.stamps = tried if project.settings == settings else ()
            watched.unfinished = stamps if unfinished else None
            kept = previous if isinstance(previous, Profile) else None
            loading.show(self._server, project, profile, newer=newer, previous=kept)
            if unfinished:
                self._tell_ready(project, f"{unfinished[0].path}: still being written")
            if isinstance(previous, TraceSelection):
                self._server.start(read_previous(self._server, project, watched, profile, previous))

    def _tell_ready(self, project: Project, words: str = "") -> None:
        state: State = "ready" if project.index is not None else "error" if project.error else "none"
        tell_status(self._server, project, state, words or (project.error if state == "error" else ""))


async def _has_more(profile: Profile, stamps: tuple[TraceFile, ...]) -> bool:
    """Whether something came beside the traces that are shown: the account of a run that has ended, what was tried."""
    shown = set(profile.trace.paths or [profile.trace.path])
    files = [stamp for stamp in stamps if stamp.path in shown]
    if len(files) < len(shown):
        return False
    return await asyncio.get_running_loop().run_in_executor(None, join_files_beside, profile, files)
