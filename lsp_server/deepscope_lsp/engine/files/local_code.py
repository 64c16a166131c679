"""Whether the code that ran in a trace is on this machine; if not, it is somebody else's run, or another project's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from deepscope.records import Profile
from deepscope.remap.likeness import shared_ratio
from deepscope_lsp.engine.files.path_map import ALIKE_RATIO, PathMap
from deepscope_lsp.engine.files.unopened_files import lines_on_disk

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
