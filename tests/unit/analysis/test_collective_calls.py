"""Calls of collectives one by one: their times since the epoch, their numbers and the other ranks of messages."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.tables import collectives
from trace_builder import TraceBuilder

US = 1000
BASE = 1_700_000_000_000_000_000
TOLD = {
    "Collective name": "allreduce",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "dtype": "BFloat16",
    "Group size": 4,
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1, 2, 3]",
    "Seq": 41,
}
GROUP = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [2, 4, 6, 8]}


def test_a_kernel_has_its_time_since_the_epoch_its_step_its_line_and_torchs_number(profile_of: Any) -> None:
    builder = TraceBuilder(baseTimeNanoseconds=BASE).step(7, 0, 9 * US).line("/a.py", 3, "f", US, 5 * US)
    builder.kernel("ncclDevKernel_AllReduce", 2 * US, 20 * US, 10 * US, **TOLD)
    profile = profile_of(builder)
    (call,) = profile.collective_calls
    assert (call.start_ns, call.end_ns) == (BASE + 20 * US, BASE + 30 * US)
    assert (call.step, call.collective, call.sequence, call.peer, call.size_bytes) == (7, 0, 41, -1, 2000)
    assert (profile.lines[call.line].file, profile.lines[call.line].line) == ("/a.py", 3)


def test_calls_name_their_rows_however_these_are_sorted(profile_of: Any) -> None:
    builder = TraceBuilder()
    for at, (elements, length) in enumerate(((1000, 10), (9000, 50), (1000, 10))):
        told = TOLD | {"In msg nelems": elements, "Out msg nelems": elements}
        builder.kernel("ncclDevKernel_AllReduce", at * US, 100 * at * US, length * US, **told)
    profile = profile_of(builder)
    assert [profile.collectives[call.collective].size_class_bytes for call in profile.collective_calls] == [
        1024, 16384, 1024,
    ]  # fmt: skip
    assert [call.collective for call in profile.collective_calls] == [1, 0, 1]


def test_what_is_beyond_the_limit_is_left_out(profile_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "MOST_CALLS", 3)
    builder = TraceBuilder()
    for at in range(5):
        builder.kernel("ncclDevKernel_AllReduce", at * US, 100 * at * US, 10 * US, **(TOLD | {"Seq": at}))
    profile = profile_of(builder)
    assert [call.sequence for call in profile.collective_calls] == [0, 1, 2]
    assert profile.collectives[0].calls == 5


def test_torch_2_1_has_the_number_as_the_second_of_eight_arguments(profile_of: Any) -> None:
    given = ["", "337", "93825114103440", "0", "", "[]", "[]", "8"]
    builder = TraceBuilder().op("record_param_comms", 0, 10 * US, **{"Concrete Inputs": given})
    builder.kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL", 5 * US, 20 * US, 10 * US)
    assert [call.sequence for call in profile_of(builder).collective_calls] == [337]


@pytest.mark.parametrize(("kind", "key"), [("send", "Dst Rank"), ("recv", "Src Rank")])
def test_the_other_rank_of_a_message_is_named(profile_of: Any, kind: str, key: str) -> None:
    told = TOLD | {"Collective name": kind, "Rank": 1, key: 6}
    builder = TraceBuilder().kernel("ncclDevKernel_SendRecv", 0, 10 * US, 10 * US, **told)
    profile = profile_of(builder)
    assert ([one.kind for one in profile.collectives], profile.collective_calls[0].peer) == ([kind], 6)


@pytest.mark.parametrize(("span", "peer"), [("nccl:send 0->2", 6), ("nccl:recv 3<-0", 2), ("nccl:send 0->9", -1)])
def test_the_span_has_the_numbers_in_the_group(profile_of: Any, span: str, peer: int) -> None:
    builder = TraceBuilder(distributedInfo={"rank": 2, "world_size": 9, "pg_config": [GROUP]})
    builder.annotation(span, 0, 10 * US).kernel("ncclDevKernel_SendRecv", 5 * US, 20 * US, 10 * US)
    assert [call.peer for call in profile_of(builder).collective_calls] == [peer]


def gloo(builder: TraceBuilder, kind: str, at: int, *given: str) -> None:
    name = {"send": "c10d::send", "recv": "c10d::recv_"}[kind]
    builder.op(name, at, 10 * US, **{"Concrete Inputs": list(given)})
    builder.event("user_annotation", f"gloo:{kind}", at + 5 * US, 50 * US)


def test_gloos_messages_have_the_rank_among_the_arguments_of_their_operator(profile_of: Any) -> None:
    builder = TraceBuilder(distributedInfo={"rank": 2, "world_size": 9, "pg_config": [GROUP]})
    gloo(builder, "send", 0, "", "", "3", "0")
    gloo(builder, "recv", 100 * US, "", "", "0", "0")
    assert [call.peer for call in profile_of(builder).collective_calls] == [8, 2]


def test_of_several_groups_nothing_tells_which_one_a_number_is_of(profile_of: Any) -> None:
    other = GROUP | {"pg_name": "1", "ranks": [2, 8, 9, 10]}
    builder = TraceBuilder(distributedInfo={"rank": 2, "world_size": 11, "pg_config": [GROUP, other]})
    gloo(builder, "send", 0, "", "", "3", "0")
    assert [call.peer for call in profile_of(builder).collective_calls] == [-1]


def test_groups_of_the_same_ranks_are_as_good_as_one(profile_of: Any) -> None:
    other = GROUP | {"pg_name": "1", "pg_desc": "mesh_dp"}
    builder = TraceBuilder(distributedInfo={"rank": 2, "world_size": 9, "pg_config": [GROUP, other]})
    gloo(builder, "send", 0, "", "", "3", "0")
    profile = profile_of(builder)
    assert [call.peer for call in profile.collective_calls] == [8]
    (row,) = profile.collectives
    assert (row.group, row.group_ranks, row.group_size) == ("", "2, 4, 6, 8", 4)
    assert profile.trace.process_groups == 2


def test_what_a_gloo_thread_does_has_the_line_and_the_step_of_the_operator_that_queued_it(profile_of: Any) -> None:
    builder = TraceBuilder().step(3, 0, 40 * US).step(4, 40 * US, 100 * US)
    builder.line("/a.py", 5, "f", 0, 30 * US).op("c10d::allreduce_", 10 * US, 5 * US)
    builder.event("user_annotation", "gloo:all_reduce", 50 * US, 40 * US, tid=9)
    profile = profile_of(builder)
    (call,) = profile.collective_calls
    assert (call.step, profile.lines[call.line].line) == (3, 5)


def test_where_operators_and_spans_do_not_agree_no_line_is_guessed(profile_of: Any) -> None:
    builder = TraceBuilder().line("/a.py", 5, "f", 0, 30 * US).op("c10d::allreduce_", 10 * US, 5 * US)
    for at in (50, 100):
        builder.event("user_annotation", "gloo:all_reduce", at * US, 40 * US, tid=9)
    assert [call.line for call in profile_of(builder).collective_calls] == [-1, -1]


@pytest.mark.parametrize(
    ("ranks", "size", "first", "stride", "found"),
    [
        ("[0, 1, 2, ..., 63]", 64, 0, 1, "0-63"),
        ("[0, 2, 4, ..., 126]", 64, 0, 2, ", ".join(str(rank) for rank in range(0, 128, 2))),
        ("[0, 1, 2, ..., 99]", 64, 0, 1, ""),
        ("[0, 1, 5, ..., 63]", 64, 0, 1, ""),
        ("[0, 1, 2, ..., 63]", 64, 0, -1, ""),
        ("[0, 1, 2, ..., 63]", 2**60, 0, 2**60, ""),
    ],
)
def test_ranks_that_torch_cuts_are_told_where_all_are_as_far_from_each_other(
    profile_of: Any, ranks: str, size: int, first: int, stride: int, found: str
) -> None:
    told = TOLD | {"Process Group Ranks": ranks, "Group size": size, "Global rank start": first,
                   "Global rank stride": stride}  # fmt: skip
    builder = TraceBuilder().kernel("ncclDevKernel_AllReduce", 0, 10 * US, 10 * US, **told)
    assert [row.group_ranks for row in profile_of(builder).collectives] == [found]


def test_a_group_as_large_as_the_run_has_all_its_ranks(profile_of: Any) -> None:
    told = {key: value for key, value in TOLD.items() if key != "Process Group Ranks"}
    builder = TraceBuilder(distributedInfo={"rank": 0, "world_size": 4})
    builder.kernel("ncclDevKernel_AllReduce", 0, 10 * US, 10 * US, **told)
    assert [row.group_ranks for row in profile_of(builder).collectives] == ["0-3"]


@pytest.mark.parametrize("junk", [None, -1, 1e300, 2**70, "many", [1], {"a": 1}, True])
@pytest.mark.parametrize("key", ["Seq", "Src Rank", "Dst Rank", "Global rank start", "Global rank stride"])
def test_junk_in_a_field_leaves_the_call(profile_of: Any, key: str, junk: Any) -> None:
    for name in ("send", "recv", "allreduce"):
        builder = TraceBuilder().kernel("nccl", 0, 10 * US, 10 * US, **(TOLD | {"Collective name": name, key: junk}))
        (call,) = profile_of(builder).collective_calls
        assert (call.end_ns - call.start_ns, -1 <= call.peer < 2**24) == (10 * US, True)
