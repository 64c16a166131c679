"""Measurements as tables, goals and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Runs, Spread

__all__ = ["Goal", "Result", "render_table"]


@dataclass(frozen=True)
class Goal:
    """A number that should be at most, or at least, a limit; without a limit it is there for information."""

    claim: str
    measured: Spread
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_met(self) -> bool:
        above = self.at_least is None or self.measured.median >= self.at_least
        below = self.at_most is None or self.measured.median <= self.at_most
        return above and below

    def row(self) -> list[str]:
        """claim, goal, measured, verdict."""
        if self.at_most is None and self.at_least is None:
            goal, verdict = "", ""
        else:
            goal = f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"
            verdict = "met" if self.is_met else "SHORT"
        low, high = self.measured.low, self.measured.high
        measured = f"{self.measured.median:.3g} ({low:.3g} to {high:.3g})"
        return [self.claim, goal, measured, verdict]


@dataclass
class Result:
    """All that one benchmark measured."""

    benchmark: str
    machine: Mapping[str, Any]
    versions: Mapping[str, Any]
    settings: Mapping[str, Any]
    goals: list[Goal]
    tables: dict[str, list[list[str]]]
    samples: dict[str, Any]

    def add_runs(self, title: str, runs: Runs) -> None:
        """Keeps wall time, CPU time and peak of each run; what the programs printed is left out."""
        self.samples[title] = {
            name: [{"wall_s": s.wall_s, "cpu_s": s.cpu_s, "peak_bytes": s.peak_bytes} for s in samples]
            for name, samples in runs.samples.items()
        }

    def print(self) -> None:
        """To stdout: the machine, each table, the goals."""
        machine = ", ".join(f"{key} {value}" for key, value in self.machine.items())
        versions = ", ".join(f"{key} {value}" for key, value in self.versions.items() if value)
        print(f"{self.benchmark}\n  {machine}\n  {versions}")
        for title, rows in self.tables.items():
            print(f"\n{title}\n{render_table(rows)}")
        print(f"\nGoals\n{render_table([['claim', 'goal', 'measured', ''], *(goal.row() for goal in self.goals)])}")

    def write_json(self, path: Path) -> None:
        content = asdict(self)
        content["goals"] = [{**asdict(goal), "is_met": goal.is_met} for goal in self.goals]
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def render_table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, the first to the left and the others to the right; row 0 is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
