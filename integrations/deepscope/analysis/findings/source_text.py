"""The text of user files as a trace carries it, for edits that a finding proposes."""

from __future__ import annotations

import ast

from deepscope.analysis.findings.found import Edit
from deepscope.analysis.scopes import Location
from deepscope.trace.model import Trace
from deepscope.trace.source_lines import source_lines

__all__ = ["line_text", "with_keyword"]


def line_text(trace: Trace, location: Location) -> str:
    """The source line; "" where the trace does not carry it."""
    lines = source_lines(_text(trace, location.file))
    return lines[location.line - 1] if location.exact and 0 < location.line <= len(lines) else ""


def with_keyword(trace: Trace, file: str, function: str, keyword: str, value: str) -> tuple[Edit, ...]:
    """Edits that give `keyword=value` to each call of `function` in a file that stands on one line and has no such
    keyword yet; none where the text is not there, or is of a newer Python."""
    text = _text(trace, file)
    if function not in text:
        return ()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    lines = source_lines(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_named(node.func, function) and node.lineno == node.end_lineno:
            names = {one.arg for one in node.keywords}
            old = _segment(lines[node.lineno - 1], node)
            if old and keyword not in names and None not in names and (node.args or node.keywords):
                head = old[:-1].rstrip().rstrip(",")
                found.append(Edit(node.lineno, old, f"{head}, {keyword}={value})"))
    return tuple(found)


def _is_named(function: ast.expr, name: str) -> bool:
    return (isinstance(function, ast.Name) and function.id == name) or (
        isinstance(function, ast.Attribute) and function.attr == name
    )


def _segment(line: str, node: ast.Call) -> str:
    """The call's text; the tree counts UTF-8 bytes."""
    segment = line.encode()[node.col_offset : node.end_col_offset].decode("utf-8", "replace")
    return segment if segment.endswith(")") else ""


def _text(trace: Trace, path: str) -> str:
    listed = (trace.deepscope or {}).get("files")
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("path") == path and isinstance(one.get("text"), str):
            return str(one["text"])
    return ""
