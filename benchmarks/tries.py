"""What `deepscope try` says of remedies beside the same change made by hand, which `deepscope verify` measures.

Each program of `tests/targets/advice` whose mistake can be mended from outside runs as a script of its own. Both
commands time whole runs in turn; what each says the program gains is compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import Spread
from results import Goal, Result, make_parser

_ROOT = Path(__file__).resolve().parents[1]
_PROGRAMS = _ROOT / "tests" / "targets" / "advice"
REMEDIES = {
    "ds003": "loader-workers",
    "ds009": "zero-grad-to-none",
    "ds011": "fused-optimizer",
    "ds017": "channels-last",
    "ds021": "persistent-workers",
    "ds022": "anomaly-off",
}
"""Of each program with a mistake, what mends it from outside."""
TRAPS = {"ds008": "fused-optimizer", "ds013": "zero-grad-to-none", "ds033": "loader-workers", "ds035": "anomaly-off"}
"""Programs for which a popular remedy does nothing; by hand they are left as they are."""
_STEPS = 400
_SCRIPT = """
import sys
import torch
sys.path.insert(0, {folder!r})
from {name} import make
if __name__ == "__main__":
    step = make({mended})
    ends_steps = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.0)
    for _ in range({steps}):
        step()
        ends_steps.step()
"""
"""Some of the programs have no optimizer, whose steps are what is timed."""


def answer(folder: Path, command: list[str], options: Any) -> dict[str, Any]:
    """The one row that a command prints as JSON; it ends with 3 where the program got slower."""
    words = [options.python, "-m", "deepscope", *command]
    path = os.pathsep.join([str(_ROOT / "integrations"), str(_ROOT / "lsp_server")])
    done = subprocess.run(
        words, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 3}:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    (row,) = json.loads(done.stdout)["tries"]
    return dict(row)


def compared(name: str, remedy: str, options: Any, *, is_trap: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the remedy gains from outside, and by hand."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file, mended in (("train.py", False), ("by_hand.py", not is_trap)):
            text = _SCRIPT.format(folder=str(_PROGRAMS), name=name, mended=mended, steps=_STEPS)
            (folder / file).write_text(text)
        common = ["--yes", "--format", "json"]
        tried = answer(folder, ["try", remedy, *common, "--", "train.py"], options)
        by_hand = ["verify", "--before", "train.py", "--after", "by_hand.py", *common, "--", "train.py"]
        return tried, answer(folder, by_hand, options)


def told(row: dict[str, Any]) -> str:
    """`1.31 (1.25 to 1.38) faster, losses identical`."""
    if row.get("speedup") is None:
        return f"{row['verdict']}: {row['reason']}"
    low, high = row["interval"]
    return f"{row['speedup']:.2f} ({low:.2f} to {high:.2f}) {row['verdict']}, losses {row['losses']}"


def main() -> None:
    parser = make_parser(__doc__, 1)
    parser.add_argument("--program", choices=[*REMEDIES, *TRAPS], action="append", help="only this one")
    options = parser.parse_args()
    result = Result.of("tries", options, {"steps": _STEPS})
    table, apart = [["program", "remedy", "tried", "by hand"]], []
    for name, remedy in (REMEDIES | TRAPS).items():
        if options.program and name not in options.program:
            continue
        tried, by_hand = compared(name, remedy, options, is_trap=name in TRAPS)
        table.append([name.upper(), remedy, told(tried), told(by_hand)])
        print(*table[-1], sep="  ", file=sys.stderr)
        if tried.get("speedup") and by_hand.get("speedup"):
            apart.append(abs(tried["speedup"] / by_hand["speedup"] - 1))
    if apart:
        result.goals.append(Goal("speed-up as tried and by hand differ by", Spread.of(apart), at_most=0.1))
    result.tables["Speed-up"] = table
    result.finish(options)


if __name__ == "__main__":
    main()
