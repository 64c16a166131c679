"""Other trainers: each test stands in a folder of its own, and leaves nothing of a recording in the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_left_installed() -> Iterator[None]:
    before = (sys.gettrace(), DataLoader.__iter__, torch.save)
    yield
    assert (sys.gettrace(), DataLoader.__iter__, torch.save) == before
    if sys.version_info >= (3, 12):
        assert not [number for number in (3, 4) if sys.monitoring.get_tool(number)]
    assert not torch.autograd._profiler_enabled()
    assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks  # type: ignore[attr-defined]
