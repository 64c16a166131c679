"""Two profiles side by side: lines matched by what they say, with their time per step in each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from deepscope.records import Line, Profile
from deepscope.report.header import header
from deepscope.report.layout import Column, cut_end, cut_start, render
from deepscope.report.places import Sources, short_path
from deepscope.report.style import Styles
from deepscope.report.text import entries_text
from deepscope.report.wording import printable, time_text

__all__ = ["Delta", "compare_profiles", "comparison_object", "comparison_text"]


@dataclass(frozen=True, slots=True)
class Delta:
    """One line in two profiles; times are device time per step and rank, None in the profile that lacks it."""

    file: str
    """Relative to the project root, where that is known."""
    line: int
    """In the new profile; in the old one where the line is gone."""
    function: str
    text: str
    old_ns: float | None
    new_ns: float | None

    @property
    def change_ns(self) -> float:
        """New minus old; a line that is missing counts as 0."""
        return (self.new_ns or 0) - (self.old_ns or 0)


def compare_profiles(old: Profile, new: Profile) -> list[Delta]:
    """All lines of both, the largest change first.

    Two lines match if file, function and text agree, else if file, function and number do. The n-th of several alike
    matches the n-th. The work without a line is compared too.
    """
    sides = _Side(old, Sources(old)), _Side(new, Sources(new))
    deltas = [_delta(pair, *sides) for pair in _pairs(*sides)]
    deltas.append(
        Delta(
            "",
            0,
            "(no user line)",
            "",
            _per_step(old.no_line.self_device_ns, old),
            _per_step(new.no_line.self_device_ns, new),
        )
    )
    return sorted(deltas, key=lambda delta: -abs(delta.change_ns))


def comparison_object(old: Profile, new: Profile, *, limit: int = 0) -> dict[str, object]:
    """The comparison as dicts and lists, described in docs/report.md."""
    deltas = compare_profiles(old, new)
    rows = deltas[:limit] if limit else deltas
    names = ("file", "line", "function", "text", "old_ns", "new_ns", "change_ns")
    return {
        "format": 1,
        "metric": new.metric,
        "old": {"path": old.trace.path, "step_ns": _per_step(old.totals.wall_ns, old)},
        "new": {"path": new.trace.path, "step_ns": _per_step(new.totals.wall_ns, new)},
        "lines": [{name: getattr(delta, name) for name in names} for delta in rows],
    }


def comparison_text(old: Profile, new: Profile, *, limit: int = 20, width: int = 80, color: bool = False) -> str:
    """The comparison for a terminal."""
    styles = Styles(color)
    deltas = [delta for delta in compare_profiles(old, new) if delta.change_ns]
    shown = deltas[:limit] if limit else deltas
    head = [*_head("old", old), *_head("new", new)]
    lines = list(entries_text(head, width, styles))
    table = render(_columns(shown, width, styles), width, title_style=styles.title)
    lines += ["", *(table if shown else ["no line has changed"])]
    if len(deltas) > len(shown):
        lines += ["", f"{len(deltas) - len(shown):,} more lines have changed (-n 0 shows all)"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Side:
    profile: Profile
    sources: Sources

    def file(self, line: Line) -> str:
        return short_path(line.file, self.profile.trace.project_root)

    def by_text(self, line: Line) -> Hashable:
        return self.file(line), line.function, self.sources.text(line) or line.line

    def by_number(self, line: Line) -> Hashable:
        return self.file(line), line.function, line.line


def _pairs(old: _Side, new: _Side) -> list[tuple[Line | None, Line | None]]:
    pairs: list[tuple[Line | None, Line | None]] = []
    left, right = _in_order(old.profile.lines), _in_order(new.profile.lines)
    keys: tuple[Callable[[_Side, Line], Hashable], ...] = (_Side.by_text, _Side.by_number)
    for key in keys:
        waiting: dict[Hashable, list[Line]] = {}
        for line in left:
            waiting.setdefault(key(old, line), []).append(line)
        unmatched = []
        for line in right:
            partners = waiting.get(key(new, line))
            if partners:
                pairs.append((partners.pop(0), line))
            else:
                unmatched.append(line)
        left = [line for lines in waiting.values() for line in lines]
        right = unmatched
    return [*pairs, *((line, None) for line in left), *((None, line) for line in right)]


def _in_order(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line.file, line.line))


def _delta(pair: tuple[Line | None, Line | None], old: _Side, new: _Side) -> Delta:
    before, after = pair
    line, side = (after, new) if after is not None else (before, old)
    assert line is not None
    return Delta(
        file=side.file(line),
        line=line.line,
        function=line.function,
        text=side.sources.text(line),
        old_ns=None if before is None else _per_step(before.self_device_ns, old.profile),
        new_ns=None if after is None else _per_step(after.self_device_ns, new.profile),
    )


def _per_step(duration_ns: int, profile: Profile) -> float:
    return duration_ns / max(1, profile.totals.steps) / max(1, profile.totals.ranks)


def _head(title: str, profile: Profile) -> list[tuple[str, str]]:
    return [(title, text) for name, text in header(profile) if name in {"trace", "time"}]


def _columns(deltas: Sequence[Delta], width: int, styles: Styles) -> list[Column]:
    changes = [_signed(delta.change_ns) for delta in deltas]
    heat = [styles.hot if delta.change_ns > 0 else styles.good for delta in deltas]
    wheres = [f"{printable(delta.file)}:{delta.line}" if delta.file else delta.function for delta in deltas]
    return [
        Column("change", changes, styles=heat),
        Column("old/step", [_time(delta.old_ns, "new") for delta in deltas]),
        Column("new/step", [_time(delta.new_ns, "gone") for delta in deltas]),
        Column("line", wheres, right=False, min_width=16, cut=cut_start),
        Column("source", [_source(delta) for delta in deltas], right=False, min_width=max(24, width // 3), cut=cut_end),
    ]


def _source(delta: Delta) -> str:
    return printable(delta.text or (f"def {delta.function}" if delta.file else ""))


def _signed(change_ns: float) -> str:
    return ("+" if change_ns > 0 else "") + time_text(change_ns)


def _time(duration_ns: float | None, absent: str) -> str:
    return absent if duration_ns is None else time_text(duration_ns) or "0"
