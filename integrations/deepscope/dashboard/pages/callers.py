"""Who calls a line: the call paths that lead to it, with the time of the line and of all that it calls."""

from __future__ import annotations

from typing import NamedTuple

from deepscope.dashboard.answer import PageAnswer
from deepscope.dashboard.pages.words import whole_place, word
from deepscope.records import Line, Profile
from deepscope.report.below import lines_of
from deepscope.report.paths import node_path

PATHS = 40
"""Call paths of a line, the largest."""
FRAMES = 60
"""Lines of a path, the innermost."""


class Caller(PageAnswer):
    """A line of a call path."""

    file: str
    line: int
    place: str
    function: str


class CallPath(PageAnswer):
    """A way to a line, the outermost line first; without frames the line was called by no other."""

    frames: list[Caller]
    self_ns: int
    """Device time of the line itself."""
    total_ns: int
    """The same with that of the lines that it calls."""
    cpu_ns: int
    """CPU time of the line and of those that it calls."""


class CallPaths(NamedTuple):
    """The largest paths."""

    paths: list[CallPath]
    left_out: int


def call_paths(profile: Profile, place: int) -> CallPaths:
    """The paths to a line by its place among `lines_of`, -1 for the work of no line; the largest first.

    To a library's line they lead from the user's line whose work it is. Where a line calls itself, each time counts as
    a path.
    """
    if place >= len(profile.lines):
        found = _to_library_line(profile, lines_of(profile)[place])
    else:
        totals = _totals(profile)
        found = [
            _path(profile, node_path(profile.call_tree, node)[:-1], one.self_device_ns, *totals[node])
            for node, one in enumerate(profile.call_tree)
            if one.line == place
        ]
    found.sort(key=lambda path: (-path.total_ns, -path.cpu_ns))
    return CallPaths(found[:PATHS], max(len(found) - PATHS, 0))


def _totals(profile: Profile) -> list[tuple[int, int]]:
    """Of each node of the call tree the device and the CPU time, those below it included."""
    device = [node.self_device_ns for node in profile.call_tree]
    cpu = [node.self_cpu_ns for node in profile.call_tree]
    for number in range(len(device) - 1, -1, -1):  # a parent stands before what it calls
        above = profile.call_tree[number].parent
        if above >= 0:
            device[above] += device[number]
            cpu[above] += cpu[number]
    return list(zip(device, cpu, strict=True))


def _to_library_line(profile: Profile, line: Line) -> list[CallPath]:
    is_it = [
        (one.kind, one.name, one.file, one.line) == ("library", line.function, line.file, line.line)
        for one in profile.places
    ]
    own: dict[int, int] = {}
    whole: dict[int, int] = {}
    within: list[bool] = []
    for part in profile.parts:  # a parent stands before its parts
        here = is_it[part.place]
        within.append(here or (part.parent >= 0 and within[part.parent]))
        if here:
            own[part.call] = own.get(part.call, 0) + part.self_device_ns
        if within[-1]:
            whole[part.call] = whole.get(part.call, 0) + part.self_device_ns
    return [
        _path(profile, node_path(profile.call_tree, call), own.get(call, 0), total, 0) for call, total in whole.items()
    ]


def _path(profile: Profile, path: list[int], self_ns: int, total_ns: int, cpu_ns: int) -> CallPath:
    root = profile.trace.project_root
    frames = []
    for number in path[-FRAMES:]:
        if number < 0:
            frames.append(Caller(file="", line=0, place="(no user line)", function=""))
            continue
        line = profile.lines[number]
        frames.append(
            Caller(
                file=line.file,
                line=line.line,
                place=whole_place(line.file, line.line, root),
                function=word(line.function),
            )
        )
    return CallPath(frames=frames, self_ns=self_ns, total_ns=total_ns, cpu_ns=cpu_ns)
