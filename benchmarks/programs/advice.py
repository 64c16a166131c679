"""One of the programs of `tests/targets/advice`, bad or mended: the time of its steps, or a recording of some of them.

Writes `result.json` into `--folder`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from types import ModuleType

import torch

import deepscope

PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "targets" / "advice"


def load(rule: str) -> ModuleType:
    """The program of a rule."""
    sys.path.insert(0, str(PROGRAMS))
    return importlib.import_module(rule.lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rule", required=True, help="code of a rule: DS003")
    parser.add_argument("--mended", action="store_true", help="without the mistake")
    parser.add_argument("--record", action="store_true", help="record the steps, and read what is found")
    parser.add_argument("--steps", type=int, default=24, help="steps after as many as warm up (default 24)")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    program = load(options.rule)
    step: Callable[[], None] = program.make(options.mended)
    for _ in range(options.steps // 2):
        step()
    clock = perf_counter_ns if getattr(program, "WAITS", False) else process_time_ns
    is_audited = getattr(program, "AUDITED", False)
    if options.record:
        result = recorded(step, options.steps, options.folder, audit=is_audited)
    else:
        result = timed(step, options.steps, clock)
    (options.folder / "result.json").write_text(json.dumps(result))


def timed(step: Callable[[], None], steps: int, clock: Callable[[], int] = process_time_ns) -> dict[str, object]:
    """The time of a step on the average, without any recording; slow steps count.

    It is the CPU's, that of the clock on the wall for a program that waits for others.
    """
    started = clock()
    for _ in range(steps):
        step()
    return {"step_ms": (clock() - started) / steps / 1e6}


def recorded(step: Callable[[], None], steps: int, folder: Path, *, audit: bool = False) -> dict[str, object]:
    """What is found in a recording, and what it would save a step."""
    with deepscope.profile(folder, root=PROGRAMS, wait=0, warmup=2, active=steps, audit=audit) as recording:
        for _ in range(steps + 2 + 3 * audit):
            step()
            recording.step()
    (trace,) = recording.traces
    profile = deepscope.load_profile(trace)
    count = max(profile.totals.steps, 1)
    found = [{"code": one.code, "line": one.line, "saving_ms": one.saving_ns / 1e6 / count} for one in profile.findings]
    own_ns = profile.totals.wall_ns - profile.totals.recording_ns
    return {"step_ms": own_ns / 1e6 / count, "findings": found}


if __name__ == "__main__":
    main()
