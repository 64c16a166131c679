"""Steps whose Python is dense in lines, and what recording does to them: one kind, one way of recording, one process.

Writes `result.json` into `--folder`: the CPU time of each step, how long the window took to end, memory and file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import torch

import deepscope

_TENSOR = "    x = torch.relu(x @ w)"


def _entries() -> str:
    """A million line entries a step: 25 functions of 40 lines, a thousand calls each."""
    body = "".join(f"    a = a + {number % 7}\n" for number in range(38))
    functions = "".join(f"def f{number}(a):\n{body}    return a\n\n\n" for number in range(25))
    calls = "".join(f"        a = f{number}(a)\n" for number in range(25))
    return f"{functions}def step(x, w):\n    a = 0\n    for turn in range(1000):\n{calls}{_TENSOR}\n    return x\n"


def _loop() -> str:
    """A tight loop between operators."""
    loop = "    for i in range(300_000):\n        a += i\n"
    return f"def step(x, w):\n    a = 0\n{_TENSOR}\n{loop}{_TENSOR}\n    return x\n"


def _long() -> str:
    """A function of 2,000 lines, an operator in every fortieth."""
    lines = [_TENSOR if number % 40 == 20 else f"    a = a + {number % 7}" for number in range(2000)]
    return "def step(x, w):\n    a = 0\n" + "\n".join(lines) + "\n    return x\n"


def _recursion() -> str:
    """Calls upon calls."""
    fib = "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n\n\n"
    return f"{fib}def step(x, w):\n    a = fib(22)\n{_TENSOR}\n    return x\n"


def _functions() -> str:
    """Two thousand small functions, fifty calls each."""
    functions = "".join(f"def f{number}(a):\n    b = a + 1\n    return b\n\n\n" for number in range(2000))
    table = "TABLE = [" + ", ".join(f"f{number}" for number in range(2000)) + "]\n\n\n"
    loop = "    for turn in range(50):\n        for f in TABLE:\n            a = f(a)\n"
    return f"{functions}{table}def step(x, w):\n    a = 0\n{loop}{_TENSOR}\n    return x\n"


def _generators() -> str:
    """A generator that yields two hundred thousand times."""
    numbers = "def numbers(n):\n    for i in range(n):\n        yield i\n\n\n"
    loop = "    for i in numbers(200_000):\n        a += i\n"
    return f"{numbers}def step(x, w):\n    a = 0\n{loop}{_TENSOR}\n    return x\n"


def _words() -> str:
    """Preparing text in Python, as a tokenizer does, between layers."""
    prepare = """def prepare(texts):
    counts = {}
    ids = []
    for text in texts:
        for word in text.split():
            word = word.lower()
            if word not in counts:
                counts[word] = len(counts)
            ids.append(counts[word])
    return torch.tensor(ids[:512])


"""
    texts = "TEXTS = [' '.join(f'W{(i * j) % 97}' for j in range(60)) for i in range(60)]\n\n\n"
    layers = "    for turn in range(20):\n    " + _TENSOR + "\n"
    return f"{prepare}{texts}def step(x, w):\n    ids = prepare(TEXTS)\n{layers}    x = x + ids[0]\n    return x\n"


def _operators() -> str:
    """Small operators, one a line: each entry has one."""
    body = "".join(f"        y = y + {number}\n        y = y * 0.5\n" for number in range(8))
    return f"def step(x, w):\n    y = x[0]\n    for turn in range(300):\n{body}    return torch.relu(x @ w) + y\n"


def _layers() -> str:
    """Arithmetic on matrices: a few lines a step."""
    return f"def step(x, w):\n    for turn in range(60):\n    {_TENSOR}\n    return x\n"


KINDS: dict[str, Callable[[], str]] = {
    "entries": _entries,
    "loop": _loop,
    "long": _long,
    "recursion": _recursion,
    "functions": _functions,
    "generators": _generators,
    "words": _words,
    "operators": _operators,
    "layers": _layers,
}


def load(kind: str, folder: Path) -> Callable[[Any, Any], Any]:
    """The step of that kind, from a file of its own: a user's."""
    path = folder / f"{kind}.py"
    path.write_text(f'"""{KINDS[kind].__doc__}"""\n\nimport torch\n\n\n{KINDS[kind]()}')
    spec = importlib.util.spec_from_file_location(kind, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[Any, Any], Any] = module.step
    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=list(KINDS), required=True)
    parser.add_argument("--way", choices=["torch", "lines", "unbounded"], required=True)
    parser.add_argument("--active", type=int, default=3, help="recorded steps (default 3)")
    parser.add_argument("--option", action="append", default=[], help="of the recording: NAME=NUMBER")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    step = load(options.kind, options.folder)
    given: dict[str, Any] = {name: float(value) for name, _, value in (one.partition("=") for one in options.option)}
    if options.way == "torch":
        given |= {"lines": False, "modules": False}

    torch.manual_seed(0)
    x, w = torch.randn(256, 256), torch.randn(256, 256)
    outside, inside = [], []
    for _ in range(4):
        started = process_time_ns()
        step(x, w)
        outside.append(process_time_ns() - started)
    before_bytes = _peak_bytes()
    recording = deepscope.profile(
        options.folder / "traces", root=options.folder, wait=0, warmup=1, active=options.active, **given
    )
    recording.start()
    recording.step()
    end_ns = 0
    for _ in range(options.active):
        started = process_time_ns()
        step(x, w)
        stopped = process_time_ns()
        inside.append(stopped - started)
        at = perf_counter_ns()
        recording.step()
        end_ns = perf_counter_ns() - at
    peak_bytes = _peak_bytes() - before_bytes
    recording.stop()
    (trace,) = recording.traces
    totals = deepscope.load_profile(trace).totals
    account = deepscope.load_profile(trace).trace.recording
    result = {
        "outside_cpu_ms": [spent / 1e6 for spent in outside],
        "inside_cpu_ms": [spent / 1e6 for spent in inside],
        "end_ms": end_ns / 1e6,
        "added_mb": peak_bytes / 1e6,
        "trace_mb": trace.stat().st_size / 1e6,
        "stated_ms": totals.recording_ns / 1e6,
        "account": account,
    }
    (options.folder / "result.json").write_text(json.dumps(result))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
