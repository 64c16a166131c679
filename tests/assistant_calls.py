"""What an assistant reads that follows the skill: the documented commands on a program, and how long the answers are.

`python tests/assistant_calls.py` prints what docs/assistants.md sums up: the skill's first two calls beside
`key_averages().table()` and the trace itself, for each program of targets/advice/mistaken.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKILL = ROOT / "skills" / "deepscope"
PROGRAMS = ROOT / "tests" / "targets" / "advice" / "mistaken"
CALLS = 2
"""So many calls have to lead to the line, the cause and the remedy."""

KEY_AVERAGES = """
import runpy
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as prof:
    runpy.run_path("train.py", run_name="__main__")
print(prof.key_averages().table())
"""


def tokens(text: str) -> int:
    """About how many tokens a text has: one for four characters."""
    return round(len(text) / 4)


def documented_commands(page: Path) -> list[list[str]]:
    """The words of each `$ deepscope …` line and each `deepscope …` in code of a page."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^\$ (deepscope .+)$|`(deepscope [^`]+)`", text, re.MULTILINE)
    return [shlex.split(line or inline, comments=True) for line, inline in found]


def steps_of_the_skill() -> list[list[str]]:
    """The commands of its loop, in order: run, report, try, verify."""
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^\$ (deepscope .+)$", text, re.MULTILINE)]


def next_step(text: str) -> list[str]:
    """The words of the last line of a command; none where it names no command."""
    found = re.search(r"^next: (deepscope .+)$", text, re.MULTILINE)
    return shlex.split(found[1]) if found else []


def call(words: list[str], folder: Path) -> str:
    """What a command writes to standard output.

    Raises:
        AssertionError: it failed.
    """
    assert words[0] == "deepscope"
    return _output(folder, "-m", *words)


def _output(folder: Path, *arguments: str) -> str:
    """What Python writes; on one thread, which is read at its start: several would wait for each other."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Answers:
    """What the skill's calls and the other ways answer for a program."""

    calls: list[str]
    """Of the skill's first calls."""
    key_averages: str
    trace: str


def answers_for(program: Path, folder: Path) -> Answers:
    """The skill's first calls on a program, as `train.py` in a folder: the documented one, then what it leads to."""
    shutil.copyfile(program, folder / "train.py")
    calls = [call(steps_of_the_skill()[0], folder)]
    while len(calls) < CALLS and (words := next_step(calls[-1]))[:2] == ["deepscope", "report"]:
        calls.append(call(words, folder))
    key_averages = _output(folder, "-c", KEY_AVERAGES)
    (trace,) = (folder / "deepscope_logs").glob("*.json.gz")
    return Answers(calls, key_averages, gzip.decompress(trace.read_bytes()).decode())


def main() -> None:
    print("| program | the skill's calls | key_averages().table() | the trace |")
    print("|---|---|---|---|")
    for program in sorted(PROGRAMS.glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:
            found = answers_for(program, Path(folder))
        sizes = (sum(map(tokens, found.calls)), tokens(found.key_averages), tokens(found.trace))
        print(f"| {program.stem} |", " | ".join(f"{size:,}" for size in sizes), "|", flush=True)


if __name__ == "__main__":
    main()
