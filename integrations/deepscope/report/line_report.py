"""The report of one line: which line is meant, its numbers, and the tree of what its work is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from deepscope.analysis.verdict import Reason
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.quantities import TIMES, share_text, time_text
from deepscope.records import Line, Profile
from deepscope.records.source_files import short_place
from deepscope.report.event_names import place_name
from deepscope.report.json_csv import csv_text, with_derived
from deepscope.report.line_table import Sources
from deepscope.report.line_tree import Node, below, fold_alike, lines_of
from deepscope.report.line_verdict import no_word, why_words
from deepscope.report.table_column import ColumnOf, field, in_order, place_column
from deepscope.report.terminal import MIN_WIDTH, Styles, entries_text, render, shown_words
from deepscope.report.text_report import header

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
    names = list(dict.fromkeys(_short_name(lines[place], root) for place in places))
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join(names[:_LISTED] + more)


def _short_name(line: Line, root: str) -> str:
    return printable(short_place(line.file, line.line, root) if root else f"{line.file}:{line.line}")


_KEYS = ("kind", "name", "file", "line", "self_device_ns", "total_device_ns", "backward_device_ns", "calls")
_INDENT = "  "


def line_object(profile: Profile, line: int, *, fold: bool = False, limit: int = 0) -> dict[str, Any]:
    """The line as in the report's `lines`, and its tree as nested objects; docs/report.md describes it.

    Args:
        profile: what is reported.
        line: its place among `lines_of`.
        fold: modules that differ in a number alone become one.
        limit: of the tree the largest nodes, 0 for all.
    """
    return {
        "line": with_derived("line", [lines_of(profile)[line]], profile)[0],
        "below": _object(largest_parts(profile, line, fold=fold, limit=limit)),
    }


def largest_parts(profile: Profile, line: int, *, fold: bool = False, limit: int = 0) -> Node:
    """The line's tree with its largest nodes alone, 0 for all; in place of the others of a parent stands their sum."""
    return _largest(_tree(profile, line, fold), limit)


def line_json(profile: Profile, line: int, *, fold: bool = False, limit: int = 0) -> str:
    """`line_object` as JSON text, in ASCII."""
    return json.dumps(line_object(profile, line, fold=fold, limit=limit), indent=1)


def line_csv(profile: Profile, line: int, *, fold: bool = False, limit: int = 0) -> str:
    """The tree as CSV: one row a node with its depth, parents first."""
    nodes = largest_parts(profile, line, fold=fold, limit=limit).walk()
    return csv_text(("depth", *_KEYS), ([depth, *(getattr(node, key) for key in _KEYS)] for depth, node in nodes))


