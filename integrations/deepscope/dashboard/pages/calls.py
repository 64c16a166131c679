"""What calls what: the kernels below an operator, the lines that it runs on, and the paths of calls to a line."""

from __future__ import annotations

from collections.abc import Iterable

from deepscope.dashboard.page_answer import AtLine, PageAnswer, key_of, place_words, whole_place, word
from deepscope.records import Line, Profile
from deepscope.records.lines import NO_LINE
from deepscope.report.call_paths import node_path, subtree_sums
from deepscope.report.event_names import readable
from deepscope.report.line_tree import lines_of

_MOST = 30
"""Rows of each list, the largest first."""


class NamedTime(PageAnswer):
    """A kernel or an operator, and a time in it."""

    key: str
    """Its row's word on its own page."""
    label: str
    time_ns: int
    calls: int


class OwnerLine(AtLine):
    """A line, and a time that it owns."""

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
            tops = line.top_kernels if kind == "kernel" else line.top_operators
            time_ns = sum(top.device_ns for top in tops if top.name == name)
            if time_ns:
                sums[number] = time_ns
    root = profile.trace.project_root
    largest = sorted(sums.items(), key=lambda item: -item[1])[:_MOST]
    return [
        _owner(profile.lines[number], root, time_ns)
        if number >= 0
        else OwnerLine(file="", line=0, place=NO_LINE, function="", time_ns=time_ns)
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


def _owner(line: Line, root: str, time_ns: int) -> OwnerLine:
    return OwnerLine(
        file=line.file,
        line=line.line,
        place=place_words(line.file, line.line, root),
        function=word(line.function),
        time_ns=time_ns,
    )


PATHS = 40
"""Call paths of a line, the largest."""
FRAMES = 60
"""Lines of a path, the innermost."""


class Caller(AtLine):
    """A line of a call path."""


class CallPath(PageAnswer):
    """A way to a line, the outermost line first; without frames the line was called by no other."""

    frames: list[Caller]
    self_ns: int
    """Device time of the line itself."""
    total_ns: int
    """The same with that of the lines that it calls."""
    cpu_ns: int
    """CPU time of the line and of those that it calls."""


def call_paths(profile: Profile, place: int) -> tuple[list[CallPath], int]:
    """The largest paths to a line by its place among `lines_of`, -1 for the work of no line; how many are left out.

    To a library's line they lead from the user's line whose work it is. Where a line calls itself, each time counts as
    a path.
    """
    if place >= len(profile.lines):
        found = _to_library_line(profile, lines_of(profile)[place])
    else:
        tree = profile.call_tree
        parents = [node.parent for node in tree]
        device = subtree_sums(parents, (node.self_device_ns for node in tree))
        cpu = subtree_sums(parents, (node.self_cpu_ns for node in tree))
        found = [
            _path(profile, node_path(tree, at)[:-1], node.self_device_ns, device[at], cpu[at])
            for at, node in enumerate(tree)
            if node.line == place
        ]
    found.sort(key=lambda path: (-path.total_ns, -path.cpu_ns))
    return found[:PATHS], max(len(found) - PATHS, 0)


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
            frames.append(Caller(file="", line=0, place=NO_LINE, function=""))
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
