"""Writes benchmarks/figures.md out of measurements.

python benchmarks/figures.py reading.json recording-3.11.json recording-3.13.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).resolve().with_suffix(".md")
_HEAD = """# Figures

Written by `figures.py`; [docs/benchmarks.md](../docs/benchmarks.md) says how they are measured, and what they come to.
"""
_KNOWN_TO = {"cpu": "{}", "cores": "{} cores", "memory_gib": "{} GiB", "system": "{}", "load": "load {} at the start"}


def markdown(result: dict[str, Any]) -> str:
    """One benchmark as a section: what it ran on, its goals, its tables."""
    python = result["versions"]["python"]
    machine = ", ".join(form.format(result["machine"][key]) for key, form in _KNOWN_TO.items())
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)
    goals = [["claim", "goal", "median (low to high)", ""]]
    for goal in result["goals"]:
        limit = f"≤ {goal['at_most']:g}" if goal["at_most"] is not None else ""
        limit = f"≥ {goal['at_least']:g}" if goal["at_least"] is not None else limit
        verdict = "" if not limit else ("met" if goal["is_met"] else "**short**")
        median, low, high = (f"{goal['measured'][key]:.3g}" for key in ("median", "low", "high"))
        goals.append([goal["claim"], limit, median if low == high else f"{median} ({low} to {high})", verdict])
    parts = [f"## {result['benchmark'].capitalize()}, Python {python}", f"{machine}; {versions}.", _table(goals)]
    for title, rows in result["tables"].items():
        parts += [f"{title[0].upper()}{title[1:]}:", _table(rows)]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    rule = ["---", *("--:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *body])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="what the programs wrote with --json")
    parser.add_argument("--page", type=Path, default=_PAGE, help="the page to write (default benchmarks/figures.md)")
    options = parser.parse_args()
    sections = [markdown(json.loads(path.read_text(encoding="utf-8"))) for path in options.results]
    options.page.write_text("\n".join([_HEAD, *sections]), encoding="utf-8")


if __name__ == "__main__":
    main()
