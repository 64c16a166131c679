"""A second process that sums over both: what the programs about communication run beside."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch import multiprocessing

Step = Callable[[], None]
_FOLDER = tempfile.TemporaryDirectory(prefix="deepscope-partner-", ignore_cleanup_errors=True)


def with_partner(make: Callable[[bool], Step], mended: bool) -> Step:
    """The step that `make` makes in this process, rank 0 of gloo, while a partner runs the same as long as this one."""
    store = str(Path(_FOLDER.name, "store"))
    multiprocessing.get_context("spawn").Process(target=_follow, args=(make, mended, store), daemon=True).start()
    _join(0, store)
    return make(mended)


def _join(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)


def _follow(make: Callable[[bool], Step], mended: bool, store: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    _join(1, store)
    step = make(mended)
    with suppress(RuntimeError):  # the other one has ended
        while True:
            step()
