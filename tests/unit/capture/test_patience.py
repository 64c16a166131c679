"""How long a rank waits for its own trace while others may wait for it."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch.distributed as dist

from deepscope.capture import torch_compat
from deepscope.capture.saving.saver import LONGEST_S, patience_s


@pytest.fixture
def group(tmp_path: Path):
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1, timeout=timedelta(seconds=20))
    yield
    dist.destroy_process_group()


def test_alone_it_waits_for_as_long_as_it_takes():
    assert patience_s(1) is None


def test_without_a_group_it_waits_for_a_while():
    assert torch_compat.shortest_timeout_s() is None
    assert patience_s(4) == LONGEST_S


@pytest.mark.usefixtures("group")
def test_it_waits_for_a_tenth_of_the_shortest_time_out_of_any_group():
    assert torch_compat.shortest_timeout_s() == 20
    assert patience_s(4) == 2
    dist.new_group([0], timeout=timedelta(seconds=5))
    assert patience_s(4) == 0.5


def test_a_torch_that_tells_no_time_out_leaves_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist.distributed_c10d, "_world", SimpleNamespace())
    assert patience_s(4) == LONGEST_S
