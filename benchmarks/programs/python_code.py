"""Steps of one kind of Python code: the CPU time of its statement, unrecorded and recorded, and what the report shows.

The statement is timed where it stands, by the thread's own CPU clock, so that its truth owes nothing to the recorder.
Writes `result.json` into `--folder`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

import deepscope

PRELUDE = """
import contextlib, json, math
from time import thread_time_ns as clock

import torch

VALUES = [(i * 7919) % 100_003 for i in range(40_000)]
RECORDS = [{"id": i, "name": f"n{i}", "values": [i, i + 1, i * 0.5]} for i in range(4_000)]
X = torch.ones(4)


def scale(value):
    return value * 3


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


class Box:
    def __init__(self):
        self._value = 1

    @property
    def value(self):
        return self._value


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


@contextlib.contextmanager
def guarded():
    yield 1


BOX, GUARD = Box(), Guard()
"""

_LONG = [f"a = a + {number % 7}" for number in range(2000)]

KINDS: dict[str, list[str]] = {
    "generator": ["total = sum(i * i for i in range(100_000))"],
    "comprehension": ["squares = [i * i for i in range(100_000)]"],
    "key function": ["found = sorted(VALUES, key=lambda v: -v)"],
    "callback": ["found = list(map(scale, VALUES))"],
    "recursion": ["found = fib(18)"],
    "tight loop": ["total = 0", "for i in range(20_000):", "    total += i"],
    "long loop": ["total = 0", "for i in range(200_000):", "    total += i"],
    "properties": ["total = 0", "for _ in range(20_000):", "    total += BOX.value"],
    "context managers": ["for _ in range(4_000):", "    with GUARD, guarded():", "        pass"],
    "long function": ["a = 0", *(_LONG * 2)],
    "C calls": ["text = json.dumps(RECORDS)", "roots = list(map(math.sqrt, VALUES))", "found = sorted(VALUES)"],
    "tiny operators": ["x = X", "for _ in range(2_000):", "    x = x + 1"],
}
"""By kind, the statements whose cost is looked at."""

_BEFORE, _AFTER = "    started = clock()", "    times.append(clock() - started)"


def source(kind: str) -> tuple[str, range]:
    """A module with `step(times)` of that kind, and the lines of its statements."""
    before = [*PRELUDE.strip().splitlines(), "", "", "def step(times):", _BEFORE]
    lines = [*before, *(f"    {line}" for line in KINDS[kind]), _AFTER]
    return "\n".join(lines) + "\n", range(len(before) + 1, len(lines))


def load(kind: str, folder: Path) -> Callable[[list[int]], None]:
    """The step of that kind, from a file of its own, as the user's code is."""
    path = folder / "code_of_user.py"
    path.write_text(source(kind)[0])
    spec = importlib.util.spec_from_file_location("code_of_user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[list[int]], None] = module.step
    return step


_PLAIN = 9
"""Steps before the window, which the recorder times as it does in any run."""


def take_core() -> None:
    """Keep other work off this thread's core, where the system lets: spans have no CPU clock, and would hold it."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))  # type: ignore[attr-defined]


def give_core_back() -> None:
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # type: ignore[attr-defined]


def measure(kind: str, folder: Path, steps: int) -> dict[str, object]:
    """Plain steps, recorded ones, plain ones again; what the report shows of the recorded ones."""
    step = load(kind, folder)
    plain: list[int] = []
    recorded: list[int] = []
    recording = deepscope.profile(folder / "traces", root=folder, wait=_PLAIN, warmup=1, active=steps)
    recording.start()
    tensor = torch.ones(4)
    for _ in range(_PLAIN):
        step(plain)
        tensor + 1
        recording.step()
    recording.step()
    for _ in range(steps):
        take_core()
        step(recorded)
        give_core_back()
        tensor + 1  # torch leaves a last step out in which no operator ran
        recording.step()
    recording.stop()
    after: list[int] = []
    for _ in range(5):
        step(after)
    (trace,) = recording.traces
    profile = deepscope.load_profile(trace)
    clocks = (source(kind)[1].start - 1, source(kind)[1].stop)
    lines = [one for one in profile.lines if one.file.endswith("code_of_user.py") and one.line not in clocks]
    return {
        "plain_ms": statistics.median(plain[4:]) / 1e6,
        "after_ms": statistics.median(after) / 1e6,
        "recorded_ms": [spent / 1e6 for spent in recorded],
        "shown_ms": sum(one.cost_ns for one in lines) / steps / 1e6,
        "recorder_ms": profile.totals.recording_ns / steps / 1e6,
        "is_slowed": any(one.slowed for one in lines),
        "lines": {f"{one.line} {one.function}": one.cost_ns / steps / 1e6 for one in lines[:8]},
        "account": profile.trace.recording,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=list(KINDS), required=True)
    parser.add_argument("--steps", type=int, default=5, help="recorded steps (default 5)")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    result = measure(options.kind, options.folder, options.steps)
    (options.folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
