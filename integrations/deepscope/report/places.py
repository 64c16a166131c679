"""Where a line stands, worded for people: short paths, and the source text that ran."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from deepscope.printable import printable
from deepscope.records import CallNode, Line, PartKind, Profile
from deepscope.report.event_names import readable
from deepscope.trace.source_lines import source_lines

LARGEST_BYTES = 32 << 20
"""Of a source file that is read."""


def place_name(kind: PartKind, name: str) -> str:
    """What a part of a line's work is, safe to print."""
    if kind == "other":
        return "(other)"
    return printable(readable(name) if kind in {"operator", "kernel"} else name)


def measured_words(profile: Profile) -> str:
    """What self times of a profile are."""
    return "device time" if profile.metric == "device" else "operators' CPU time"


class Sources:
    """Source texts as they ran: from the trace, else from the file itself when its hash is the recorded one."""

    def __init__(self, profile: Profile) -> None:
        self._files = profile.files
        self._lines: dict[str, list[str]] = {}

    def text(self, line: Line) -> str:
        """The source line without its indentation; "" where what ran is not known for certain."""
        if line.text is not None:
            return line.text.strip()
        texts = self.whole(line.file)
        return texts[line.line - 1].strip() if 0 < line.line <= len(texts) else ""

    def whole(self, path: str) -> list[str]:
        """All lines of a file; none where what ran is not known for certain."""
        texts = self._lines.get(path)
        if texts is None:
            texts = self._lines[path] = source_lines(self._read(path))
        return texts

    def _read(self, path: str) -> str:
        recorded = self._files.get(path)
        if recorded is None:
            return ""
        if recorded.text is not None:
            return recorded.text
        try:
            content = _content(Path(path))
        except (OSError, ValueError):
            return ""
        same = hashlib.sha256(content).hexdigest() == recorded.sha256
        return content.decode("utf-8", "replace") if same else ""


def _content(path: Path) -> bytes:
    """A file's bytes; none of what a trace may name to do harm: a device, a pipe, something huge."""
    found = path.stat()
    return path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_BYTES else b""


NO_LINE = -1

Depth = Literal["line", "module", "library", "operator", "kernel"]
DEPTHS: tuple[Depth, ...] = ("line", "module", "library", "operator", "kernel")
"""How far down call paths are followed; each holds those before it."""

Metric = Literal["device", "cpu"]
METRICS: tuple[Metric, ...] = ("device", "cpu")
"""What call paths may be weighed by; the CPU's time is known of lines, not of what is below them."""


def call_tree(profile: Profile) -> list[CallNode]:
    """The call tree; for a profile without one a flat tree of its lines, so that no time is lost."""
    if profile.call_tree:
        return profile.call_tree
    rest = profile.no_line
    flat = [
        CallNode(-1, place, line.self_device_ns, line.self_cpu_ns, line.backward_device_ns)
        for place, line in enumerate(profile.lines)
    ]
    return [*flat, CallNode(-1, NO_LINE, rest.self_device_ns, rest.self_cpu_ns, rest.backward_device_ns)]


def subtree_sums(parents: Sequence[int], own: Iterable[int]) -> list[int]:
    """Of each node its own number and those of all below it; a parent (-1 for none) stands before its children."""
    sums = list(own)
    for node in range(len(sums) - 1, -1, -1):
        if parents[node] >= 0:
            sums[parents[node]] += sums[node]
    return sums


def node_path(tree: list[CallNode], place: int) -> list[int]:
    """Indices into `Profile.lines` from the outermost line to the node's own; -1 for work that reached no line."""
    path = []
    while place >= 0:
        path.append(tree[place].line)
        place = tree[place].parent
    return path[::-1]


class Stack(NamedTuple):
    """A call path down to its work, and the time of the work that lies in nothing below."""

    lines: list[int]
    """Indices into `Profile.lines`, the outermost first; -1 for work that reached no line."""
    places: list[int]
    """Indices into `Profile.places`, the outermost first."""
    device_ns: int
    backward_device_ns: int
    cpu_ns: int
    """Of the line itself: what is below it has none of its own."""


def stacks(profile: Profile, depth: Depth = "kernel") -> Iterator[Stack]:
    """All call paths with any time, down to `depth`; what lies deeper is a part of what holds it."""
    shown = shown_kinds(depth)
    below: dict[int, list[tuple[list[int], int, int]]] = {}
    paths: list[list[int]] = []
    for part in profile.parts if depth != "line" else []:  # a parent stands before its parts
        path = paths[part.parent] if part.parent >= 0 else []
        if profile.places[part.place].kind in shown:
            path = [*path, part.place]
        paths.append(path)
        if path and (part.self_device_ns or part.backward_device_ns):
            below.setdefault(part.call, []).append((path, part.self_device_ns, part.backward_device_ns))
    tree = call_tree(profile)
    for place, node in enumerate(tree):
        lines = node_path(tree, place)
        found = below.get(place, [])
        device = node.self_device_ns - sum(time for _, time, _ in found)
        backward = node.backward_device_ns - sum(time for _, _, time in found)
        if device or backward or node.self_cpu_ns:
            yield Stack(lines, [], device, backward, node.self_cpu_ns)
        for path, time, back in found:
            yield Stack(lines, path, time, back, 0)


def shown_kinds(depth: Depth) -> frozenset[PartKind]:
    """What stands below lines down to `depth`."""
    kinds: dict[Depth, tuple[PartKind, ...]] = {
        "line": (),
        "module": ("module",),
        "library": ("module", "library"),
        "operator": ("module", "library", "operator", "other"),
        "kernel": ("module", "library", "operator", "kernel", "other"),
    }
    return frozenset(kinds[depth])
