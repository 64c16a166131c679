"""Kernels of torch.compile stand at the lines that an independent compilation says they were fused from.

On the CPU, where inductor's C++ kernels leave events if asked to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.kinds import Kind
from deepscope.trace.read import read_trace
from line_truth import TARGETS

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(torch.__version__ < (2, 9), reason=f"torch {torch.__version__} has no provenance"),
    pytest.mark.skipif(not torch._dynamo.is_dynamo_supported(), reason="this torch cannot compile on this Python"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed (Debian: apt-get install g++)"),
]

TARGET = TARGETS / "fused.py"
LINES = {text.strip(): number for number, text in enumerate(TARGET.read_text().splitlines(), 1)}


@dataclass(frozen=True)
class Run:
    """One process that trained the target."""

    losses: list[float]
    graphs: dict[str, Any]
    left: dict[str, Any]
    traces: list[Path]

    def lines(self, key: str) -> list[tuple[str, set[int]]]:
        """The kernels that a graph calls, in order, with the innermost line of each stack."""
        graph = self.graphs[key]
        return [
            (call.rpartition(":")[0], {int(re.findall(r"line (\d+)", text)[-1]) for text in graph["stacks"][call]})
            for call in graph["calls"]
        ]


def run(cache: Path, folder: Path | None = None, *, level: str = "", **options: Any) -> Run:
    """Trains in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "INDUCTOR_PROVENANCE"}
    environment |= {"TORCHINDUCTOR_CACHE_DIR": str(cache)} | ({"INDUCTOR_PROVENANCE": level} if level else {})
    arguments = [] if folder is None else [str(folder), json.dumps(options)]
    command = [sys.executable, str(TARGETS / "fused_run.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return Run(**found, traces=[] if folder is None else sorted(folder.glob("*.json.gz")))


@dataclass(frozen=True)
class Runs:
    """The same training, recorded and not."""

    cold: Run
    warm: Run
    independent: Run
    """Compiled by itself, without DeepScope."""
    without: Run
    """Recorded with `compiled_lines=False`."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("compiled")
    cache, other = folder / "cache", folder / "other"
    cold = run(cache, folder / "cold")
    # C++ that was built is kept, for it takes longest; graphs are compiled anew.
    shutil.copytree(cache, other, ignore=shutil.ignore_patterns("fxgraph", "aotautograd"))
    return Runs(
        cold=cold,
        warm=run(cache, folder / "warm"),
        independent=run(other, level="2"),
        without=run(other, folder / "without", compiled_lines=False),
    )


def recorded(run: Run) -> list[tuple[str, list[tuple[str, set[int]]]]]:
    """Each call of a graph in a run's trace: its key, and its kernels' events in order with the lines they stand at."""
    trace = read_trace(run.traces[0])
    found = attribute(trace)
    work, parent, events = found.work, found.calls.parent, trace.events
    calls = {}
    for event in np.flatnonzero(events.kind == Kind.OPERATOR).tolist():
        match = re.fullmatch(r"## Call CompiledFxGraph (\w+) ##", trace.strings[events.name[event]])
        if match is not None:
            calls[event] = (match[1], [])
    order = np.argsort(events.start_ns, kind="stable")
    for event in order.tolist():
        if (parent[event]) in calls:
            lines = {found.scopes.locations[one] for one in work.location[work.event == event].tolist()}
            calls[int(parent[event])][1].append(
                (trace.strings[events.name[event]], {one.line for one in lines if one.file == str(TARGET)})
            )
    return [calls[event] for event in sorted(calls, key=lambda event: events.start_ns[event])]


def is_kernel(event: str) -> bool:
    return event.startswith(("graph_", "aten::addmm", "aten::mm"))


def same_kernel(event: str, kernel: str) -> bool:
    return (
        event == kernel.replace("extern_kernels.", "aten::") or re.fullmatch(rf"graph_\d+_{kernel}", event) is not None
    )


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_each_kernel_stands_at_the_lines_that_it_was_fused_from(cache: str, runs: Runs) -> None:
    calls = recorded(getattr(runs, cache))
    assert {key for key, _ in calls} == set(runs.independent.graphs)
    assert len(calls) == 2 * len(runs.independent.graphs) >= 10
    for key, events in calls:
        kernels = [event for event in events if is_kernel(event[0])]
        truth = runs.independent.lines(key)
        assert [same_kernel(event, name) for (event, _), (name, _) in zip(kernels, truth, strict=True)] == [True] * len(
            truth
        )
        assert [lines for _, lines in kernels] == [lines for _, lines in truth]


def test_lines_that_only_compiled_code_touched_have_time_forward_and_backward(runs: Runs) -> None:
    profile = build_profile(read_trace(runs.cold.traces[0]))
    lines = {one.line: one for one in profile.lines if one.file == str(TARGET)}
    for text in ("x = self.first(x)", "x = x.tanh()", "return x.sin() * 3", "y = x.exp()", "z = y.sqrt()"):
        line = lines[LINES[text]]
        assert 0 < line.backward_device_ns < line.self_device_ns, text
        assert line.text is not None, text
        assert line.text.strip() == text
    assert lines[LINES["x = x.tanh()"]].function == "Net.forward"
    assert lines[LINES["z = y.sqrt()"]].function == "broken"
    helper, caller = lines[LINES["return x.sin() * 3"]], lines[LINES["x = scaled(x) + scaled(x * 2)"]]
    assert caller.total_device_ns >= caller.self_device_ns + helper.self_device_ns
    fused = lines[LINES["z = y.sqrt()"]]
    assert LINES["return z * 2"] in {one.line for one in fused.shared_with}
    assert fused.shared_ns == fused.self_device_ns
    assert fused.fused
    assert not fused.exact
    whole = sum(one.self_device_ns for one in profile.lines) + profile.no_line.self_device_ns
    assert whole == profile.totals.device_ns
    assert profile.totals.compiled_at_call_ns == 0


def test_generated_code_and_losses_are_the_same_without_it(runs: Runs) -> None:
    assert runs.cold.losses == runs.warm.losses == runs.independent.losses == runs.without.losses
    codes = [sorted(graph["code"] for graph in one.graphs.values()) for one in (runs.cold, runs.without)]
    assert codes[0] == codes[1]
    assert all(graph["stacks"] is None for graph in runs.without.graphs.values())


def test_nothing_stays_behind(runs: Runs) -> None:
    for one in (runs.cold, runs.warm, runs.without):
        assert one.left == {"level": 0, "call": "torch._inductor.output_code"}


def test_without_it_kernels_stand_at_the_line_of_the_call(runs: Runs) -> None:
    profile = build_profile(read_trace(runs.without.traces[0]))
    calls = [one for one in profile.lines if one.in_compiled_region]
    assert {one.line for one in calls} <= {LINES["y = net(x)"], LINES["z = function(y)"]}
    assert 0 < profile.totals.compiled_at_call_ns <= sum(one.self_device_ns for one in calls)
    assert not any(one.shared_ns for one in profile.lines)
