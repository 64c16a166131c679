"""On a CUDA device: Triton kernels stand at the lines that inductor says it made them from, forward and backward."""

from __future__ import annotations

import gc
import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import deepscope
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.kinds import Kind
from deepscope.trace.read import read_trace

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.__version__ < (2, 9), reason=f"torch {torch.__version__} has no provenance"),
]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(256, 256)
        self.second = nn.Linear(256, 256)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = x.tanh()
        x = x.sin() * 3
        x = self.second(x)
        return x.sigmoid()


def told() -> dict[str, set[int]]:
    """Kernel → the lines of all its calls, as inductor's graphs say."""
    from torch._inductor.output_code import CompiledFxGraph

    found: dict[str, set[int]] = {}
    for graph in gc.get_referrers(CompiledFxGraph):
        if type(graph) is CompiledFxGraph and graph.inductor_provenance_stack_traces_str:
            for call, stacks in json.loads(graph.inductor_provenance_stack_traces_str).items():
                lines = {
                    int(line) for text in stacks for line in re.findall(r'test_compiled.py", line (\d+)', text)[-1:]
                }
                found.setdefault(call.rpartition(":")[0], set()).update(lines)
    return found


def test_triton_kernels_stand_at_the_lines_that_they_were_made_from(tmp_path: Path) -> None:
    if find_spec("triton") is None:
        pytest.skip("no Triton")
    torch._dynamo.reset()
    recording = deepscope.profile(tmp_path)
    net = Net().cuda()
    compiled = torch.compile(net)
    x = torch.randn(512, 256, device="cuda")
    compiled(x).sum().backward()
    with recording:
        for _ in range(2):
            compiled(x).sum().backward()
        torch.cuda.synchronize()
    truth = told()
    trace = read_trace(recording.traces[0])
    found = attribute(trace)
    work, events = found.work, trace.events
    kernels = {}
    for event in np.flatnonzero(events.kind == Kind.KERNEL).tolist():
        rows = work.event == event
        assert int(work.duration_ns[rows].sum()) == int(events.duration_ns[event])
        lines = {found.scopes.locations[one].line for one in work.location[rows].tolist() if one >= 0}
        kernels.setdefault(trace.strings[events.name[event]], set()).update(lines)
    triton = {name: lines for name, lines in kernels.items() if name in truth}
    assert len(triton) >= 2, sorted(kernels)
    assert triton == {name: truth[name] for name in triton}
    assert recording.profile is not None
    assert recording.profile.totals.compiled_at_call_ns == 0
    assert sum(one.calls for one in recording.profile.kernels) == len(set(work.piece.tolist()))
    torch._dynamo.reset()
