"""What the pages call things: foreign text made safe and short."""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.quantities import spaced
from deepscope.records import Profile
from deepscope.records.places import base_name, short_path

_LONGEST = 300
"""Letters of a name that are shown in a table or a list."""
_LONGEST_PATH = 36
"""Letters of a path that is shown whole."""


def word(text: str, longest: int = _LONGEST) -> str:
    """A name as the pages show it."""
    safe = printable(text)
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"


def title_of(profile: Profile) -> str:
    """The program that ran; else the trace's own name."""
    info = profile.trace
    return word(info.program or base_name(info.path))


def file_name(path: str, root: str) -> str:
    """A file as people call it: from the project's root."""
    return word(short_path(path, root))


def whole_place(path: str, line: int, root: str) -> str:
    """A line as people call it, its path whole: `models/net.py:42`."""
    return f"{file_name(path, root)}:{line}"


def place_words(path: str, line: int, root: str) -> str:
    """A line as people call it: `net.py:42`; of a long path the end, behind `…`. "" for none."""
    return short_place(f"{short_path(path, root)}:{line}") if path else ""


def short_place(place: str) -> str:
    """A place whose path is cut to its end, behind `…`, where it is long."""
    path, colon, line = place.rpartition(":")
    name = printable(path).replace("\\", "/")
    if len(name) > _LONGEST_PATH:
        last = name.split("/")[-2:]
        ending = "/".join(last) if len(last[0]) + len(last[-1]) < _LONGEST_PATH else last[-1]
        name = f"…/{ending}" if len(ending) <= 2 * _LONGEST_PATH else f"…{ending[-2 * _LONGEST_PATH :]}"
    return f"{name}{colon}{line}"


def in_page_words(text: str) -> str:
    """A sentence of the terminal's as the pages have it: `12.4 ms`, `38 %`."""
    return spaced(printable(text))
