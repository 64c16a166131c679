"""What the pages call things: foreign text made safe and short."""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.records import Profile
from deepscope.report.places import short_path

__all__ = ["file_name", "title_of", "word"]

_LONGEST = 300
"""Letters of a name that are shown in a table or a list."""


def word(text: str, longest: int = _LONGEST) -> str:
    """A name as the pages show it."""
    safe = printable(text)
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"


def title_of(profile: Profile) -> str:
    """The program that ran; else the trace's own name."""
    info = profile.trace
    return word(info.program or short_path(info.path).replace("\\", "/").rpartition("/")[2])


def file_name(path: str, root: str) -> str:
    """A file as people call it: from the project's root."""
    return word(short_path(path, root))
