"""The line that a user names by any end of its path: `model.py:70`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import Line, Profile
from deepscope.records.places import short_place
from deepscope.report.below import lines_of

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
    """The line that a text means, by its place among `lines_of`: the user's lines, then those of libraries.

    Raises:
        OptionError: it is no such text, no line fits, or lines of several files do; the message lists candidates.
    """
    path, number = check_line(where)
    every = lines_of(profile)
    lines = list(enumerate(every))
    in_files = [place for place, line in lines if line.file.replace("\\", "/") == path]
    in_files = in_files or [place for place, line in lines if _ends_with(line.file, path)]
    fitting = [place for place in in_files if every[place].line == number]
    root = profile.trace.project_root
    if len({every[place].file for place in fitting}) > 1:
        raise OptionError("line", where, f"several files end so: {_listed(every, fitting)}")
    if fitting:
        return max(fitting, key=lambda place: every[place].self_device_ns)
    if in_files:
        problem = f"nothing was measured on it; the largest lines there: {_listed(every, in_files, root)}"
    elif every:
        problem = f"no such file; the largest lines of this trace: {_listed(every, range(len(every)), root)}"
    else:
        problem = "this trace has no lines: it was recorded without Python frames"
    raise OptionError("line", where, problem)


def _ends_with(file: str, path: str) -> bool:
    return f"/{file}".replace("\\", "/").endswith(f"/{path.lstrip('/')}")


def _listed(lines: Sequence[Line], places: Iterable[int], root: str = "") -> str:
    """Names of lines; with a root short ones, else such that any of them may be given."""
    names = list(dict.fromkeys(_name(lines[place], root) for place in places))
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join(names[:_LISTED] + more)


def _name(line: Line, root: str) -> str:
    return printable(short_place(line.file, line.line, root) if root else f"{line.file}:{line.line}")
