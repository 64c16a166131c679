"""Trains `fused.py` compiled by inductor, and tells what inductor knows of its graphs.

`fused_run.py FOLDER OPTIONS` records it, with options in JSON; without arguments it is not recorded. On the CPU
inductor's kernels leave events only with `enable_kernel_profile`.
"""

import gc
import json
import re
import sys
from contextlib import nullcontext

import deepscope

recording = (
    deepscope.profile(sys.argv[1], wait=0, warmup=0, active=2, **json.loads(sys.argv[2])) if sys.argv[2:] else None
)

import torch
import torch._inductor.config as inductor
from fused import Net, broken, step
from torch._inductor.output_code import CompiledFxGraph

inductor.cpp.enable_kernel_profile = True
inductor.cpp.simdlen = 1
inductor.cpp_cache_precompile_headers = False


def trained():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    compiled, function = torch.compile(net), torch.compile(broken)
    x = torch.randn(4, 8)
    losses = [step(compiled, function, x)]
    with recording or nullcontext():
        for _ in range(2):
            losses.append(step(compiled, function, x))
            if recording is not None:
                recording.step()
    return losses


def told():
    """The graphs that exist, as they say themselves."""
    graphs = [one for one in gc.get_referrers(CompiledFxGraph) if type(one) is CompiledFxGraph]
    return {
        one._fx_graph_cache_key: {
            "stacks": json.loads(one.inductor_provenance_stack_traces_str or "null"),
            "calls": re.findall(r"# \[Provenance debug handles\] (\S+)", one.source_code),
            "code": [line for line in one.source_code.splitlines() if not line.lstrip().startswith("#")],
        }
        for one in graphs
    }


if __name__ == "__main__":
    losses = trained()
    left = {"level": inductor.trace.provenance_tracking_level, "call": CompiledFxGraph.__call__.__module__}
    print(json.dumps({"losses": losses, "graphs": told(), "left": left}))
