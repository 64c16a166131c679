"""Rows chosen by name and by time, and what part of the whole a filtered report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.quantities import share_text, time_text
from deepscope.records import Collective, CounterSeries, Operator, Profile
from deepscope.records.source_files import base_name, short_path
from deepscope.report.event_names import measured_words, readable
from deepscope.trace.kinds import operator_kind

_TIMES = {
    "line": "cost_ns",
    "function": "cost_ns",
    "operator": "self_device_ns",
    "kernel": "device_ns",
    "module": "total_device_ns",
    "step": "duration_ns",
    "serving": "duration_ns",
    "phase": "wall_ns",
    "overview": "time_ns",
    "run": "time_ns",
    "thread": "span_ns",
    "stream": "busy_ns",
    "collective": "time_ns",
    "critical": "critical_ns",
}
"""The time by which `min_ns` leaves out rows, by the word of `--by`."""
_PARTS = {
    "line": "self_device_ns",
    "function": "self_device_ns",
    "operator": "self_device_ns",
    "kernel": "device_ns",
    "module": "self_device_ns",
    "phase": "device_ns",
    "step": "device_ns",
    "serving": "device_ns",
    "stream": "device_ns",
}
"""Device time of which each piece stands in one row."""
_UNNAMED = ("step", "serving", "stream")
_OF_PARTS = ("line", "function", "operator", "kernel", "module")
"""Tables that a phase or a module has, too; others say how the whole is divided."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which rows of a table are shown."""

    include: tuple[str, ...] = ()
    """Patterns; a row stays if one of its names matches any of them."""
    exclude: tuple[str, ...] = ()
    min_ns: int = 0

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude or self.min_ns)

    def words(self) -> list[str]:
        """What they ask for, in words."""
        words = [f"include {one}" for one in self.include] + [f"exclude {one}" for one in self.exclude]
        return words + ([f"at least {time_text(self.min_ns)}"] if self.min_ns else [])

    def check(self, by: str) -> None:
        """Raises OptionError where a table's rows have no names, or no time."""
        for option, patterns in (("include", self.include), ("exclude", self.exclude)):
            if patterns and by in _UNNAMED:
                raise OptionError(
                    option,
                    patterns[0],
                    f"the rows of --by {by} have no names{'; --step chooses one' if by == 'step' else ''}",
                )
        if self.min_ns and by not in _TIMES:
            raise OptionError("min_time", f"{self.min_ns}ns", f"the rows of --by {by} have no time")

    def rows(self, by: str, rows: Sequence[Any], root: str = "") -> list[Any]:
        """The rows that stay; `root` is the project's, from which paths are also matched."""
        return [row for row in rows if self._keeps(by, row, root)]

    def _keeps(self, by: str, row: Any, root: str) -> bool:
        if self.min_ns and getattr(row, _TIMES[by]) < self.min_ns:
            return False
        return True if not self.include and not self.exclude else self.keeps_named(_names(row, root))

    def keeps_named(self, names: Sequence[str]) -> bool:
        """Whether a row that may be called by any of these names stays."""
        if self.include and not _matches(names, self.include):
            return False
        return not _matches(names, self.exclude)


NO_FILTERS = Filters()


def check_view(by: str, *, phase: str, module: str) -> None:
    """Raises OptionError where a table says how the whole is divided, so that a part of it makes no sense."""
    for option, value in (("phase", phase), ("module", module)):
        if value and by not in _OF_PARTS:
            others = f"{', '.join(_OF_PARTS[:-1])} or {_OF_PARTS[-1]}"
            raise OptionError(option, value, f"does not go with --by {by}, whose rows are of the whole; --by {others}")


def part_words(profile: Profile) -> str:
    """Which phase and module a profile is of, and what part of the whole: safe to print; "" for the whole."""
    if profile.part_of is None:
        return ""
    view = profile.part_of.view
    words = (view.phase and f"phase {view.phase}", view.module and f"module {view.module}")
    part = _of(profile.totals.device_ns, profile.part_of.device_ns)
    return printable(f"{' and '.join(filter(None, words))}: {part} of the {measured_words(profile)}")


def row_words(profile: Profile, by: str, filters: Filters, rows: Sequence[Any], kept: Sequence[Any]) -> str:
    """Which rows were kept, and what part of all of them it is: safe to print; "" where none was left out."""
    if not filters:
        return ""
    text = f"{', '.join(filters.words())}: {len(kept):,} of {len(rows):,} rows"
    if by in _PARTS:
        own = sum(getattr(row, _PARTS[by]) for row in kept)
        whole = "" if profile.part_of is None else " of that part"
        text += f" with {_of(own, profile.totals.device_ns)} of the {measured_words(profile)}{whole}"
    return printable(text)


def _of(part: int, whole: int) -> str:
    """`12.3ms of 40ms (30.8%)`."""
    return f"{time_text(part) or '0'} of {time_text(whole) or '0'} ({share_text(part, whole) or '0%'})"


def _names(row: Any, root: str) -> list[str]:
    """All that a row may be called."""
    if isinstance(row, Collective):
        return [row.kind, row.library, row.group, row.group_description, row.dtype]
    if isinstance(row, CounterSeries):
        return [row.counter, row.series]
    if hasattr(row, "name"):
        kind = [operator_kind(row.name)] if isinstance(row, Operator) else []
        return [*event_names(row.name), *kind]
    if hasattr(row, "path"):
        return [row.path, row.class_name]
    short = short_path(row.file, root)
    places = [row.file, short, base_name(short)]
    return [*places, *(f"{place}:{row.line}" for place in places), row.function]


def event_names(name: str) -> list[str]:
    """The names that an operator or a kernel may be called by: its own, as people read it, without namespace."""
    label = readable(name)
    is_cpp = "(" in name or "<" in name  # a `::` may stand among its arguments
    return [name, label, label if is_cpp else name.rpartition("::")[2]]


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
