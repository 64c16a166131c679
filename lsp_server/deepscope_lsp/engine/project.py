"""One workspace folder: its traces, the profile that is shown, the baseline, and where its files lie."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from deepscope.records import Profile
from deepscope.remap import LineMap
from deepscope.remap.diff import shared_ratio
from deepscope.store.cache import cache_folder
from deepscope.store.files import TraceFile
from deepscope.store.runs import Recognizer
from deepscope.store.worker_process import Loader
from deepscope.whole_files import whole_file
from deepscope_lsp.answers import Status
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.path_map import ALIKE_RATIO, PathMap, parts_of
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.settings import Settings
from deepscope_lsp.engine.source_files import UnopenedFiles, lines_on_disk


class RememberedChoices(msgspec.Struct, kw_only=True):
    """The file's content."""

    root: str = ""
    path_mappings: dict[str, str] = {}
    trace: str = ""
    """The trace or folder that was picked; "" for the newest."""
    is_run: bool = False
    """Whether the whole run of that trace was picked, with all its ranks."""
    baseline: str = ""
    hidden: list[str] = []
    """Hidden findings: `code` or `code:path`."""


class Remembered:
    """One workspace folder's memory, in the user's cache folder; losing it costs a question."""

    def __init__(self, root: str) -> None:
        digest = hashlib.blake2b(os.fsencode(root), digest_size=12).hexdigest()
        self._path = cache_folder() / "editor" / f"{digest}.json"
        self.memory = self._read(root)

    def save(self) -> None:
        """Writes what is in `memory`; a folder that cannot be written is no error."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(self._path) as part:  # in ASCII, which has a way to say a name that is not UTF-8
                part.write_text(json.dumps(msgspec.to_builtins(self.memory), indent=2), encoding="ascii")

    def _read(self, root: str) -> RememberedChoices:
        try:
            memory = msgspec.convert(json.loads(self._path.read_bytes()), RememberedChoices)
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
            return RememberedChoices(root=root)
        return memory if memory.root == root else RememberedChoices(root=root)


_ENTRY = re.compile(r"(?P<code>[^:]+)(?::(?P<end>(?:[A-Za-z]:(?=[\\/]))?[^:]*)(?::(?P<text>.*))?)?", re.DOTALL)


def hides(entry: str, code: str, file: str, text: str) -> bool:
    """Whether an entry hides a code on a line of a recorded file.

    `DS001` hides it everywhere, `DS001:model/net.py` in files whose path ends so, `DS001:model/net.py:loss.item()` on
    lines of such files that read so (an edited line is another one).
    """
    match = _ENTRY.fullmatch(entry)
    if match is None or match["code"] != code:
        return False
    if match["end"] is None:
        return True
    wanted = parts_of(match["end"])
    if parts_of(file).common_suffix(wanted) < len(wanted.parts):
        return False
    return match["text"] is None or (bool(text.strip()) and match["text"].strip() == text.strip())


def hiding_entry(code: str, file: str | None, text: str) -> str:
    """The entry that hides a code: on a line of this text, where there is none in the file, without a file everywhere.

    Of a path the last two parts are kept: enough to name a file, and free of what another machine calls its folders.
    """
    if file is None:
        return code
    end = "/".join([part for part in file.replace("\\", "/").split("/") if part][-2:])
    return f"{code}:{end}:{text.strip()}" if text.strip() else f"{code}:{end}"


@dataclass
class Project:
    """What is known of one workspace folder."""

    root: str
    """Absolute; "" for files that are in no workspace folder."""
    remembered: Remembered
    settings: Settings = field(default_factory=Settings)
    """Those of this folder: an editor may have others for each."""
    index: ProfileIndex | None = None
    baseline: Baseline | None = None
    baseline_index: ProfileIndex | None = None
    is_baseline_chosen: bool = False
    """A chosen baseline stays when new runs come. One that is not chosen is the run before, of the same program."""
    compares_with_previous: bool = True
    """Whether a run is compared with the one before it; the user can end that."""
    paths: PathMap | None = None
    stamps: tuple[TraceFile, ...] = ()
    """The traces that were there when the profile was loaded."""
    newer: Profile | None = None
    """The newest run, where an older one is shown because no code of the newest is here."""
    listing: Recognizer = field(default_factory=Recognizer)
    """Recognizes traces for the list that a user chooses from."""
    loader: Loader | None = None
    """The load under way."""
    orders: int = 0
    """How many loads that somebody asked for are not done."""
    asked: set[str] = field(default_factory=set)
    """Paths about which the user was asked already."""
    picked: dict[str, str] = field(default_factory=dict)
    """Cells of notebooks by URI, and the recorded ones that the user says they are."""
    error: str = ""
    unreadable: dict[TraceFile, str] = field(default_factory=dict)
    """Traces that were read in vain, in just these versions, and what is wrong with them."""
    shown_status: Status | None = None
    """The status that the editor shows."""
    unopened: UnopenedFiles = field(default_factory=UnopenedFiles)

    def show(self, profile: Profile, roots: list[str], previous: Profile | None = None) -> None:
        """Makes a profile the one that is shown, beside the run before it unless a baseline was chosen."""
        self.index = ProfileIndex(profile)
        if not self.is_baseline_chosen:
            self.baseline_index = None if previous is None else ProfileIndex(previous)
        self.error = ""
        self.asked.clear()
        self.unopened = UnopenedFiles()
        self.map_paths(roots)
        self._compare()

    def map_paths(self, roots: list[str]) -> None:
        """Starts the path mapping anew from settings and memory."""
        if self.index is None:
            return
        profile = self.index.profile
        self.paths = self._paths_of(profile, self.index.files, roots)

    def is_here(self, profile: Profile, roots: list[str]) -> bool:
        """Whether the code that ran in a profile is on this machine."""
        files = {line.file for line in profile.lines}
        return is_here(profile, self._paths_of(profile, files, roots))

    def _paths_of(self, profile: Profile, files: Iterable[str], roots: list[str]) -> PathMap:
        return PathMap(
            files={path: profile.files.get(path) for path in files},
            project_root=profile.trace.project_root,
            roots=[self.root, *(root for root in roots if root != self.root)] if self.root else list(roots),
            prefixes={**self.remembered.memory.path_mappings, **self.settings.path_mappings},
        )

    def map_on_disk(self, recorded: str, path: str) -> LineMap | None:
        """How the lines of a recorded file stand in a file that is not open; one outside the workspace is not read."""
        if self.index is None or self.paths is None or not self.paths.is_in_workspace(path):
            return None
        return self.unopened.map_of(path, self.index.lines_of_text(recorded))

    def compare_with(self, profile: Profile | None) -> None:
        """Sets the baseline that was chosen, or clears whatever there is, until one is chosen again."""
        self.is_baseline_chosen = self.compares_with_previous = profile is not None
        self.baseline_index = None if profile is None else ProfileIndex(profile)
        self._compare()

    @property
    def wants_previous(self) -> bool:
        """Whether a new run is to be compared with the one before it."""
        return self.compares_with_previous and not self.is_baseline_chosen

    def compare_with_previous(self, profile: Profile) -> None:
        """Sets the run before as baseline; one that was chosen stays."""
        if self.wants_previous:
            self.baseline_index = ProfileIndex(profile)
            self._compare()

    def learn(self, lesson: dict[str, str]) -> None:
        """Remembers what a match has taught about paths."""
        memory = self.remembered.memory
        if lesson and any(memory.path_mappings.get(recorded) != local for recorded, local in lesson.items()):
            memory.path_mappings.update(lesson)
            self.remembered.save()

    def _compare(self) -> None:
        if self.index is None or self.baseline_index is None:
            self.baseline = None
        else:
            self.baseline = Baseline(self.baseline_index, self.index)


KNOWN_RATIO = 0.5
"""So many of a file's measured functions must be there, where the trace has no text: every second file has a `main`."""


def is_here(profile: Profile, paths: PathMap) -> bool:
    """Whether a measured file of the profile is here: where it was recorded, or one of its name that reads alike."""
    functions: dict[str, set[str]] = {}
    for line in profile.lines:
        functions.setdefault(line.file, set()).add(line.function.rsplit(".", 1)[-1])
    return any(_is_file_here(profile, paths, file, names) for file, names in functions.items())


def _is_file_here(profile: Profile, paths: PathMap, recorded: str, functions: Iterable[str]) -> bool:
    local = paths.local(recorded)
    if local is None:
        return False
    if os.path.isabs(recorded) and os.path.normpath(local) == os.path.normpath(recorded):  # noqa: PTH117
        return True
    lines = lines_on_disk(local) or []
    source = profile.files.get(recorded)
    if source is not None and source.text is not None:
        return shared_ratio(source.text, lines) >= ALIKE_RATIO
    defined = set(re.findall(r"\bdef\s+(\w+)", "\n".join(lines)))
    named = {name for name in functions if name.isidentifier()}
    return not named or len(named & defined) >= KNOWN_RATIO * len(named)
