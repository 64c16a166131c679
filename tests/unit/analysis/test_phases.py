"""The phases of a step partition the training thread's time."""

from __future__ import annotations

import pytest

from deepscope.analysis.numbers.phases import phase_of_name
from deepscope.records import PHASES
from trace_builder import BACKWARD, TraceBuilder


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data"),
        ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", "data"),
        ("[pl][profile][_EvaluationLoop].val_next", "data"),
        ("[pl][profile][Strategy]SingleDeviceStrategy.batch_to_device", "data"),
        ("[pl][profile][Strategy]DDPStrategy.training_step", "forward"),
        ("[pl][profile][Strategy]DDPStrategy.validation_step", "forward"),
        ("[pl][profile][Strategy]SingleDeviceStrategy.backward", "backward"),
        ("[pl][profile][LightningModule]Net.optimizer_step", "optimizer"),
        ("[pl][profile][LightningModule]Net.optimizer_zero_grad", "optimizer"),
        ("DistributedDataParallel.forward", "forward"),
        ("Optimizer.step#SGD.step", "optimizer"),
        ("Optimizer.zero_grad#SGD.zero_grad", "optimizer"),
        ("[pl][profile]run_training_batch", None),
        ("[pl][profile][Callback]TQDMProgressBar.on_train_batch_end", None),
        ("ProfilerStep#3", None),
    ],
)
def test_what_an_annotation_marks(name, phase):
    found = phase_of_name(name)
    assert (None if found is None else PHASES[found]) == phase


def test_phases_sum_to_the_step_and_the_innermost_span_decides(profile_of):
    builder = TraceBuilder().step(0, 0, 10_000)
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 900)
    builder.annotation("[pl][profile][LightningModule]Net.optimizer_step", 1500, 8000)
    builder.annotation("[pl][profile][Strategy]S.training_step", 1600, 3000)
    builder.annotation("[pl][profile][Strategy]S.backward", 5000, 2500)
    builder.op("aten::mm", 1700, 100).kernel("k", 1750, 20_000, 30).kernel("adam", 9000, 21_000, 7)
    profile = profile_of(builder)
    (step,) = profile.steps
    assert step.phases == {"data": 900, "forward": 3000, "backward": 2500, "optimizer": 2500, "other": 1100}
    assert {p.name: p.device_ns for p in profile.phases if p.device_ns} == {"forward": 30, "optimizer": 7}
    assert {p.name: p.wall_ns for p in profile.phases} == step.phases


def test_backward_is_seen_on_the_training_thread_though_autograd_runs_it_elsewhere(profile_of):
    builder = TraceBuilder().step(0, 0, 10_000).op("aten::mm", 1000, 100, sequence=1).flow(1000, 3000)
    builder.backward("MmBackward0", 3000, 500, 1).backward("AddBackward0", 3600, 400, 0)
    builder.annotation("Optimizer.step#SGD.step", 5000, 1000).kernel("k", 3100, 9000, 50, tid=BACKWARD)
    profile = profile_of(builder)
    assert profile.steps[0].phases == {"forward": 2000, "backward": 1000, "optimizer": 1000, "other": 6000}
    assert {p.name: p.device_ns for p in profile.phases if p.device_ns} == {"backward": 50}


def test_outermost_module_calls_are_the_forward_pass(profile_of):
    builder = TraceBuilder().step(0, 0, 1000).module("Net", "", 100, 500).module("Linear", "fc", 200, 100)
    assert profile_of(builder.kernel("k", 210, 2000, 5)).steps[0].phases == {"forward": 500, "other": 500}


def test_a_recorders_own_names_of_phases_count(profile_of):
    own = {"phases": {"deepscope.data": "data"}}
    builder = TraceBuilder(deepscope=own).step(0, 0, 1000).annotation("deepscope.data", 100, 300)
    assert profile_of(builder.op("aten::mm", 500, 10)).steps[0].phases == {"data": 300, "other": 700}
