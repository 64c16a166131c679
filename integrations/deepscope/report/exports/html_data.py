"""What the page of a profile shows, as `vscode-extension/src/webviews/report/data.ts` reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deepscope.records import Finding, Line, Numbers, Place, Profile
from deepscope.report.event_names import readable
from deepscope.report.paths import stacks
from deepscope.report.places import Sources, place_name, short_path
from deepscope.report.wording import printable

__all__ = ["Budget", "page_data"]

FORMAT = "deepscope-page-1"
_PHASES = ("data", "forward", "backward", "optimizer", "other")
_LONGEST = 300
"""Letters of a name that are shown."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a large profile the page has; what is left out is counted there."""

    rows: int
    """Of each table, the dearest."""
    nodes: int
    """Of the flame graph, the largest."""
    source_bytes: int
    """Of source text, the dearest files first."""


def page_data(profile: Profile, budget: Budget) -> dict[str, Any]:
    """The page's data: words are safe to show as text, numbers are nanoseconds, bytes and counts."""
    files = _Files(profile, budget)
    tables = _Tables(profile, files, budget)
    lines = tables.lines()
    rest = [
        tables.operators(),
        tables.kernels(),
        tables.modules(),
        tables.functions(),
        tables.steps(),
        tables.framework(),
    ]
    return {
        "format": FORMAT,
        "title": _word(f"DeepScope: {_title(profile)}"),
        "isDevice": profile.metric == "device",
        "facts": _facts(profile),
        "figures": _figures(profile),
        "split": [
            {"phase": _PHASES.index(phase.name), "value": phase.wall_ns}
            for phase in profile.phases
            if phase.name in _PHASES and phase.wall_ns > 0
        ],
        "phaseNames": list(_PHASES),
        "steps": [
            {
                "number": step.number,
                "duration": step.duration_ns,
                "busy": step.busy_ns,
                "idle": step.idle_ns,
                "phases": [step.phases.get(name, 0) for name in _PHASES],
            }
            for step in profile.steps[:1000]
        ],
        "findings": [_finding(one, files) for one in profile.findings[: budget.rows]],
        "tables": [lines, *rest],
        "files": files.shown(),
        "flame": _flame(profile, files, budget.nodes),
        "memory": [
            {
                "device": _word(one.device),
                "peak": one.largest_peak_bytes,
                "peakAt": one.peak_at_ns - one.curve[0].at_ns,
                "capacity": one.capacity_bytes,
                "begin": one.curve[0].at_ns,
                "points": [[point.at_ns - one.curve[0].at_ns, point.allocated_bytes] for point in one.curve],
            }
            for one in profile.memory.devices
            if one.curve
        ],
        "notes": _notes(profile),
    }


def _word(text: str) -> str:
    safe = printable(text)
    return safe if len(safe) <= _LONGEST else f"{safe[: _LONGEST - 1]}…"


def _title(profile: Profile) -> str:
    info = profile.trace
    return info.program or short_path(info.path).replace("\\", "/").rpartition("/")[2]


def _facts(profile: Profile) -> list[dict[str, str]]:
    info = profile.trace
    found = {
        "Trace": info.path,
        "Recorded": info.recorded_at,
        "Host": info.hostname,
        "Device": f"{info.device_count} x {info.device}" if info.device_count > 1 else info.device,
        "Ranks": ", ".join(map(str, info.ranks)) if len(info.ranks) > 1 else "",
        "Stage": info.stage,
        "Python": info.python,
        "torch": info.torch,
        "Lightning": info.lightning,
        "DeepScope": info.deepscope,
        "Commit": f"{info.git_commit[:12]}{' and changes' if info.git_dirty else ''}",
        "Lines from": {
            "scopes": "DeepScope's scopes",
            "call_stack": "call stacks",
            "frames": "torch's frames",
            "none": "",
        }[info.line_source],
    }
    return [{"label": label, "value": _word(value)} for label, value in found.items() if value]


