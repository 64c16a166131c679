"""Recordings of one small training loop, a set of topics each: CPU time of active steps, and the size of the trace."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from torch import nn

import deepscope


def recorded(topics: str, folder: Path, active: int) -> dict[str, object]:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(4, 32, 64)
    steps: list[float] = []
    recording = deepscope.profile(folder, wait=2, warmup=1, active=active, topics=topics, compress=False)
    with recording:
        for _ in range(3 + active):
            is_recording = recording.is_recording
            began = time.thread_time()
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if is_recording:
                steps.append(1000 * (time.thread_time() - began))
            recording.step()
    return {"steps_ms": steps[2:], "size_bytes": recording.traces[-1].stat().st_size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", nargs="+", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--active", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for topics in options.topics:
        found[topics] = recorded(topics, options.folder / topics, options.active)
        Path(options.folder, "result.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
