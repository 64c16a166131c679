"""How much device time reaches a line, function or module: tests/data/resolved.json, trace by trace, may only grow.

`DEEPSCOPE_REGENERATE=1 python -m pytest tests/integration/test_resolved.py` writes it anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from recorded_traces import SHARED_TRACES, own_paths, profile_of, shared_paths, trace_name

TABLE = Path(__file__).resolve().parents[1] / "data" / "resolved.json"
LEVELS = ("line_ns", "function_ns", "module_ns", "none_ns")


def resolve(path: Path) -> dict[str, int | float | str]:
    profile = profile_of(path)
    levels = {level: getattr(profile.resolved, level) for level in LEVELS}
    return {"metric": profile.metric, **levels, "ratio": round(profile.resolved.ratio, 4)}


def test_no_trace_resolves_less_than_it_did():
    own = {trace_name(path) for path in own_paths()}
    now = {trace_name(path): resolve(path) for path in (*own_paths(), *shared_paths())}
    if os.environ.get("DEEPSCOPE_REGENERATE"):
        rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in now.items()]
        TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    before = table if SHARED_TRACES else {name: row for name, row in table.items() if name in own}
    assert now.keys() == before.keys(), "traces came or went: DEEPSCOPE_REGENERATE=1 writes the table anew"
    for name, row in before.items():
        found = now[name]
        assert sum(found[level] for level in LEVELS) == sum(row[level] for level in LEVELS), name
        assert found["line_ns"] >= row["line_ns"], name
        assert found["line_ns"] + found["function_ns"] >= row["line_ns"] + row["function_ns"], name
        assert found["none_ns"] <= row["none_ns"], name