def _figures(profile: Profile) -> list[dict[str, Any]]:
    totals = profile.totals
    each = " a step" if totals.steps else ""
    steps = max(totals.steps, 1) * max(totals.ranks, 1)
    is_device = profile.metric == "device"
    whole = totals.busy_ns + totals.idle_ns if is_device else totals.wall_ns
    found = [
        (f"time{each}", totals.wall_ns // steps, "time"),
        ("device busy" if is_device else "operators busy", totals.busy_ns / whole if whole else 0, "share"),
        (f"device idle{each}", totals.idle_ns // steps, "time"),
        (f"waiting for the device{each}", totals.wait_ns // steps, "time"),
        (f"kernels{each}", totals.launches // steps, "count"),
        (f"operators{each}", totals.operators // steps, "count"),
        ("peak memory", totals.peak_bytes, "bytes"),
        ("steps", totals.steps, "count"),
    ]
    return [{"label": label, "value": value, "kind": kind} for label, value, kind in found if value]


def _notes(profile: Profile) -> list[str]:
    found = [_word(warning) for warning in profile.trace.warnings]
    if profile.metric != "device":
        found.insert(0, "No device worked in this trace: times of work are operators' own times on the CPU.")
    if profile.trace.truncated:
        found.insert(0, "The trace ends early; what was whole has been read.")
    if not profile.lines:
        found.insert(0, "The trace names no lines of code: the operators tell most.")
    return found


def _finding(one: Finding, files: _Files) -> dict[str, Any]:
    where = f"{files.name(one.file)}:{one.line}" if one.file else ""
    return {
        "code": _word(one.code),
        "title": _word(one.title),
        "severity": one.severity,
        "file": files.index(one.file),
        "line": one.line,
        "place": _word(where),
        "message": printable(one.message)[:2000],
        "remedy": printable(one.remedy.text)[:2000],
        "saving": one.saving_ns,
    }


class _Files:
    """The files that lines are in, the dearest first, with what they cost."""

    def __init__(self, profile: Profile, budget: Budget) -> None:
        self._root = profile.trace.project_root
        self._lines: dict[str, list[Line]] = {}
        for line in profile.lines:
            self._lines.setdefault(line.file, []).append(line)
        cost = {file: sum(line.cost_ns for line in lines) for file, lines in self._lines.items()}
        self._order = sorted(cost, key=lambda file: (-cost[file], file))[: budget.rows]
        self._cost = cost
        self._index = {file: number for number, file in enumerate(self._order)}
        self._sources = Sources(profile)
        self._left = budget.source_bytes

    def index(self, file: str) -> int:
        """The number of a file; -1 for one that is not shown."""
        return self._index.get(file, -1)

    def name(self, file: str) -> str:
        """The file as people call it."""
        return short_path(file, self._root)

    def shown(self) -> list[dict[str, Any]]:
        """All files, with their texts as far as there is room."""
        return [
            {
                "name": _word(self.name(file)),
                "path": _word(file),
                "cost": self._cost[file],
                "text": self._text(file),
                "lines": [
                    {
                        "line": line.line,
                        "cost": line.cost_ns,
                        "self": line.self_device_ns,
                        "backward": line.backward_device_ns,
                        "idle": line.idle_ns,
                        "cpu": line.self_cpu_ns,
                    }
                    for line in self._lines[file]
                    if line.line > 0
                ],
            }
            for file in self._order
        ]

    def _text(self, file: str) -> list[str] | None:
        lines = self._sources.whole(file)
        size = sum(len(line) + 4 for line in lines)
        if not any(lines) or size > self._left:
            return None
        self._left -= size
        return [printable(line.rstrip("\r\n").expandtabs(4)) for line in lines]


_Columns = Sequence[tuple[str, str, Callable[[Any], Any]]]


class _Tables:
    """The page's tables: the first `Budget.rows` of each, by the first number in it."""

    def __init__(self, profile: Profile, files: _Files, budget: Budget) -> None:
        self._profile = profile
        self._files = files
        self._limit = budget.rows
        self._device = "device" if profile.metric == "device" else "operators"

    def lines(self) -> dict[str, Any]:
        """By what they cost the run, with what no line has."""
        profile = self._profile
        whole = sum(line.cost_ns for line in profile.lines) + profile.no_line.cost_ns
        columns: _Columns = [
            ("line", "place", self._where),
            ("cost", "time", lambda row: row.cost_ns),
            ("share", "share", lambda row: row.cost_ns / whole if whole else 0),
            *self._numbers(),
            ("why", "text", lambda row: getattr(row, "verdict", "")),
            ("calls", "count", lambda row: row.calls),
            ("source", "text", lambda row: (row.text or "").strip() if isinstance(row, Line) else ""),
        ]
        rows: list[Numbers] = [*sorted(profile.lines, key=lambda row: -row.cost_ns)]
        if profile.no_line.cost_ns or profile.no_line.self_device_ns:
            rows.insert(min(len(rows), self._limit - 1), profile.no_line)
        return self._table("lines", "Lines", columns, rows)

    def functions(self) -> dict[str, Any]:
        """By cost."""
        columns: _Columns = [
            ("function", "text", lambda row: row.function),
            ("line", "place", self._where),
            ("cost", "time", lambda row: row.cost_ns),
            *self._numbers(),
            ("calls", "count", lambda row: row.calls),
        ]
        rows = sorted(self._profile.functions, key=lambda row: -row.cost_ns)
        return self._table("functions", "Functions", columns, rows)

    def operators(self) -> dict[str, Any]:
        """By device time."""
        columns: _Columns = [
            ("operator", "text", lambda row: readable(row.name)),
            (f"{self._device} self", "time", lambda row: row.self_device_ns),
            (f"{self._device} total", "time", lambda row: row.total_device_ns),
            ("CPU self", "time", lambda row: row.self_cpu_ns),
            ("CPU total", "time", lambda row: row.total_cpu_ns),
            ("calls", "count", lambda row: row.calls),
            ("FLOPs", "count", lambda row: row.flops),
            ("why", "text", lambda row: row.verdict),
        ]
        return self._table("operators", "Operators", columns, self._profile.operators)

    def kernels(self) -> dict[str, Any]:
        """By device time."""
        columns: _Columns = [
            ("kernel", "text", lambda row: readable(row.name)),
            ("kind", "text", lambda row: row.kind),
            ("device", "time", lambda row: row.device_ns),
            ("calls", "count", lambda row: row.calls),
            ("mean", "time", lambda row: row.mean_ns),
            ("longest", "time", lambda row: row.max_ns),
            ("operator", "text", lambda row: readable(row.operator)),
        ]
        return self._table("kernels", "Kernels", columns, self._profile.kernels)

    def modules(self) -> dict[str, Any]:
        """By device time."""
        columns: _Columns = [
            ("module", "text", lambda row: row.path),
            ("class", "text", lambda row: row.class_name),
            *self._numbers(),
            ("calls", "count", lambda row: row.calls),
        ]
        return self._table("modules", "Modules", columns, self._profile.modules)

    def framework(self) -> dict[str, Any]:
        """What a training framework costs on its own account, in the cost of the line that calls its loop."""
        columns: _Columns = [
            ("part", "text", lambda row: f"{row.framework}: {row.part}"),
            ("called at", "place", self._where),
            ("cost", "time", lambda row: row.cost_ns),
        ]
        return self._table("framework", "Framework", columns, self._profile.framework)

    def steps(self) -> dict[str, Any]:
        """In their order."""
        columns: _Columns = [
            ("step", "text", lambda row: str(row.number)),
            ("time", "time", lambda row: row.duration_ns),
            (self._device, "time", lambda row: row.device_ns),
            ("busy", "time", lambda row: row.busy_ns),
            ("idle", "time", lambda row: row.idle_ns),
            ("waiting", "time", lambda row: row.wait_ns),
            *((name, "time", lambda row, name=name: row.phases.get(name, 0)) for name in _PHASES),
        ]
        return self._table("steps", "Steps", columns, self._profile.steps)

    def _numbers(self) -> _Columns:
        return [
            (f"{self._device} self", "time", lambda row: row.self_device_ns),
            ("total", "time", lambda row: row.total_device_ns),
            ("backward", "time", lambda row: row.backward_device_ns),
            ("idle", "time", lambda row: row.idle_ns),
            ("wait", "time", lambda row: row.wait_ns),
            ("CPU", "time", lambda row: row.self_cpu_ns),
        ]

    def _where(self, row: Any) -> str:
        return f"{self._files.name(row.file)}:{row.line}" if hasattr(row, "file") else "(no user line)"

    def _table(self, name: str, title: str, columns: _Columns, rows: Sequence[Any]) -> dict[str, Any]:
        shown = rows[: self._limit]
        cells = [[value(row) for _, _, value in columns] for row in shown]
        used = [
            number
            for number, (_, kind, _) in enumerate(columns)
            if number == 0 or kind == "place" or any(row[number] for row in cells)
        ]
        return {
            "id": name,
            "title": title,
            "columns": [{"title": columns[number][0], "kind": columns[number][1]} for number in used],
            "rows": [
                [_word(row[number]) if isinstance(row[number], str) else row[number] for number in used]
                for row in cells
            ],
            "places": [[self._files.index(row.file), row.line] if hasattr(row, "file") else [-1, 0] for row in shown],
            "leftOut": len(rows) - len(shown),
        }


_KINDS = ("line", "module", "library", "operator", "kernel", "other")


def _flame(profile: Profile, files: _Files, limit: int) -> dict[str, Any]:
    """The call tree with what is below lines, as rows; of too many nodes the smallest go into their parents' time."""
    names: dict[str, int] = {}
    nodes: list[list[int]] = []
    children: dict[tuple[int, int], int] = {}
    lines = [
        (_word(f"{line.function} · {_last(line.file)}:{line.line}"), 0, files.index(line.file), line.line)
        for line in profile.lines
    ]
    lines.append(("(no user line)", 0, -1, 0))
    places = [_place(one, files) for one in profile.places]
    for stack in stacks(profile):
        parent = -1
        path = [*(number % len(lines) for number in stack.lines), *(len(lines) + place for place in stack.places)]
        for step in path:
            node = children.setdefault((parent, step), len(nodes))
            if node == len(nodes):
                name, kind, file, line = lines[step] if step < len(lines) else places[step - len(lines)]
                nodes.append([parent, names.setdefault(name, len(names)), kind, 0, 0, 0, file, line])
            parent = node
        own = nodes[parent]
        own[3] += stack.device_ns
        own[4] += stack.backward_device_ns
        own[5] += stack.cpu_ns
    return {"names": list(names), "kinds": list(_KINDS), "nodes": _largest(nodes, limit)}


def _place(place: Place, files: _Files) -> tuple[str, int, int, int]:
    where = f" · {_last(place.file)}:{place.line}" if place.kind == "library" and place.line else ""
    return (
        _word(place_name(place.kind, place.name) + where),
        _KINDS.index(place.kind),
        files.index(place.file),
        place.line,
    )


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _largest(nodes: list[list[int]], limit: int) -> list[list[int]]:
    """The nodes with most time below them; a node's parent has no less, so that what is left is a tree."""
    if len(nodes) <= limit:
        return nodes
    whole = [max(node[3], 0) + max(node[5], 0) for node in nodes]
    for number in range(len(nodes) - 1, -1, -1):
        if nodes[number][0] >= 0:
            whole[nodes[number][0]] += whole[number]
    kept = sorted(sorted(range(len(nodes)), key=lambda number: (-whole[number], number))[:limit])
    place = {number: at for at, number in enumerate(kept)}
    result = [[place.get(nodes[number][0], -1), *nodes[number][1:]] for number in kept]
    for number in range(len(nodes) - 1, -1, -1):
        if number not in place:
            above = nodes[number][0]
            into = result[place[above]] if above in place else nodes[above] if above >= 0 else None
            if into is not None:
                for column in (3, 4, 5):
                    into[column] += nodes[number][column]
    return result
