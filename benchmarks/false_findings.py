"""What findings say of programs that need no change, and of programs with one known mistake each.

Each program of `tests/targets/advice/clean` and `mistaken` runs under `deepscope run`. A mistaken program
names the code of its finding first in its docstring. A finding that promises a saving, or is no mere hint, counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import deepscope
from deepscope.records import Finding, Profile

_PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "targets" / "advice"


def recorded(program: Path, options: list[str]) -> Profile:
    """The profile of one run of a program."""
    whole = ["--whole"] if "--whole" in program.read_text(encoding="utf-8") else []
    if whole:  # which has no steps to look at
        options = [one for one in options if one != "--audit"]
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        command = [sys.executable, "-m", "deepscope", "run", "--folder", folder, *whole, *options]
        ran = subprocess.run([*command, str(program)], check=False, cwd=folder, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{program.name}: {ran.stderr}")
        return deepscope.load_profile(folder, cache=False)


def described(finding: Finding, profile: Profile) -> str:
    share = finding.saving_ns / max(profile.totals.wall_ns, 1)
    return f"    {finding.code} line {finding.line}, {share:.1%}: {finding.message}. {finding.remedy.text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="programs whose names hold this")
    parser.add_argument("options", nargs="*", help="options of deepscope run, behind --")
    chosen = parser.parse_args()
    counts = {}
    for kind in ("clean", "mistaken"):
        programs = [one for one in sorted((_PROGRAMS / kind).glob("*.py")) if (chosen.only or "") in one.name]
        hits = 0
        for program in programs:
            profile = recorded(program, chosen.options)
            code = program.read_text(encoding="utf-8")[3:8]
            codes = {one.code for one in profile.findings}
            hits += code in codes if kind == "mistaken" else bool(codes)
            step_ms = profile.totals.wall_ns / max(profile.totals.steps, 1) / 1e6
            print(f"{kind} {program.stem}: {step_ms:.1f} ms a step, {' '.join(sorted(codes)) or 'nothing found'}")
            for finding in profile.findings:
                print(described(finding, profile))
        counts[kind] = hits, len(programs)
    print("clean programs with findings: {} of {}".format(*counts["clean"]))
    print("mistakes found: {} of {}".format(*counts["mistaken"]))


if __name__ == "__main__":
    main()
