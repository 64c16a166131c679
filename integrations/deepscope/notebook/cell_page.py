"""What stands below a recorded cell: the sentence, the cell with what its lines cost, advice, and a flame graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from deepscope.printable import printable
from deepscope.quantities import share_text, time_text
from deepscope.records import Costs, Line, Profile
from deepscope.records.places import short_path, short_place
from deepscope.report.findings import findings_entries
from deepscope.report.flame import flame_tree
from deepscope.report.framework import NO_LINE
from deepscope.report.places import place_name
from deepscope.report.run_verdict import run_verdict

_ELSEWHERE = 5
"""Lines of other files that are shown."""
_LEAST_ELSEWHERE = 0.02
_FRAMES = 300
_ROW = 18
"""Height of a frame, in pixels."""
_LEAST_WIDTH = 0.1
"""Percent; narrower frames are left out."""
_LABELLED = 4
"""Percent; narrower frames bear no name."""

_STYLE = """<style>
.deepscope{font:13px system-ui,sans-serif;max-width:1000px}
.deepscope table{border-collapse:collapse;margin:6px 0}
.deepscope td{border:0;padding:0 8px;text-align:left;white-space:pre;font:12px ui-monospace,monospace}
.deepscope td.n{text-align:right;opacity:.75}
.deepscope td.b i{display:block;height:9px;background:#e8833a}
.deepscope dt{font-weight:600;margin-top:4px}.deepscope dd{margin:0 0 0 16px}
.deepscope div.f{position:relative}
.deepscope div.f span{position:absolute;box-sizing:border-box;height:17px;overflow:hidden;white-space:nowrap;color:#222;
font:11px system-ui,sans-serif;padding:1px 3px;border:1px solid #fff8;border-radius:2px}
</style>"""


def cell_page(profile: Profile, file: str, text: str) -> str:
    """HTML without scripts, which also a notebook that is not trusted shows.

    Args:
        profile: of the cell's recording.
        file: the cell's name in it.
        text: the whole cell.
    """
    costs = Costs.of(profile)
    parts = [
        f"<p><b>{escape(_of_cell(run_verdict(profile).sentence, profile, file))}</b></p>",
        _table(_cell_rows(profile, costs, file, text)),
        _table(_other_rows(profile, costs, file)),
        f"<dl>{''.join(_advice(profile, file))}</dl>",
        _flame(profile, file),
    ]
    return f'<div class="deepscope">{_STYLE}{"".join(parts)}</div>'


def _table(rows: Iterator[str]) -> str:
    content = "".join(rows)
    return f"<table><tbody>{content}</tbody></table>" if content else ""


def _cell_rows(profile: Profile, costs: Costs, file: str, text: str) -> Iterator[str]:
    lines: dict[int, list[Line]] = {}
    for one in profile.lines:
        if one.file == file:
            lines.setdefault(one.line, []).append(one)
    for number, source in enumerate(text.rstrip("\n").split("\n"), 1):
        yield _row(str(number), lines.get(number, []), costs, source)


def _other_rows(profile: Profile, costs: Costs, file: str) -> Iterator[str]:
    """The lines of other cells and files that cost most."""
    others = [one for one in costs.ranked(profile.lines) if one.file != file and costs.share(one) >= _LEAST_ELSEWHERE]
    for one in others[:_ELSEWHERE]:
        place = short_place(one.file, one.line, profile.trace.project_root)
        yield _row(place, [one], costs, (one.text or one.function).strip())


def _row(place: str, lines: list[Line], costs: Costs, source: str) -> str:
    share = costs.share(*lines) if lines else 0.0
    time = time_text(costs.per_step_ns(*lines)) if lines else ""
    bar = f'<i style="width:{120 * min(share, 1):.0f}px"></i>'
    figure = share_text(share, 1) if lines else ""
    cells = (f'<td class="n">{escape(one)}</td>' for one in (printable(place), figure, time))
    return f'<tr>{"".join(cells)}<td class="b" style="width:120px">{bar}</td><td>{escape(printable(source))}</td></tr>'


def _of_cell(words: str, profile: Profile, file: str) -> str:
    """The cell's lines by their numbers alone."""
    return words.replace(f"{printable(short_path(file, profile.trace.project_root))}:", "line ")


def _advice(profile: Profile, file: str) -> Iterator[str]:
    for title, given in findings_entries(profile):
        words = _of_cell(given, profile, file)
        yield f"<dt>{escape(title)}</dt><dd>{escape(words)}</dd>" if title else f"<dd>{escape(words)}</dd>"


class _Box(NamedTuple):
    """A frame of the graph; `left` and `width` in percent of it."""

    node: int
    left: float
    width: float
    depth: int


def _flame(profile: Profile, file: str) -> str:
    tree = flame_tree([(profile, lambda frame: frame)], metric="device", depth="operator", upwards=False, limit=_FRAMES)
    times = tree.totals(0)
    boxes = _boxes(times, tree.parents)
    if not boxes:
        return ""
    whole_ns = sum(own for own, *_ in tree.own)
    spans = [
        _span(_of_cell(_name(tree.frames[box.node], profile), profile, file), times[box.node], whole_ns, box)
        for box in boxes
        if box.width >= _LEAST_WIDTH
    ]
    height = _ROW * (1 + max(box.depth for box in boxes))
    time = "device time" if profile.metric == "device" else "operators' CPU time"
    summary = f"<summary>Call paths by {time}</summary>"
    return f'<details>{summary}<div class="f" style="height:{height}px">{"".join(spans)}</div></details>'


def _boxes(times: Sequence[int], parents: Sequence[int]) -> list[_Box]:
    """A box a node, as wide as its share of all: children stand below their parent, from its left edge on."""
    whole = sum(time for time, parent in zip(times, parents, strict=True) if parent < 0)
    found: list[_Box] = []
    next_left: dict[int, float] = {}  # by parent, where its next child begins
    for node, (time, parent) in enumerate(zip(times, parents, strict=True) if whole else ()):
        above = found[parent] if parent >= 0 else _Box(-1, 0.0, 100.0, -1)
        left, width = next_left.get(parent, above.left), 100 * time / whole
        next_left[parent] = left + width
        found.append(_Box(node, left, width, above.depth + 1))
    return found


def _span(name: str, time_ns: int, whole_ns: int, box: _Box) -> str:
    title = f"{name}: {time_text(time_ns)} ({share_text(time_ns, whole_ns)})"
    place = f"left:{box.left:.3f}%;width:{box.width:.3f}%;top:{box.depth * _ROW}px"
    label = escape(name) if box.width >= _LABELLED else ""
    return f'<span title="{escape(title)}" style="{place};background:{_colour(name)}">{label}</span>'


def _colour(name: str) -> str:
    """The same name has the same colour."""
    return f"hsl({18 + sum(name.encode()) % 36} 85% 72%)"


def _name(frame: object, profile: Profile) -> str:
    assert isinstance(frame, int)
    if frame < 0:
        return NO_LINE
    if frame < len(profile.lines):
        line = profile.lines[frame]
        return printable(f"{line.function} {short_place(line.file, line.line, profile.trace.project_root)}")
    place = profile.places[frame - len(profile.lines)]
    return printable(place_name(place.kind, place.name))