def line_text(
    profile: Profile, line: int, *, fold: bool = False, limit: int = 40, width: int = 80, color: bool = False
) -> str:
    """The line and its tree for a terminal `width` cells wide, ending in a newline.

    Of the tree the `limit` largest nodes are shown, 0 for all; a row says what is left out below a node.
    """
    styles = Styles(color)
    width = max(MIN_WIDTH, width)
    tree = _tree(profile, line, fold)
    head = [*header(profile, by=""), *about_line(profile, lines_of(profile)[line], tree)]
    rows = list(_shown(_largest(tree, limit)))
    nodes = [node for _, node in rows]
    shown, of = (sum(node.kind != "other" for _, node in some) for some in (rows, tree.walk()))
    foot = [("more", shown_words(shown, of, what="parts"))] if shown < of else []
    lines = [
        *entries_text(head, width, styles),
        "",
        *render(in_order(_columns(rows, tree, profile), nodes, styles), width, title_style=styles.title),
        "",
        *entries_text(foot, width, styles),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _tree(profile: Profile, line: int, fold: bool) -> Node:
    tree = below(profile, line)
    return fold_alike(tree) if fold else tree


def _object(node: Node) -> dict[str, Any]:
    row: dict[str, Any] = {key: getattr(node, key) for key in _KEYS}
    if node.layers > 1:
        row["layers"] = node.layers
    return row | {"children": [_object(child) for child in node.children]}


def about_line(profile: Profile, line: Line, tree: Node) -> Iterator[tuple[str, str]]:
    """Entries of the head that are about the line, each a title and its printable text: line, self, fused, why."""
    place = printable(short_place(line.file, line.line, profile.trace.project_root))
    source = printable(Sources(profile).text(line)) if line.exact or line.fused else ""
    yield "line", f"{place} in {printable(line.function)}" + (f": {source}" if source else "")
    what = "device time" if profile.metric == "device" else "operators' time on the CPU"
    share = share_text(tree.total_device_ns, profile.totals.device_ns)
    back = share_text(tree.backward_device_ns, tree.total_device_ns)
    yield (
        "self",
        f"{time_text(tree.total_device_ns) or '0'} of {what}"
        + (f", {share} of all" if share else "")
        + (f", {back} of it backward" if back else ""),
    )
    if line.shared_ns:
        root = profile.trace.project_root
        others = [printable(short_place(one.file, one.line, root)) for one in line.shared_with]
        yield (
            "fused",
            f"{time_text(line.shared_ns)} of it are parts of kernels that were fused with {', '.join(others)}",
        )
    if words := why_words(line, profile.peaks, on_device=profile.metric == "device"):
        yield "why", printable(words)
    elif (reason := no_word(line, profile.peaks)) != Reason.NO_COST:
        yield "why", reason if reason == Reason.NO_BYTES else f"no verdict, {reason}"


def _largest(tree: Node, limit: int) -> Node:
    """The tree with its largest nodes alone, 0 for all; in place of the others of a parent stands their sum."""
    totals = sorted((node.total_device_ns for _, node in tree.walk()), reverse=True)
    if not limit or len(totals) <= limit:
        return tree
    least = totals[limit]

    def kept(node: Node) -> Node:
        large = [child for child in node.children if child.kind != "other" and child.total_device_ns > least]
        rest = [child for child in node.children if child.kind == "other" or child.total_device_ns <= least]
        return replace(node, children=[*map(kept, large), *([_summed(rest)] if rest else [])])

    return kept(tree)


def _shown(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """The node and those below it with their depths; what is left out stands beside what is not."""
    yield depth, node
    if any(child.kind != "other" for child in node.children):
        for child in node.children:
            yield from _shown(child, depth + 1)


def _summed(nodes: list[Node]) -> Node:
    total = sum(node.total_device_ns for node in nodes)
    backward = sum(node.backward_device_ns for node in nodes)
    return Node("other", "", "", 0, total, total, backward, sum(node.calls for node in nodes))


def _columns(rows: list[tuple[int, Node]], tree: Node, profile: Profile) -> list[ColumnOf]:
    names = {id(node): name for (_, node), name in zip(rows, _names(rows), strict=True)}
    whole = tree.total_device_ns
    return [
        ColumnOf("part", "share", "share", lambda node: node.total_device_ns / whole if node.total_device_ns else None),
        field("total_device_ns", "total", "time"),
        field("self_device_ns", "self", "time", rank=2),
        field("backward_device_ns", "backward", "time", rank=1),
        field("calls", "calls", "count", rank=3),
        ColumnOf("name", "", "text", lambda node: names[id(node)], least=30),
        place_column(profile, lambda _: "", rank=4, least=16)._replace(title="at"),
    ]


def _names(rows: list[tuple[int, Node]]) -> Iterator[str]:
    """What each node is, indented by its depth; a module by its path below the module that it stands in: `.mlp`."""
    modules: list[tuple[int, str]] = []
    for depth, node in rows:
        while modules and modules[-1][0] >= depth:
            modules.pop()
        above = f"{modules[-1][1]}." if modules else ""
        if node.kind == "module":
            modules.append((depth, node.name))
        is_below = node.kind == "module" and bool(above) and node.name.startswith(above)
        yield _INDENT * depth + _name(replace(node, name=node.name[len(above) - 1 :]) if is_below else node)


def _name(node: Node) -> str:
    """`transformer.h.*` and how many layers; of a function within a function the path without `<locals>`."""
    name = printable(node.name) if node.kind == "line" else place_name(node.kind, node.name)
    if node.kind == "library":
        name = name.replace(".<locals>", "")
    return name + (f" {TIMES}{node.layers}" if node.layers > 1 else "")
