"""The search for traces in one workspace folder: where to look, what was found, what was tried."""

from __future__ import annotations

import asyncio
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deepscope.errors import DeepScopeError, NotATraceError, TruncatedTraceError
from deepscope.store.recognition import FoundTrace, Recognizer
from deepscope_lsp.engine.discovery import SearchPlaces, find_traces, resolve_places

if TYPE_CHECKING:
    from deepscope.store.files import TraceFile
    from deepscope_lsp.engine.project import Project

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
