"""One recording of one set of topics: CPU time of the active steps, and the size of the trace."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from torch import nn

import deepscope


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--active", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(4, 32, 64)
    steps: list[float] = []
    recording = deepscope.profile(
        options.folder, wait=3, warmup=2, active=options.active, topics=options.topics, compress=False
    )
    with recording:
        for _ in range(5 + options.active):
            began = time.thread_time()
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if recording.is_recording:
                steps.append(1000 * (time.thread_time() - began))
            recording.step()
    found = {"steps_ms": steps[1:], "size_bytes": recording.traces[-1].stat().st_size}
    Path(options.folder, "result.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
