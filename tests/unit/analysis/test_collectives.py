"""Collectives: their kinds, messages, groups and bandwidths."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.tables.messages import bus_factor, kind_of_collective
from deepscope.records import Collective, Profile
from deepscope.records.ranks import merge_profiles
from deepscope.report.text_report import text_report
from trace_builder import TraceBuilder

US = 1000
TOLD = {
    "Collective name": "allreduce",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "dtype": "BFloat16",
    "Group size": 4,
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1, 2, 3]",
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nccl:_allgather_base", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", "send_recv"),
        ("ncclKernel_Reduce_RING_LL_Sum_float(ncclDevComm*, all_gather)", "reduce"),
        ("void vllm::cross_device_reduce_1stage<c10::Half, 2>(…)", "all_reduce"),
        ("ncclDevKernel_Generic(ncclDevComm*)", ""),
    ],
)
def test_a_kind_is_told_by_the_names_that_libraries_give(name: str, kind: str) -> None:
    assert kind_of_collective(name) == kind


def test_the_bus_factors_are_those_of_nccl_tests() -> None:
    """https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"""
    assert [bus_factor(kind, 8) for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")] == [
        1.75, 0.875, 0.875, 0.875,
    ]  # fmt: skip
    assert [bus_factor(kind, 8) for kind in ("broadcast", "reduce", "send_recv", "")] == [1, 1, 1, 0]
    assert bus_factor("all_reduce", 0) == 0


def test_libraries_of_experts_and_of_inference_communicate(profile_of: Any) -> None:
    names = (
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(int*)",
        "void flash::flash_fwd_splitkv_combine_kernel<64>(flash::Flash_fwd_params)",
    )
    builder = TraceBuilder()
    for place, name in enumerate(names):
        builder.kernel(name, place, 10 * US + place * 10 * US, 10 * US)
    profile = profile_of(builder)
    assert {one.name: one.kind for one in profile.kernels} == {
        names[0]: "collective", names[1]: "collective", names[2]: "kernel",
    }  # fmt: skip
    assert [(row.kind, row.library) for row in profile.collectives] == [
        ("all_to_all", "deep_ep"), ("all_reduce", "custom_all_reduce"),
    ]  # fmt: skip


def test_a_kernel_tells_of_itself(profile_of: Any) -> None:
    builder = TraceBuilder().kernel("ncclDevKernel_AllReduce_Sum_bf16", 0, 10 * US, 10 * US, **TOLD)
    builder.kernel("gemm", US, 15 * US, 20 * US, stream=8)
    (row,) = profile_of(builder).collectives
    assert (row.kind, row.library, row.group, row.group_description, row.group_ranks, row.group_size) == (
        "all_reduce", "nccl", "0", "default_pg", "0-3", 4,
    )  # fmt: skip
    assert (row.dtype, row.bytes, row.size_class_bytes, row.calls) == ("bfloat16", 2000, 1024, 1)
    assert (row.time_ns, row.exposed_ns) == (10 * US, 5 * US)
    assert (row.algorithm_bytes_per_s, row.bus_bytes_per_s) == (200_000_000, 300_000_000)
    assert row.transfer_ns is None  # three ranks are missing
    assert row.wait_ns is None


def test_the_operator_around_the_launch_tells_of_a_kernel_that_does_not(profile_of: Any) -> None:
    builder = TraceBuilder().op("record_param_comms", 0, 10 * US, **(TOLD | {"Collective name": "_allgather_base"}))
    builder.kernel("ncclDevKernel_Generic", 5 * US, 20 * US, 10 * US)
    (row,) = profile_of(builder).collectives
    assert (row.kind, row.bytes, row.group_ranks) == ("all_gather", 2000, "0-3")


def test_before_torch_2_3_shapes_and_the_head_of_the_trace_tell(profile_of: Any) -> None:
    group = {"pg_name": "7", "pg_desc": "tp", "pg_size": 2, "ranks": [4, 5]}
    builder = TraceBuilder(distributedInfo={"backend": "nccl", "rank": 4, "pg_config": [group]})
    builder.event("user_annotation", "nccl:_all_gather_base", 0, 10 * US, **{
        "Input Dims": [[4, 25]], "Input type": ["float"],
    })  # fmt: skip
    builder.kernel("ncclKernel_AllGather_RING_LL_Sum_int8_t", 5 * US, 20 * US, 10 * US)
    (row,) = profile_of(builder).collectives
    # What one rank puts in is 400 bytes; nccl-tests counts what comes out.
    assert (row.kind, row.group, row.group_ranks, row.bytes, row.bus_bytes) == ("all_gather", "7", "4-5", 800, 400)


def test_torch_2_2_has_the_groups_size_as_the_last_of_eight_arguments(profile_of: Any) -> None:
    given = ["", "337", "93825114103440", "0", "", "[]", "[]", "8"]
    builder = TraceBuilder().op("record_param_comms", 0, 10 * US, **{"Concrete Inputs": given})
    builder.kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL", 5 * US, 20 * US, 10 * US)
    (row,) = profile_of(builder).collectives
    assert (row.group_size, row.group_ranks, row.bytes) == (8, "", 0)


def test_gloo_works_on_the_cpu(profile_of: Any) -> None:
    builder = TraceBuilder().op("aten::mm", 0, 30 * US)
    builder.event("user_annotation", "gloo:all_reduce", 20 * US, 40 * US, tid=9, **{
        "Input Dims": [[1000]], "Input type": ["float"],
    })  # fmt: skip
    (row,) = profile_of(builder).collectives
    assert (row.kind, row.library, row.on_device, row.time_ns, row.bytes) == (
        "all_reduce",
        "gloo",
        False,
        40 * US,
        4000,
    )
    assert row.exposed_ns == 30 * US  # an operator ran beside it for 10


def test_rows_are_apart_by_size_to_a_power_of_two(profile_of: Any) -> None:
    builder = TraceBuilder()
    for at, elements in ((0, 1000), (100, 1023), (200, 1024)):
        told = TOLD | {"In msg nelems": elements, "Out msg nelems": elements}
        builder.kernel("ncclDevKernel_AllReduce", at * US, (at + 10) * US, 10 * US, **told)
    assert [(row.size_class_bytes, row.calls) for row in profile_of(builder).collectives] == [(1024, 2), (2048, 1)]


def of_rank(profile_of: Any, *durations: int, ranks: str = "[0, 1]") -> Any:
    builder = TraceBuilder()
    told = TOLD | {"Group size": 2, "Process Group Ranks": ranks}
    for place, duration in enumerate(durations):
        builder.kernel("ncclDevKernel_AllReduce", place * US, 100 * place * US, duration * US, **told)
    return profile_of(builder)


def merged(*profiles: Any) -> list[Collective]:
    return merge_profiles(profiles).collectives


def test_with_all_ranks_of_a_group_waiting_is_told_from_transfer(profile_of: Any) -> None:
    (row,) = merged(of_rank(profile_of, 10, 50), of_rank(profile_of, 30, 20))
    # The shortest of each call is what it takes: 10 and 20 on both ranks.
    assert (row.time_ns, row.transfer_ns, row.wait_ns) == (110 * US, 60 * US, 50 * US)


def test_waiting_cannot_be_told_where_calls_do_not_match(profile_of: Any) -> None:
    (row,) = merged(of_rank(profile_of, 10, 50), of_rank(profile_of, 30))
    assert row.transfer_ns is None
    apart = merged(of_rank(profile_of, 10), of_rank(profile_of, 30, ranks="[2, 3]"))
    assert [row.transfer_ns for row in apart] == [None, None]


def test_alone_in_its_group_no_rank_waits(profile_of: Any) -> None:
    builder = TraceBuilder().kernel("ncclDevKernel_AllReduce", 0, 10 * US, 10 * US, **(TOLD | {"Group size": 1}))
    (row,) = profile_of(builder).collectives
    assert (row.transfer_ns, row.wait_ns, row.bus_bytes_per_s) == (10 * US, 0, None)


@pytest.mark.parametrize("junk", [None, -1, 1e300, 2**70, "many", [1], {"a": 1}, "[0, 1, ...]", True])
@pytest.mark.parametrize("key", TOLD)
def test_junk_in_any_field_leaves_the_time(profile_of: Any, key: str, junk: Any) -> None:
    builder = TraceBuilder().kernel("ncclDevKernel_AllReduce", 0, 10 * US, 10 * US, **(TOLD | {key: junk}))
    (row,) = profile_of(builder).collectives
    assert (row.time_ns, row.calls) == (10 * US, 1)
    assert 0 <= row.bytes < 2**41


@pytest.mark.parametrize("junk", [7, "x", [], {"pg_config": 3}, {"pg_config": [3, {"pg_name": 1, "ranks": {}}]}])
def test_junk_in_the_head_tells_no_group(profile_of: Any, junk: Any) -> None:
    builder = TraceBuilder(distributedInfo=junk).kernel("ncclDevKernel_AllReduce", 0, 10 * US, 10 * US)
    (row,) = profile_of(builder).collectives
    assert (row.group, row.group_ranks, row.group_size) == ("", "", 0)


def test_the_report_of_collectives_says_how_many_calls_lie_outside_the_steps(profile_of: Any) -> None:
    def one(rank: int, *, with_steps: bool = True) -> Profile:
        builder = TraceBuilder(distributedInfo={"backend": "gloo", "rank": rank, "world_size": 2})
        if with_steps:
            builder.step(1, 0, 1000)
        profile: Profile = profile_of(builder.op("gloo:all_reduce", 100, 700).op("gloo:all_reduce", 2000, 5000))
        return profile

    def time_of(profile: Profile, by: str = "collective") -> str:
        return next(line for line in text_report(profile, by=by, width=120).splitlines() if line.startswith("time"))

    assert [(row.calls, row.outside_calls) for row in one(0).collectives] == [(2, 1)]
    assert time_of(one(0)).endswith(" a step · 1 call of a collective lies outside the steps")
    assert time_of(merge_profiles([one(0), one(1)])).endswith(" · 2 calls of collectives lie outside the steps")
    assert "outside" not in time_of(one(0), "line") + time_of(one(0, with_steps=False))
