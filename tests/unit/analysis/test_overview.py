"""The overview: the split of the steps' time, the use of devices, and why they idle."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.records import OverviewRow, Profile
from deepscope.records.ranks import merge_profiles
from trace_builder import TraceBuilder

US = 1000


def rows(profile: Profile, section: str) -> dict[str, OverviewRow]:
    return {row.name: row for row in profile.overview if row.section == section}


def times(profile: Profile, section: str) -> dict[str, int]:
    return {name: row.time_ns // US for name, row in rows(profile, section).items()}


@pytest.fixture
def step() -> TraceBuilder:
    """One step of 100 µs in which each part has its time, each device part before those of the CPU."""
    builder = TraceBuilder().step(3, 0, 100 * US)
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 10 * US)
    builder.op("aten::mm", 10 * US, 40 * US)
    builder.kernel("gemm", 20 * US, 25 * US, 10 * US, launch_duration=8 * US)
    builder.memcpy("HtoD", 64, 36 * US, 38 * US, 4 * US, launch_duration=US)
    builder.kernel("fill", 44 * US, 44 * US, 2 * US, category="gpu_memset")
    builder.kernel("ncclDevKernel_AllReduce_Sum_f32", 60 * US, 61 * US, 9 * US, launch_duration=3 * US)
    return builder


def test_each_instant_of_a_step_belongs_to_the_first_part_that_holds(profile_of: Any, step: TraceBuilder) -> None:
    profile = profile_of(step)
    # The launch at 20 to 28 is the runtime's until its kernel starts at 25; that at 60 to 63 until 61.
    assert times(profile, "step") == {
        "kernel": 10, "memcpy": 4, "memset": 2, "communication": 9, "runtime": 7, "data loader": 10,
        "CPU": 18, "other": 40,
    }  # fmt: skip
    assert {row.whole_ns for row in rows(profile, "step").values()} == {100 * US}


def test_a_step_reaches_to_the_end_of_its_work_and_the_next_begins_there(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 50 * US).step(2, 50 * US, 50 * US)
    for at in (10, 60):
        builder.op("aten::mm", at * US, 20 * US)
        builder.kernel("gemm", (at + 5) * US, (at + 30) * US, 30 * US)
    found = rows(profile_of(builder), "step")
    # From 0 to 70, and from there to 120: 60 µs of kernels in 120.
    assert {(row.whole_ns, row.steps) for row in found.values()} == {(120 * US, 2)}
    assert found["kernel"].time_ns == 60 * US


def test_a_last_step_whose_work_was_cut_off_is_left_out(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 50 * US).step(2, 50 * US, 50 * US).step(3, 100 * US, 50 * US)
    for at in (2, 6, 10, 52, 56, 60, 110):
        builder.kernel("gemm", at * US, (at + 1) * US, US)
    assert {row.steps for row in rows(profile_of(builder), "step").values()} == {2}


def test_one_chosen_step_is_split_alone(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 50 * US).step(2, 50 * US, 50 * US)
    builder.kernel("a", 5 * US, 10 * US, 10 * US).kernel("b", 55 * US, 60 * US, 30 * US)
    profile = profile_of(builder, step=2)
    assert (times(profile, "step")["kernel"], rows(profile, "step")["kernel"].whole_ns) == (30, 50 * US)
    assert times(profile, "span") == {"compute": 30, "non-compute": 0, "idle": 0}


def test_devices_are_used_as_far_as_their_kernels_say(profile_of: Any) -> None:
    builder = TraceBuilder().step(1, 0, 100 * US)
    fitting = {"blocks per SM": 0.5, "est. achieved occupancy %": 20}
    builder.kernel("volta_h884gemm", 0, 10 * US, 20 * US, **fitting)
    builder.kernel(
        "plain", 5 * US, 20 * US, 20 * US, stream=8, **{"blocks per SM": 3.0, "est. achieved occupancy %": 80}
    )
    found = rows(profile_of(builder), "device")
    assert {name: (row.device, row.time_ns // US, row.whole_ns // US) for name, row in found.items()} == {
        "utilisation": ("device:0", 30, 100),
        "SM efficiency": ("device:0", 25, 100),  # 10 µs of a half, 20 µs of all
        "occupancy": ("device:0", 20, 40),
        "tensor cores": ("device:0", 20, 40),
    }


@pytest.mark.parametrize("junk", [-3, "many", None, float("1e300"), [1]])
def test_junk_in_place_of_blocks_says_nothing(profile_of: Any, junk: Any) -> None:
    builder = TraceBuilder().step(1, 0, 100 * US).kernel("a", 0, 10 * US, 20 * US, **{"blocks per SM": junk})
    assert set(rows(profile_of(builder), "device")) == {"utilisation", "tensor cores"}


def test_time_without_work_is_idle_and_copies_are_no_computation(profile_of: Any) -> None:
    builder = TraceBuilder().kernel("a", 0, 10 * US, 20 * US).memcpy("DtoH", 8, 5 * US, 25 * US, 15 * US, stream=9)
    builder.kernel("ncclDevKernel_AllReduce", 6 * US, 60 * US, 20 * US, stream=20)
    builder.kernel("b", 7 * US, 70 * US, 20 * US)
    profile = profile_of(builder)
    assert times(profile, "span") == {"compute": 40, "non-compute": 20, "idle": 20}
    assert (times(profile, "overlap"), rows(profile, "overlap")["communication"].whole_ns) == (
        {"communication": 10},
        20 * US,
    )


def test_gaps_of_a_stream_have_three_causes(profile_of: Any) -> None:
    builder = TraceBuilder()
    builder.kernel("a", 0, 10 * US, 10 * US)
    builder.kernel("short", 5 * US, 30 * US, 10 * US)  # 10 µs after a, launched before its end
    builder.kernel("late", 50 * US, 60 * US, 10 * US)  # launched after the one before had ended
    builder.kernel("other", 65 * US, 170 * US, 10 * US)  # 100 µs, and launched in time
    builder.kernel("elsewhere", 66 * US, 300 * US, 10 * US, stream=8)  # the first of its stream has none before it
    assert times(profile_of(builder), "idle") == {"host wait": 20, "kernel wait": 10, "other wait": 100}


def test_ranks_add_up_and_keep_their_order(profile_of: Any, step: TraceBuilder) -> None:
    one = profile_of(step)
    other = profile_of(TraceBuilder().step(3, 0, 80 * US).kernel("a", 0, 10 * US, 20 * US, device=1))
    merged = merge_profiles([one, other])
    sections = [row.section for row in merged.overview]
    assert sections == sorted(sections, key=["step", "span", "overlap", "idle", "device"].index)
    kernel = rows(merged, "step")["kernel"]
    assert (kernel.time_ns, kernel.whole_ns, kernel.steps) == (30 * US, 180 * US, 2)
    assert {row.device for row in merged.overview if row.section == "device"} == {"device:0", "device:1"}


def test_without_a_device_there_are_steps_alone(profile_of: Any) -> None:
    profile = profile_of(TraceBuilder().step(1, 0, 50 * US).op("aten::mm", 10 * US, 20 * US))
    assert {row.section for row in profile.overview} == {"step"}
    assert times(profile, "step")["CPU"] == 20
