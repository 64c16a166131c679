"""What the nodes of a call tree are called and where they stand: lines, and the parts of their work."""

from __future__ import annotations

from typing import TypedDict

from deepscope.printable import printable
from deepscope.records import Line
from deepscope_lsp.answers import FrameKind
from deepscope_lsp.engine.places import Locate, place_fields
from deepscope_lsp.engine.profile.opened_tree import NO_LINE, node_name, place_of
from deepscope_lsp.engine.profile.profile_index import ProfileIndex
from deepscope_lsp.engine.wording import quantities

_NO_LINE = Line(file="", line=0, function="(no user line)", exact=False)

Modules = tuple[str, ...]
"""The paths of the modules above a node, the innermost first."""


class FrameFields(TypedDict):
    """The fields of `answers.Frame`."""

    function: str
    file: str
    line: int
    uri: str | None
    current_line: int | None
    kind: FrameKind
    name: str
    whole_name: str


def frame_line(index: ProfileIndex, frame: int) -> Line | None:
    """The line that a node is; None for a part of a line's work."""
    if frame == NO_LINE:
        return _NO_LINE
    return index.profile.lines[frame] if frame < len(index.profile.lines) else None


def frame_fields(index: ProfileIndex, frame: int, locate: Locate, modules: Modules = ()) -> FrameFields:
    """A node's name below `modules`, and its place."""
    line = frame_line(index, frame)
    if line is not None:
        name = line.function
        return FrameFields(**place_fields(line, locate), kind="line", name=name, whole_name=name)
    place = place_of(index.profile, frame)
    assert place is not None
    uri, current_line = (locate(place.file, place.line) if place.file and place.line else None) or (None, None)
    return FrameFields(
        function=place.name if place.kind == "library" else "",
        file=place.file,
        line=max(0, place.line),
        uri=uri,
        current_line=current_line,
        kind=place.kind,
        name=node_name(place, modules),
        whole_name=printable(place.name),
    )


def modules_with(index: ProfileIndex, frame: int, modules: Modules) -> Modules:
    """The modules above what is below a node. Those above a line hold nothing of what it calls: paths begin anew."""
    place = place_of(index.profile, frame)
    if place is None:
        return ()
    return (place.name, *modules) if place.kind == "module" else modules


def detail_words(index: ProfileIndex, own_ns: int, total_ns: int, backward_ns: int = 0, calls: int = 0) -> str:
    """What is known of a node besides its total: `own 2 ms, backward 1 ms, 12 calls`; "" where nothing is."""
    per_step = index.scales.per_step
    words = []
    if own_ns:
        words.append("all its own" if own_ns == total_ns else f"own {quantities.duration(per_step(own_ns))}")
    if backward_ns:
        is_all = backward_ns == total_ns
        words.append("all backward" if is_all else f"backward {quantities.duration(per_step(backward_ns))}")
    if calls:
        count = quantities.count(per_step(calls))
        words.append("1 call" if count == "1" else f"{count} calls")
    return ", ".join(words)
