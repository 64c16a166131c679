"""One training run of a Hugging Face GPT-2 under one recorder: what `libraries.py` measures.

Writes `result.json` into `--folder`: the CPU time of each active step on the training thread, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import thread_time_ns
from typing import Any

import torch
from torch.profiler import profile, schedule

FIRST_STEPS = 3


def recorder(name: str, folder: Path, active: int) -> Any:
    """The recorder of this name: `FIRST_STEPS` steps pass, one warms up, `active` are recorded."""
    if name in ("torch", "torch-stacks"):
        steps = schedule(wait=FIRST_STEPS, warmup=1, active=active, repeat=1)
        return profile(schedule=steps, with_stack=name == "torch-stacks", on_trace_ready=lambda _: None)
    import deepscope

    # The one slowed down is shown as it is: no detail gives way.
    options: dict[str, Any] = {"libraries": name.partition("-")[2], "max_slowdown": float("inf")}
    return deepscope.profile(folder, wait=FIRST_STEPS, warmup=1, active=active, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("recorder", "folder"):
        parser.add_argument(f"--{name}", required=True)
    for name, value in (("layers", 4), ("width", 128), ("batch", 4), ("tokens", 64), ("active", 20), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(options.threads)
    size = {"n_layer": options.layers, "n_embd": options.width, "n_head": max(options.width // 64, 1)}
    model = GPT2LMHeadModel(GPT2Config(**size, vocab_size=1000, bos_token_id=0, eos_token_id=0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 1000, (options.batch, options.tokens))
    times = []
    with recorder(options.recorder, Path(options.folder), options.active) as recording:
        for _ in range(FIRST_STEPS + 1 + options.active):
            started = thread_time_ns()
            optimizer.zero_grad()
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
            times.append((thread_time_ns() - started) / 1e6)
            recording.step()
    Path(options.folder, "result.json").write_text(json.dumps(times[FIRST_STEPS + 1 :]))


if __name__ == "__main__":
    main()
