"""The line that a user names by any end of its path: `model.py:70`."""

from __future__ import annotations

from collections.abc import Iterable

from deepscope.errors import OptionError
from deepscope.records import Line, Profile
from deepscope.report.places import short_path
from deepscope.report.wording import printable

__all__ = ["check_line", "find_line"]

_LISTED = 8
_LONGEST = 9
"""Digits of a line's number."""


def check_line(where: str) -> tuple[str, int]:
    """The end of a path and the line's number.

    Raises:
        OptionError: it is no such text.
    """
    path, _, number = where.replace("\\", "/").rpartition(":")
    if not path.strip("/") or not (number.isascii() and number.isdecimal()) or len(number) > _LONGEST:
        raise OptionError("line", where, "give a file and a line, such as model.py:70")
    return path, int(number)


def find_line(profile: Profile, where: str) -> int:
    """The line that a text means, an index into `Profile.lines`.

    Raises:
        OptionError: it is no such text, no line fits, or lines of several files do; the message lists candidates.
    """
    path, number = check_line(where)
    lines = list(enumerate(profile.lines))
    in_files = [place for place, line in lines if line.file.replace("\\", "/") == path]
    in_files = in_files or [place for place, line in lines if _ends_with(line.file, path)]
    fitting = [place for place in in_files if profile.lines[place].line == number]
    root = profile.trace.project_root
    if len({profile.lines[place].file for place in fitting}) > 1:
        raise OptionError("line", where, f"several files end so: {_listed(profile, fitting)}")
    if fitting:
        return max(fitting, key=lambda place: profile.lines[place].self_device_ns)
    if in_files:
        problem = f"nothing was measured on it; the largest lines there: {_listed(profile, in_files, root)}"
    elif profile.lines:
        everywhere = range(len(profile.lines))
        problem = f"no such file; the largest lines of this trace: {_listed(profile, everywhere, root)}"
    else:
        problem = "this trace has no lines: it was recorded without Python frames"
    raise OptionError("line", where, problem)


def _ends_with(file: str, path: str) -> bool:
    return f"/{file}".replace("\\", "/").endswith(f"/{path.lstrip('/')}")


def _listed(profile: Profile, places: Iterable[int], root: str = "") -> str:
    """Names of lines; with a root short ones, else such that any of them may be given."""
    names = list(dict.fromkeys(_name(profile.lines[place], root) for place in places))
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join(names[:_LISTED] + more)


def _name(line: Line, root: str) -> str:
    return f"{printable(short_path(line.file, root) if root else line.file)}:{line.line}"
