"""One workspace folder: its traces, the profile that is shown, the baseline, and where its files lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deepscope.store.profile import Profile
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.discovery import TraceStamp
from deepscope_lsp.engine.loading import Loader
from deepscope_lsp.engine.path_map import PathMap
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.remembered import Remembered
from deepscope_lsp.engine.settings import Settings

__all__ = ["Project"]


@dataclass
class Project:
    """What is known of one workspace folder."""

    root: str
    """Absolute; "" for files that are in no workspace folder."""
    remembered: Remembered
    index: ProfileIndex | None = None
    baseline: Baseline | None = None
    baseline_index: ProfileIndex | None = None
    paths: PathMap | None = None
    stamps: tuple[TraceStamp, ...] = ()
    """The traces that were there when the profile was loaded."""
    loader: Loader | None = None
    """The load under way."""
    orders: int = 0
    """Loads that somebody asked for and that are not done."""
    asked: set[str] = field(default_factory=set)
    """Paths about which the user was asked already."""
    picked: dict[str, str] = field(default_factory=dict)
    """Cells of notebooks by URI, and the recorded ones that the user says they are."""
    error: str = ""
    told: dict[str, Any] | None = None
    """The status that the editor was told last."""

    def show(self, profile: Profile, settings: Settings, roots: list[str]) -> None:
        """Makes a profile the one that is shown."""
        self.index = ProfileIndex(profile)
        self.error = ""
        self.asked.clear()
        self.map_paths(settings, roots)
        self._compare()

    def map_paths(self, settings: Settings, roots: list[str]) -> None:
        """Starts the path mapping anew from settings and memory."""
        if self.index is None:
            return
        profile = self.index.profile
        self.paths = PathMap(
            files={path: profile.files.get(path) for path in self.index.files},
            project_root=profile.trace.project_root,
            roots=[self.root, *(root for root in roots if root != self.root)] if self.root else list(roots),
            prefixes={**self.remembered.memory.path_mappings, **settings.path_mappings},
        )

    def compare_with(self, profile: Profile | None) -> None:
        """Sets or clears the baseline."""
        self.baseline_index = None if profile is None else ProfileIndex(profile)
        self._compare()

    def learn(self, lesson: dict[str, str]) -> None:
        """Remembers what a match teaches of paths."""
        memory = self.remembered.memory
        if lesson and any(memory.path_mappings.get(recorded) != local for recorded, local in lesson.items()):
            memory.path_mappings.update(lesson)
            self.remembered.save()

    def _compare(self) -> None:
        if self.index is None or self.baseline_index is None:
            self.baseline = None
        else:
            self.baseline = Baseline(self.baseline_index, self.index)
