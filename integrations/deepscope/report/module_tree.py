"""Modules as a tree: each below the module that holds it, the largest first."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.records import Module


def tree_order(rows: Sequence[Module]) -> list[Module]:
    """The modules, each before those below it; of those below one module the largest total first."""
    by_path = {row.path for row in rows}
    below: dict[str, list[Module]] = {}
    for row in sorted(rows, key=lambda row: (-row.total_device_ns, -row.total_cpu_ns, row.path)):
        below.setdefault(row.parent if row.parent in by_path else "", []).append(row)
    found: list[Module] = []
    waiting = below.get("", [])[::-1]
    while waiting:
        row = waiting.pop()
        found.append(row)
        if row.path:
            waiting += below.get(row.path, [])[::-1]
    return found


def largest_modules(rows: Sequence[Module], limit: int) -> list[Module]:
    """The modules with the largest totals, in the order in which they stand."""
    chosen = sorted(range(len(rows)), key=lambda i: (-rows[i].total_device_ns, -rows[i].total_cpu_ns, i))[:limit]
    return [rows[i] for i in sorted(chosen)]


def depths(rows: Sequence[Module]) -> list[int]:
    """How many of the rows stand above each one."""
    parents = {row.path: row.parent for row in rows}
    found: dict[str, int] = {}
    for row in rows:
        way = []
        path = row.path
        while path in parents and path not in found and path not in way:
            way.append(path)
            path = parents[path]
        depth = found.get(path, -1)
        for one in reversed(way):
            depth += 1
            found[one] = depth
    return [found[row.path] for row in rows]


def children_of(rows: Sequence[Module]) -> dict[str, list[str]]:
    """By path, the paths of the modules below it, in the order of the rows."""
    found: dict[str, list[str]] = {row.path: [] for row in rows}
    for row in rows:
        if row.parent in found and row.parent != row.path:
            found[row.parent].append(row.path)
    return found


def branch_name(row: Module) -> str:
    """The part of its path that its parent's does not say."""
    return row.path.removeprefix(f"{row.parent}.") if row.parent else row.path
