"""Which kernels stand below an operator, and on which lines an operator or a kernel runs."""

from __future__ import annotations

from collections.abc import Iterable

from deepscope.dashboard.answer import PageAnswer
from deepscope.dashboard.pages.tables import key_of
from deepscope.dashboard.pages.words import place_words, word
from deepscope.records import Line, Profile, Top
from deepscope.report.event_names import readable

_MOST = 30
"""Rows of each list, the largest first."""


class NamedTime(PageAnswer):
    """A kernel or an operator, and a time in it."""

    key: str
    """Its row's word on its own page."""
    label: str
    time_ns: int
    calls: int


class OwnerLine(PageAnswer):
    """A line, and a time that it owns."""

    file: str
    line: int
    place: str
    function: str
    time_ns: int


def kernels_below(profile: Profile, operator: str) -> list[NamedTime]:
    """The kernels that ran in an operator, in those that it calls, and in the backward pass of these.

    Without the trees below lines, which merged ranks do not have: those of which it launches most, with all their time.
    """
    sums: dict[str, list[int]] = {}
    for at in _within(profile, "operator", operator):
        part = profile.parts[at]
        place = profile.places[part.place]
        if place.kind == "kernel":
            found = sums.setdefault(place.name, [0, 0])
            found[0] += part.self_device_ns
            found[1] += part.calls
    if not profile.parts:
        sums = {one.name: [one.device_ns, one.calls] for one in profile.kernels if one.operator == operator}
    largest = sorted(sums.items(), key=lambda item: -item[1][0])[:_MOST]
    kinds = {one.name: one.kind for one in profile.kernels}
    return [
        NamedTime(key=key_of(name, kinds.get(name, "kernel")), label=word(readable(name)), time_ns=time_ns, calls=calls)
        for name, (time_ns, calls) in largest
    ]


def lines_with(profile: Profile, kind: str, name: str) -> list[OwnerLine]:
    """The lines on which an operator (with its backward pass) or a kernel runs, the longest time first.

    Without the trees below lines: those among whose largest it is.
    """
    sums: dict[int, int] = {}
    for at in _within(profile, kind, name):
        part = profile.parts[at]
        at_line = profile.call_tree[part.call].line
        sums[at_line] = sums.get(at_line, 0) + part.self_device_ns
    if not profile.parts:
        for number, line in enumerate(profile.lines):
            time_ns = sum(top.device_ns for top in _tops(line, kind) if top.name == name)
            if time_ns:
                sums[number] = time_ns
    root = profile.trace.project_root
    largest = sorted(sums.items(), key=lambda item: -item[1])[:_MOST]
    return [
        _owner(profile.lines[number], root, time_ns)
        if number >= 0
        else OwnerLine(file="", line=0, place="(no user line)", function="", time_ns=time_ns)
        for number, time_ns in largest
        if time_ns
    ]


def _within(profile: Profile, kind: str, name: str) -> Iterable[int]:
    """Indexes of the parts that are of this place, or below one that is."""
    wanted = {at for at, place in enumerate(profile.places) if place.kind == kind and place.name == name}
    inside = bytearray(len(profile.parts))
    if not wanted:
        return
    for at, part in enumerate(profile.parts):  # a parent stands before its parts
        if part.place in wanted or (part.parent >= 0 and inside[part.parent]):
            inside[at] = 1
            yield at


def _tops(line: Line, kind: str) -> list[Top]:
    return line.top_kernels if kind == "kernel" else line.top_operators


def _owner(line: Line, root: str, time_ns: int) -> OwnerLine:
    return OwnerLine(
        file=line.file,
        line=line.line,
        place=place_words(line.file, line.line, root),
        function=word(line.function),
        time_ns=time_ns,
    )
