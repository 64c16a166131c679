"""Private names of torch: recording goes on where a torch does not have one."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import deepscope
from deepscope.capture import torch_compat
from deepscope.capture.lines import UserCode
from deepscope.capture.process_hooks.open_recorders import GiveWay
from deepscope.capture.process_identity import describe_device
from deepscope.capture.workers import WorkerClocks
from deepscope.trace.format.span_names import OFF_CPU_CATEGORY, RECORDING_CATEGORY
from recorded import TESTS, hide_what_is_alive, load, scopes_of, step_names


def record(folder: Path) -> Path:
    with deepscope.profile(folder, root=TESTS, wait=0, warmup=0, active=1) as recording:
        torch.ones(3).sum()
        recording.step()
    (path,) = recording.traces
    assert step_names(path) == ["ProfilerStep#0"]
    return path


def test_without_the_question_whether_a_profiler_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.autograd, "_profiler_enabled")
    assert torch_compat.thread_is_taken() is False
    assert scopes_of(record(tmp_path))


def test_without_the_flag_of_a_running_profiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.autograd.profiler, "_is_profiler_enabled")
    assert torch_compat.is_recording() is True
    assert scopes_of(record(tmp_path))


def test_without_the_function_that_a_profiler_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.autograd.profiler, "_prepare_profiler")
    precedence = GiveWay(lambda: None)
    precedence.watch()
    precedence.rest()
    assert not hasattr(torch.autograd.profiler, "_prepare_profiler")


def test_without_the_way_to_take_callbacks_out_of_a_forked_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C._autograd, "_clear_callbacks")
    with deepscope.profile(tmp_path, root=TESTS):
        child = os.fork()
        if not child:
            torch.ones(3).sum()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_without_an_experimental_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C._profiler, "_ExperimentalConfig")
    assert torch_compat.experimental_config(all_threads=True, with_stack=False) is None
    assert scopes_of(record(tmp_path))


OLDER = [
    (torch.autograd, "_engine_run_backward"),
    (torch.utils.data.dataloader, "_BaseDataLoaderIter"),
]


@pytest.mark.parametrize(("module", "name"), OLDER, ids=[name for _, name in OLDER])
def test_without_a_name_that_tells_who_holds_memory_the_rest_is_told(
    module: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, name, raising=False)
    hide_what_is_alive(monkeypatch)
    net = torch.nn.Linear(4, 4)
    with deepscope.profile(tmp_path, root=TESTS, profile_memory=True) as recording:
        net(torch.ones(2, 4))
    assert recording.profile is not None
    assert recording.profile.memory.devices[0].peak.parameters_bytes == 4 * (16 + 4)


def test_without_a_view_of_what_autograd_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C._autograd, "SavedTensor", raising=False)
    assert not torch_compat.shows_saved_values()


@pytest.mark.parametrize(
    "known", [(), ("trace_only",), ("profile_all_threads",), ("trace_only", "enable_cuda_sync_events")]
)
def test_with_an_older_experimental_configuration(monkeypatch: pytest.MonkeyPatch, known: tuple[str, ...]) -> None:
    def make(**options: Any) -> dict[str, Any]:
        if options.keys() - set(known):
            raise TypeError(f"unknown: {options}")
        return options

    monkeypatch.setattr(torch._C._profiler, "_ExperimentalConfig", make)
    config = torch_compat.experimental_config(all_threads=True, with_stack=False, sync_events=True)
    assert config == (dict.fromkeys(known, True) if known else None)


def test_without_fast_scopes_lines_are_annotations_first_and_lines_in_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C._profiler, "_RecordFunctionFast")
    path = record(tmp_path)
    assert scopes_of(path)
    raw = [event for event in load(path)["traceEvents"] if event["name"].startswith("@d")]
    assert [event for event in raw if event["cat"] not in {OFF_CPU_CATEGORY, RECORDING_CATEGORY}] == []


def test_without_the_store_of_the_process_group_ranks_cannot_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.delattr(torch.distributed.distributed_c10d, "_get_default_store")
    assert torch_compat.agreed_value("key", "mine") is None


def test_the_first_word_in_the_store_is_every_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    store = torch.distributed.HashStore()
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed.distributed_c10d, "_get_default_store", lambda: store)
    assert [torch_compat.agreed_value("key", word) for word in ("first", "second")] == ["first", "first"]


def test_a_device_is_not_woken_by_asking_which_are_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    # It starts the driver: forked children could not use CUDA any more.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(asked.append("driver")))
    assert torch_compat.devices_in_use() == ("", ())
    describe_device()
    assert asked == []


GPUS = ["GPU-aa00", "GPU-bb11", "GPU-cc22"]
"""As NVML numbers them, by bus."""


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Three devices, the first and the last in use; CUDA has the fastest one first, which is NVML's second."""
    found = SimpleNamespace(uuids=["bb11", "aa00", "cc22"], torchs_own=lambda device: device)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 1 << 20 if device != 1 else 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid=found.uuids[device]))
    monkeypatch.setattr(torch.cuda, "_raw_device_uuid_nvml", lambda: GPUS)
    monkeypatch.setattr(torch.cuda, "_get_nvml_device_index", lambda device: found.torchs_own(device))
    for number in (torch_compat._nvml_number, torch_compat._amdsmi_number):
        number.cache_clear()
    yield found
    for number in (torch_compat._nvml_number, torch_compat._amdsmi_number):
        number.cache_clear()


def test_devices_are_known_by_their_uuids_whatever_order_cuda_has(cuda: SimpleNamespace) -> None:
    assert torch_compat.devices_in_use() == ("nvidia", ((0, 1), (2, 2)))


def test_without_uuids_devices_are_known_as_torch_knows_them(
    cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace())
    cuda.torchs_own = [6, 4, 2].__getitem__
    assert torch_compat.devices_in_use() == ("nvidia", ((0, 6), (2, 2)))


def test_a_part_of_a_gpu_is_no_gpu(cuda: SimpleNamespace) -> None:
    def unknown(device: int) -> int:
        raise RuntimeError(f"device {device} is not visible (CUDA_VISIBLE_DEVICES=[])")

    cuda.uuids, cuda.torchs_own = ["MIG-dd33", "", "cc22"], unknown
    assert torch_compat.devices_in_use() == ("nvidia", ((0, -1), (2, 2)))


class NotAtWork(Exception):
    """As amdsmi says it: no error of Python's."""


def test_amdsmi_is_at_work_when_it_is_asked(cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def number(device: int) -> int:
        if not begun:
            raise NotAtWork
        return 7 - device

    monkeypatch.setattr(torch.version, "hip", "7.0")
    monkeypatch.setattr(torch.cuda, "_get_amdsmi_device_index", number)
    monkeypatch.setitem(sys.modules, "amdsmi", SimpleNamespace(amdsmi_init=lambda: begun.append("init")))
    assert torch_compat.devices_in_use() == ("amd", ((0, 7), (2, 5)))
    torch_compat._amdsmi_number.cache_clear()
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    begun.clear()
    assert torch_compat.devices_in_use() == ("amd", ((0, -1), (2, -1)))


def test_what_somebody_else_puts_over_the_watch_of_loaders_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
    monkeypatch.setattr(kind, "__init__", kind.__init__)  # as it is now, behind the test
    clocks = WorkerClocks(UserCode.find())
    clocks.arm()
    ours = kind.__init__

    @functools.wraps(ours)
    def theirs(*args: object) -> None:
        ours(*args)

    kind.__init__ = theirs  # type: ignore[method-assign]
    clocks.disarm()
    assert kind.__init__ is theirs
