"""Private names of torch: recording goes on where a torch does not have one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import deepscope
from deepscope.capture import torch_compat
from deepscope.capture.surroundings.users_profiler import GiveWay
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
    assert not [event for event in load(path)["traceEvents"] if event["name"].startswith("@d")]


def test_without_the_store_of_the_process_group_a_rank_keeps_its_own_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.delattr(torch.distributed.distributed_c10d, "_get_default_store")
    assert torch_compat.agreed_value("key", "mine") == "mine"


def test_the_first_word_in_the_store_is_every_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    store = torch.distributed.HashStore()
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed.distributed_c10d, "_get_default_store", lambda: store)
    assert [torch_compat.agreed_value("key", word) for word in ("first", "second")] == ["first", "first"]
