"""New traces: seen by the editor's file watching or by polling, and shown once they are whole."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.errors import DeepScopeError, NotATraceError, NoTraceError, OptionError, TruncatedTraceError
from deepscope_lsp.engine.discovery import TRACE_SUFFIXES, Places, TraceStamp, find_stamps, lies_below, resolve_places
from deepscope_lsp.engine.loading import CancelledLoadError
from deepscope_lsp.engine.wording import in_settings
from deepscope_lsp.features import loading
from deepscope_lsp.features.refreshing import tell_status

if TYPE_CHECKING:
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

__all__ = ["Watcher", "register"]

UNFINISHED_SECONDS = 20.0
"""A trace that ends early and was written so recently is taken for one that is still being written."""

OLDER_TRACES = 2
"""So many older traces are tried when the newest cannot be read."""

PLACES_SECONDS = 15.0
"""Globs are looked through again after this time."""


def register(server: DeepScopeServer) -> None:
    """Registers `workspace/didChangeWatchedFiles` and the watcher itself."""
    server.watcher = Watcher(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(TRACE_SUFFIXES) for change in params.changes):
            server.watcher.look()


@dataclass
class Watched:
    """What the watcher knows of one project."""

    entries: tuple[str, ...]
    """Of the settings, or what was picked; `places` is what they mean."""
    places: Places
    resolved_at: float
    seen: tuple[TraceStamp, ...] | None = None
    seen_at: float = 0.0
    unfinished: tuple[TraceStamp, ...] | None = None
    """Traces of which the newest is not whole yet: looked at again when they change, or when it is old."""


class Watcher:
    """Looks for traces and loads the newest run, one project after the other."""

    def __init__(self, server: DeepScopeServer) -> None:
        self._server = server
        self._nudged = asyncio.Event()
        self._watched: dict[str, Watched] = {}
        self.editor_watches = False
        """Whether the editor reports new files in the workspace."""

    def look(self) -> None:
        """Has the watcher look now."""
        for watched in self._watched.values():
            watched.resolved_at = -math.inf
        self._nudged.set()

    async def run(self) -> None:
        """Looks until the server ends."""
        while True:
            self._nudged.clear()
            waits = [await self._check(project) for project in list(self._server.session.projects)]
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

    async def _check(self, project: Project) -> float | None:
        """Loads what has changed and is at rest; answers after how many seconds to look again, None for never."""
        settings = self._server.session.settings
        watched = await self._look_at(project)
        if project.orders or watched.entries != self._entries(project):
            return None  # what somebody asks for comes first; this is called again afterwards
        stamps = watched.seen or ()
        if stamps == project.stamps and (project.index is not None or not stamps):
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
        stamps = tuple(await loop.run_in_executor(None, find_stamps, watched.places))
        if stamps != watched.seen:
            watched.seen, watched.seen_at = stamps, now
        return watched

    def _entries(self, project: Project) -> tuple[str, ...]:
        settings = self._server.session.settings
        chosen = settings.trace or project.remembered.memory.trace
        if chosen:
            return (chosen,)
        # Without a workspace folder there is nothing that relative places could be relative to.
        return settings.traces if project.root else tuple(one for one in settings.traces if os.path.isabs(one))  # noqa: PTH117

    def _is_quiet(self, watched: Watched, project: Project) -> bool:
        """Whether nothing was written for a moment: a burst of files is one load, a file being written is let alone."""
        quiet = self._server.session.settings.watch_quiet_seconds
        fresh = [stamp for stamp in watched.seen or () if stamp not in project.stamps]
        return _age(tuple(fresh)) >= quiet or time.monotonic() - watched.seen_at >= quiet

    def _pause(self, watched: Watched, project: Project) -> float | None:
        settings = self._server.session.settings
        if not settings.watch_enabled:
            return None
        if (
            self.editor_watches
            and project.root
            and all(lies_below(folder, project.root) for folder in watched.places.folders)
        ):
            return None
        return settings.watch_poll_seconds

    async def _load(self, project: Project, watched: Watched, *, strict: bool) -> None:
        stamps = watched.seen or ()
        candidates = self._candidates(project, watched)
        if not candidates:
            project.stamps = stamps
            words = "the trace is gone; its numbers stay until another is found" if project.index else "no trace found"
            self._tell_ready(project, words)
            if strict:
                raise NoTraceError(
                    f"no trace in {', '.join(watched.places.folders + watched.places.files) or 'the settings'}"
                )
            return
        tell_status(self._server, project, "loading", candidates[0])
        for place, path in enumerate(candidates):
            try:
                profile = await loading.load(self._server, project, loading.request_for(self._server, path))
            except CancelledLoadError as error:
                if project.loader is not None or (project.orders and not strict):  # another load took its place
                    if strict:
                        raise
                    return
                project.stamps = stamps
                self._tell_ready(project, str(error))
                if strict:
                    raise
                return
            except DeepScopeError as error:
                if strict:
                    self._tell_ready(project)
                    raise
                if place == 0 and self._may_be_unfinished(error, stamps):
                    watched.unfinished = stamps
                    self._tell_ready(project, f"{path}: still being written")
                    return
                project.error = in_settings(str(error))
                self._server.say(types.MessageType.Error, f"DeepScope: {project.error}")
                if isinstance(error, OptionError):  # the settings are at fault, not the trace
                    break
            else:
                project.stamps, watched.unfinished = stamps, None
                loading.show(self._server, project, profile)
                return
        project.stamps = stamps
        tell_status(self._server, project, "error", project.error)

    def _candidates(self, project: Project, watched: Watched) -> list[str]:
        """What to load: what was picked; else the newest trace with all the ranks beside it, then older ones alone."""
        chosen = self._server.session.settings.trace or project.remembered.memory.trace
        if chosen:
            return [*watched.places.files, *watched.places.folders, *watched.places.urls][:1]
        stamps = watched.seen or ()
        if not stamps:
            return list(watched.places.urls[:1])
        newest = stamps[0].path
        first = newest if newest in watched.places.files else os.path.dirname(newest)  # noqa: PTH120
        return [first, *(stamp.path for stamp in stamps[1 : 1 + OLDER_TRACES])]

    def _tell_ready(self, project: Project, words: str = "") -> None:
        state = "ready" if project.index is not None else "error" if project.error else "none"
        tell_status(self._server, project, state, words or (project.error if state == "error" else ""))

    @staticmethod
    def _may_be_unfinished(error: DeepScopeError, stamps: tuple[TraceStamp, ...]) -> bool:
        return isinstance(error, TruncatedTraceError | NotATraceError) and _age(stamps) < UNFINISHED_SECONDS


def _age(stamps: tuple[TraceStamp, ...]) -> float:
    """Seconds since the last write to any of them."""
    return time.time() - max((stamp.mtime_ns for stamp in stamps), default=0) / 1e9
