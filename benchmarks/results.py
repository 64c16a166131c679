"""Measurements as tables, goals and JSON, with what they were measured on; nothing names the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Runs, Spread

RECORDED_TRACE = (
    Path(__file__).resolve().parents[2] / "shared/traces/tracelens-xdit_sd_3.5-profile_trace_rank_0.json.gz"
)
"""62 MB of JSON: a diffusion inference with Python frames."""


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

    @classmethod
    def of(cls, benchmark: str, options: argparse.Namespace, settings: Mapping[str, Any]) -> Result:
        """Without measurements yet, on this machine and the interpreter of `--python`."""
        return cls(
            benchmark,
            describe_machine(),
            describe_python(vars(options).get("python", sys.executable)),
            settings,
            [],
            {},
            {},
        )

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

    def finish(self, options: argparse.Namespace) -> None:
        """Printed, and written to `--json`."""
        self.print()
        if options.json:
            self._write_json(options.json)

    def _write_json(self, path: Path) -> None:
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


def make_parser(doc: str | None, repeats: int, *, interpreter: bool = True) -> argparse.ArgumentParser:
    """With the options that every benchmark has; `--python` only where `interpreter` holds."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=repeats, help=f"rounds that count (default {repeats})")
    if interpreter:
        parser.add_argument("--python", default=sys.executable, help="interpreter to measure (default this one)")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    return parser


_VERSIONS = """
import importlib.metadata, json, platform
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
names = ["torch", "lightning", "HolisticTraceAnalysis", "torch-tb-profiler", "numpy", "msgspec", "isal", "pygls"]
print(json.dumps({"python": platform.python_version(), **{name: version(name) for name in names}}))
"""


def describe_machine() -> dict[str, str | int | float]:
    """Processor, cores that this process may use, memory in GiB, system, and how many other programs were running."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
    }


def describe_python(python: str) -> dict[str, str | None]:
    """The interpreter's version and those of the packages that are measured with it."""
    done = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    versions: dict[str, str | None] = json.loads(done.stdout)
    return versions


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
