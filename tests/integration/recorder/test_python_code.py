"""What is taken off lines is what recording adds to them: the thread's own CPU clock in the program is the witness.

It reads the same statements in plain steps and in recorded ones, so that other work on the machine does not matter.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.records import Line, Profile

PRELUDE = """
from time import thread_time_ns as clock

VALUES = [(i * 7919) % 30_011 for i in range(30_000)]


def scale(value):
    return value * 3


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


class Box:
    @property
    def value(self):
        return 1


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


BOX, GUARD = Box(), Guard()


def step(times):
    started = clock()
"""
KINDS = {
    "generator": "total = sum(i * i for i in range(60_000))",
    "comprehension": "squares = [i * i for i in range(60_000)]",
    "key function": "found = sorted(VALUES, key=lambda v: -v)",
    "callback": "found = list(map(scale, VALUES))",
    "recursion": "found = fib(17)",
    "loop": "total = 0\n    for i in range(20_000):\n        total += i",
    "properties": "total = 0\n    for _ in range(10_000):\n        total += BOX.value",
    "context managers": "for _ in range(4_000):\n        with GUARD:\n            pass",
    "long function": "a = 0\n" + "\n".join(f"    a = a + {number % 7}" for number in range(1500)),
    "calls of C": "found = sorted(VALUES)\n    texts = list(map(str, VALUES))",
}
STEPS = 3


def load(folder: Path, source: str) -> Callable[[list[int]], None]:
    path = folder / "code_of_user.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("code_of_user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[list[int]], None] = module.step
    return step


def recorded(folder: Path, statement: str) -> tuple[float, float, Profile]:
    """The CPU time in milliseconds that recording adds to some steps, what they take without it, and their profile."""
    step = load(folder, f"{PRELUDE}    {statement}\n    times.append(clock() - started)\n")
    plain: list[int] = []
    slowed: list[int] = []
    for _ in range(7):
        step(plain)
    with deepscope.profile(folder / "traces", root=folder, wait=0, warmup=1, active=STEPS) as prof:
        prof.step()
        for _ in range(STEPS):
            step(slowed)
            prof.step()
    plain_ns = STEPS * statistics.median(plain)
    return (sum(slowed) - plain_ns) / 1e6, plain_ns / 1e6, deepscope.load_profile(prof.traces[0])


def lines_of(profile: Profile) -> list[Line]:
    return [line for line in profile.lines if line.file.endswith("code_of_user.py")]


@pytest.mark.parametrize("kind", KINDS)
def test_what_recording_adds_is_taken_off_the_lines_that_it_was_added_to(kind: str, tmp_path: Path) -> None:
    added_ms, plain_ms, profile = recorded(tmp_path, KINDS[kind])
    taken_off_ms = sum(line.recording_ns for line in lines_of(profile)) / 1e6
    noise_ms = 8 + plain_ms / 2  # a busy machine's cores are not always equally fast
    # Before 3.12 Python itself runs slower under a trace function, of which no hook knows.
    least = 0.4 if sys.version_info >= (3, 12) else 0.25
    if kind == "long function":
        least = 0.15  # most of it lies between lines that hardly take any time, in none of them
    assert least * added_ms - noise_ms <= taken_off_ms <= 1.6 * added_ms + noise_ms


@pytest.mark.parametrize("kind", ["generator", "key function"])
def test_what_runs_from_its_own_line_and_holds_nothing_gets_no_more_events(kind: str, tmp_path: Path) -> None:
    if sys.version_info < (3, 12):
        return  # settrace hears of every call
    _, _, profile = recorded(tmp_path, KINDS[kind])
    assert profile.trace.recording["calls"] < 30_000, "of at least 90,000"  # a busy machine needs some more trials
    assert not profile.trace.recording["lowered"], "nothing stands elsewhere"


KEEPS = """
import torch


def double(value):
    return value * 2


def step(times):
    rows = (torch.ones(4) + i for i in range(600))
    for row in rows:
        row.sum()
    total = sum(double(i) for i in range(600))
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    y.sum().backward()
"""


def test_generators_consumed_elsewhere_hooks_and_calls_keep_their_lines(tmp_path: Path) -> None:
    step = load(tmp_path, KEEPS)
    with deepscope.profile(tmp_path / "traces", root=tmp_path, wait=0, warmup=1, active=1) as prof:
        prof.step()
        step([])
        prof.step()
    lines = lines_of(deepscope.load_profile(prof.traces[0]))
    on = {number: sum(line.operators for line in lines if line.line == number) for number in (10, 12, 16)}
    # Torch before 2.3 has whole microseconds, by which an operator may seem to lie beside the one that called it: at
    # most all that ones, add and the conversion of the number (8) and sum, as_strided and fill_ (3) call are counted.
    whole_microseconds = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3)
    of_the_generator, of_the_sum = (8, 3) if whole_microseconds else (2, 1)
    assert 2 * 600 <= on[10] <= of_the_generator * 600, "the generator's line has its operators, though another asks"
    assert 600 <= on[12] <= of_the_sum * 600
    if sys.version_info >= (3, 12):  # settrace does not reach autograd's threads
        assert on[16] >= 1
    assert "double" in {line.function for line in lines}


def events_of(step: Callable[[list[int]], None]) -> int:
    """How many events a tool of one's own hears of in a step: of every start and resume, or of every call."""
    heard = 0

    def hear(*_: object) -> None:
        nonlocal heard
        heard += 1

    if sys.version_info < (3, 12):
        sys.settrace(hear)
        step([])
        sys.settrace(None)
        return heard
    monitoring = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    monitoring.use_tool_id(5, "test")
    try:
        for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME):
            monitoring.register_callback(5, event, hear)
        monitoring.set_events(5, monitoring.events.PY_START | monitoring.events.PY_RESUME)
        step([])
    finally:
        monitoring.set_events(5, 0)
        monitoring.free_tool_id(5)
    return heard


def fewest_events_of(step: Callable[[list[int]], None]) -> int:
    """Of several runs: what Python does meanwhile besides (a finalizer, say) only adds to one of them."""
    return min(events_of(step) for _ in range(3))


@pytest.mark.parametrize("kind", ["generator", "key function", "callback", "loop"])
def test_another_tool_hears_of_as_much_after_a_recording_as_before(kind: str, tmp_path: Path) -> None:
    step = load(tmp_path, f"{PRELUDE}    {KINDS[kind]}\n    times.append(clock() - started)\n")
    before = fewest_events_of(step)
    with deepscope.profile(tmp_path / "traces", root=tmp_path, wait=0, warmup=1, active=1) as prof:
        prof.step()
        step([])
        prof.step()
    assert sys.gettrace() is None
    assert fewest_events_of(step) == before
