"""One of the programs of `tests/targets/advice`, bad or mended: the time of its steps, or a recording of some of them.

With `--rounds` both in turn, and a recording of each, in one process: on a device it takes longer to start one than to
make the steps. Writes `result.json` into `--folder`.
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
from typing import Any

import torch

import deepscope

PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "targets" / "advice"


def load(rule: str, device: str) -> ModuleType:
    """The program of a rule."""
    sys.path.insert(0, str(PROGRAMS if device == "cpu" else PROGRAMS / "device"))
    return importlib.import_module(rule.lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rule", required=True, help="code of a rule: DS003")
    parser.add_argument("--mended", action="store_true", help="without the mistake")
    parser.add_argument("--record", action="store_true", help="record the steps, and read what is found")
    parser.add_argument("--rounds", type=int, default=0, help="times that both are timed in turn")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="what computes (default cpu)")
    parser.add_argument("--steps", type=int, default=24, help="steps after as many as warm up (default 24)")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_default_device(options.device)
    program = load(options.rule, options.device)
    waits = options.device != "cpu" or getattr(program, "WAITS", False)
    clock = perf_counter_ns if waits else process_time_ns

    def measured(*, mended: bool, record: bool) -> dict[str, Any]:
        step: Callable[[], None] = program.make(mended)
        for _ in range(options.steps // 2):
            step()
        if record:
            return recorded(step, options.steps, options.folder, audit=getattr(program, "AUDITED", False))
        return timed(step, options.steps, clock)

    if not options.rounds:
        result = measured(mended=options.mended, record=options.record)
    else:
        words = {"bad": False, "mended": True}
        timings = [{word: measured(mended=words[word], record=False) for word in words} for _ in range(options.rounds)]
        result = {"timings": timings, **{word: measured(mended=words[word], record=True) for word in words}}
    (options.folder / "result.json").write_text(json.dumps(result))


def timed(step: Callable[[], None], steps: int, clock: Callable[[], int] = process_time_ns) -> dict[str, Any]:
    """The time of a step on the average, without any recording; slow steps count.

    It is the CPU's, that of the clock on the wall for a program that waits for others or for a device.
    """
    finish_work()
    started = clock()
    for _ in range(steps):
        step()
    finish_work()
    return {"step_ms": (clock() - started) / steps / 1e6}


def finish_work() -> None:
    """Wait until the device has nothing left to do."""
    if torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()


def recorded(step: Callable[[], None], steps: int, folder: Path, *, audit: bool = False) -> dict[str, Any]:
    """What is found in a recording, and what it would save a step."""
    with deepscope.profile(folder, root=PROGRAMS, wait=0, warmup=2, active=steps, audit=audit) as recording:
        for _ in range(steps + 2 + 3 * audit):
            step()
            recording.step()
    (trace,) = recording.traces
    profile = deepscope.load_profile(trace)
    count = max(profile.totals.steps, 1)
    found = [{"code": one.code, "line": one.line, "saving_ms": one.saving_ns / 1e6 / count} for one in profile.findings]
    return {"step_ms": profile.totals.wall_ns / 1e6 / count, "findings": found}


if __name__ == "__main__":
    main()
