"""The `deepscope` object: written and read by one module, and believed as far as it is well formed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deepscope.capture.options import RecordingOptions
from deepscope.trace.format.audit import AuditAccount, AuditedPlace, OperatorUse, SameWork, SlicedCalls, UnusedGradients
from deepscope.trace.format.configuration import Configuration
from deepscope.trace.format.counters import ContainerLimits, CounterAccount, DeviceFacts, MemoryNode, MissingSensor
from deepscope.trace.format.header import (
    FORMAT,
    CallStackAccount,
    Clock,
    Device,
    File,
    Git,
    Header,
    LineAccount,
    MachineUse,
    ModuleParameters,
    ScopeRow,
    Spread,
    UnrecordedStepTimes,
    Worker,
    WorkerLine,
    glance,
    read_header,
)
from deepscope.trace.format.process_tables import (
    CompiledCode,
    CompiledGraph,
    CompiledKernel,
    GraphBreak,
    Held,
    LoaderSettings,
    MemoryAccount,
    OptimizerSettings,
    OutOfMemory,
    ParallelSettings,
    ProcessSettings,
    Recompilation,
    Release,
    SourcePlace,
    Survey,
)

FULL = Header(
    format=FORMAT,
    version="1.2",
    run_id="ab-1",
    stage="fit",
    window=3,
    rank=1,
    world_size=8,
    complete=False,
    program='train "x{y}.py',
    arguments="0e5751c0",
    recorded_at="2026-01-02T03:04:05+01:00",
    hostname="h",
    pid=77,
    all_threads=True,
    device=Device("cuda", "NVIDIA H100", 8),
    versions={"python": "3.13.0", "torch": "2.13.0"},
    configuration=Configuration(wait=2, source="hash", max_slowdown=None),
    settings=ProcessSettings(
        autocast="bfloat16",
        matmul_precision="high",
        anomaly=True,
        threads=8,
        loaders=[LoaderSettings(num_workers=4, batch_size=32, prefetch_factor=2)],
        optimizers=[OptimizerSettings("AdamW", fused=True, parameters=7)],
        parallel=[ParallelSettings(static_graph=True)],
        trainer={"precision": "bf16-mixed", "accumulate_grad_batches": 2},
    ),
    schedule={"wait": 1, "active": 3},
    recorder_ns={"start": 5},
    recorded_steps=UnrecordedStepTimes(3, Spread(40, (30, 40, 50)), Spread(35, (30, 35, 40))),
    plain_steps=UnrecordedStepTimes(40, Spread(20, (19, 20, 21)), Spread(18, (17, 18, 19))),
    machine=MachineUse(cores=2, others_cores=1.5, core_wait_ratio=0.25),
    clock=Clock(offset_ns=-7, error_ns=300, unix_ns=1_790_857_026_000_000_000),
    phases={"mine": "forward"},
    notes=["the device is unknown"],
    metadata={"batch": {"size": 4}},
    project_root="/p",
    git=Git("c0ffee", dirty=True),
    call_stacks=CallStackAccount(4, 3, 64, 1),
    lines=LineAccount(backend="settrace", entries=9, cost_ns=1.5, over_budget=[(0, 7)], lowered=[(0, "loop")]),
    memory=MemoryAccount(
        surveys=[Survey(5, "begin", [Held(0, 1, 0, 77, 512), Held(4, 0, -1, 78)])],
        releases=[Release(9, 0, -1, 78)],
        failure=OutOfMemory(12, "OutOfMemoryError", "CUDA out of memory"),
        cost_ns=3,
        warnings=["w"],
    ),
    counters=CounterAccount(
        interval_ns=100_000_000,
        samples=9,
        cost_ns=4_000_000,
        cores=64,
        missing=[MissingSensor("InfiniBand", "no adapter")],
        devices=[DeviceFacts("0", "NVIDIA H100", "0000:1B:00.0", 1, 1980, 2619, 700.0, 89, 0)],
        nodes=[MemoryNode(1, 32, 8, 1 << 30)],
        container=ContainerLimits(2.5, 1 << 34),
    ),
    files=[File("/p/a.py", "ab", "x = 1\n"), File("/lib/b.py")],
    scopes=[
        ScopeRow(0, 0, 12, "main", 3),
        ScopeRow(0, 1, 7, "forward", 5, library=True),
        ScopeRow(1, 1, 0, "Linear", 0, "encoder.fc", "torch.nn"),
    ],
    parameters=[ModuleParameters(2, 40, 60)],
    workers=[Worker(8, 0, 2, [WorkerLine(0, 12, "main", 500, 2, 400)], 900)],
    compiled=CompiledCode(
        [CompiledGraph("fabc", [CompiledKernel("triton_poi_fused_add_0", [(0, 2), (1, 1)])])],
        [SourcePlace(0, 12, "main"), SourcePlace(1, 3, "helper", 0, library=True, first_line=2)],
        [GraphBreak(0, "Call to graph_break")],
        [Recompilation(1, "size mismatch", 500)],
    ),
    audit=AuditAccount(
        steps=2,
        operators=40,
        left_out="nothing",
        hidden=["mine::op"],
        places=[AuditedPlace(0, 12, "main"), AuditedPlace(1, 7, "forward")],
        gradients=[UnusedGradients(0, 1, "cleared", 4, 99, ["net"], True, True, [OperatorUse(0, "aten::mm", 2, 1)])],
        slices=[SlicedCalls(0, 1, 16, 1, [4, 16], "LSTMCell", True, [1], 99, 7, 8)],
        same=[SameWork(place=1, result_bytes=4096, operators=[OperatorUse(1, "aten::triu", 1, 1)])],
    ),
)
PLAIN: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(FULL))
JUNK = [None, 7, -1, 2**70, 1.5, "x", True, [], {}, [None], [[]], {"a": None}, [{"path": 3}], [[0, 0, "12", "main"]]]


def test_what_was_written_is_read() -> None:
    assert read_header(PLAIN) == FULL
    assert all(getattr(FULL, field) != getattr(Header(), field) for field in Header.__struct_fields__)


@pytest.mark.parametrize("field", Header.__struct_fields__)
def test_junk_in_one_place_costs_no_other(field: str) -> None:
    for junk in JUNK:
        found = read_header(PLAIN | {field: junk})
        others = [name for name in Header.__struct_fields__ if name != field]
        assert [getattr(found, name) for name in others] == [getattr(FULL, name) for name in others]
        msgspec.json.decode(msgspec.json.encode(found), type=Header)  # what is kept is as the format says


@pytest.mark.parametrize(
    "nested", ["lines", "configuration", "device", "plain_steps", "call_stacks", "compiled", "settings", "counters"]
)
def test_junk_within_an_object_costs_no_other_part_of_it(nested: str) -> None:
    for part in PLAIN[nested]:
        found = getattr(read_header(PLAIN | {nested: PLAIN[nested] | {part: {"no": "such"}}}), nested)
        kept = {name: getattr(found, name) for name in PLAIN[nested] if name != part}
        assert kept == {name: getattr(getattr(FULL, nested), name) for name in kept}


def test_a_damaged_row_of_a_table_keeps_its_place_and_of_a_list_it_is_left_out() -> None:
    damaged = PLAIN | {
        "files": [{"path": 3}, PLAIN["files"][0]],
        "scopes": [[0, 0], PLAIN["scopes"][0]],
        "lines": {"over_budget": [[1], [2, 3]]},
        "workers": [{"lines": [[0], [0, 1, "f", 5, 1, "x"]]}, 8],
    }
    header = read_header(damaged)
    assert header.files == [None, FULL.files[0]]
    assert (header.path_of(0), header.path_of(1), header.path_of(2), header.path_of(-1)) == ("", "/p/a.py", "", "")
    assert header.scopes == [None, FULL.scopes[0]]
    assert header.lines.over_budget == [(2, 3)]
    assert [worker.lines for worker in header.workers] == [[WorkerLine(0, 1, "f", 5, 1)]]


def test_a_damaged_kernel_or_place_keeps_its_place() -> None:
    kernel = ["cpp_fused_0", [[0, 1], [0], ["x", 1], [1, 0], [1, 2**40], [1, 2]]]
    damaged = {"graphs": [{"key": "f", "kernels": [[3], kernel]}, 7], "places": [[0], PLAIN["compiled"]["places"][1]]}
    found = read_header(PLAIN | {"compiled": damaged}).compiled
    assert found.graphs == [CompiledGraph("f", [None, CompiledKernel("cpp_fused_0", [(0, 1), (1, 2)])])]
    assert found.places == [None, FULL.compiled.places[1]]


def test_steps_of_a_warm_up_in_an_older_trace_are_no_plain_steps() -> None:
    older = {"format": 2, "pace": {"recorded_steps": 3, "recorded_ns": 40, "other_steps": 1, "other_ns": 39}}
    assert (read_header(older).plain_steps, read_header(older).recorded_steps) == (None, None)


@pytest.mark.parametrize("value", [None, 7, "x", []])
def test_a_trace_of_others_has_an_empty_header(value: object) -> None:
    assert read_header(value) == Header()
    assert not read_header(value).format


def test_a_glance_at_any_number_of_first_bytes_tells_nothing_but_the_truth() -> None:
    text = b'{"schemaVersion":1,"deepscope":' + msgspec.json.encode(FULL) + b',"traceEvents":[]}'
    short = [name for name, value in PLAIN.items() if not isinstance(value, (dict, list))]
    for cut in range(len(text)):
        found = glance(text[:cut])
        assert all(getattr(found, name) in (getattr(FULL, name), getattr(Header(), name)) for name in short)
    assert all(getattr(glance(text), name) == getattr(FULL, name) for name in short)
    assert glance(msgspec.json.format(text)) == glance(text)


def test_a_glance_finds_what_stands_behind_long_values_and_nothing_within_them() -> None:
    within = {"rank": 7, "text": '"},"rank":8,"x":{"', "deeper": [{"window": 9}]}
    own = {"git": {"commit": "c", "dirty": False}, "files": [within, within], "rank": 2, "lines": within, "window": 5}
    text = b'{"deepscope" : ' + msgspec.json.encode(own) + b',"rank":6}'
    assert (glance(text).rank, glance(text).window) == (2, 5)
    for cut in range(len(text)):
        assert glance(text[:cut]).rank in (None, 2)


def test_a_recordings_options_are_its_configuration() -> None:
    told = RecordingOptions(wait=4, record_shapes=True, max_slowdown=float("inf"), source="none").configuration
    assert told == Configuration(wait=4, record_shapes=True, max_slowdown=None, source="none")
    assert type(told) is Configuration
