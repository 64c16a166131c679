"""Compiles a transformer and its backward pass in one process, and writes how long that took.

With `--way lines` a recording of DeepScope's is constructed before, so that inductor keeps the lines of its kernels.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn


def compiled(layers: int) -> dict[str, Any]:
    import torch._inductor.config as inductor

    inductor.compile_threads = 1
    torch.manual_seed(0)
    torch.set_num_threads(1)
    parts = [nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, dropout=0.0) for _ in range(layers)]
    model = torch.compile(nn.Sequential(*parts))
    x = torch.randn(2, 8, 32)
    wall, cpu = time.perf_counter(), time.process_time()
    loss = model(x).square().mean()
    loss.backward()
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "level": inductor.trace.provenance_tracking_level,
        "loss": loss.item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=("plain", "lines"), required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    recording = None
    if options.way == "lines":
        import deepscope

        recording = deepscope.profile(options.folder / "runs")
    result = compiled(options.layers) | {"recorded": recording is not None}
    Path(options.folder, "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
