"""Rewriting torch's export: what is spliced in, what is taken out, and that all else is passed on to the digit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deepscope.analysis.ownership.attribution import CUT_MARK
from deepscope.capture.saving.rewrite import Instructions, rewrite
from deepscope.capture.saving.writer import request
from deepscope.errors import TraceError
from deepscope.processes import HelperProcess
from deepscope.trace.format.header import CallStackAccount, Header, read_header
from deepscope.trace.kinds import Kind
from deepscope.trace.read import read_trace
from trace_builder import BACKWARD, MAIN, TraceBuilder

FILES = [{"path": "/home/u/train.py"}, {"path": "/home/u/model.py"}]
SCOPES = [
    [0, 0, 10, "main", 3, "", ""],
    [0, 1, 42, "Net.forward", 40, "", ""],
    [1, -1, 0, "Linear", 0, "encoder.fc", "torch.nn.modules.linear"],
]

TABLES = read_header({"files": FILES, "scopes": SCOPES})


def export(tmp_path: Path, trace: TraceBuilder, **head: Any) -> Path:
    """The builder's events spaced as Kineto spaces them."""
    raw = tmp_path / ".run.deepscope-raw"
    raw.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": trace.events, "traceName": "x"}, indent=2))
    return raw


def rewritten(tmp_path: Path, trace: TraceBuilder, **options: Any) -> dict[str, Any]:
    target = tmp_path / "run.1.pt.trace.json.gz"
    header = options.pop("header", {"format": 1, "files": FILES, "scopes": SCOPES})
    rewrite(Instructions(raw=str(export(tmp_path, trace)), target=str(target), header=read_header(header), **options))
    result: dict[str, Any] = json.loads(gzip.decompress(target.read_bytes()))
    return result


def events_named(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["name"] == name]


def nested() -> TraceBuilder:
    trace = TraceBuilder()
    trace.op("@ds:0", 1_000, 9_000)
    trace.op("aten::add", 1_500, 100)
    trace.op("@ds:1", 2_000, 5_000)
    trace.op("@dm:2", 2_100, 4_000)
    trace.op("aten::mm", 3_000, 1_000)
    trace.op("aten::sum", 8_000, 100)
    return trace.op("aten::zero_", 20_000, 100)


def test_a_machine_without_isal_writes_the_same_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_isal = rewritten(tmp_path, nested())
    monkeypatch.setattr("deepscope.capture.saving.rewrite.igzip", None)
    assert rewritten(tmp_path, nested()) == by_isal


def test_line_scopes_become_events_of_their_own_category(tmp_path: Path) -> None:
    (line,) = events_named(rewritten(tmp_path, nested()), "model.py(42): Net.forward")
    assert line == {
        "ph": "X", "cat": "python_line", "name": "model.py(42): Net.forward",
        "pid": 100, "tid": MAIN, "ts": 2.0, "dur": 5.0, "args": {"scope": 1},
    }  # fmt: skip


def test_module_calls_become_events_of_their_own_category(tmp_path: Path) -> None:
    (module,) = events_named(rewritten(tmp_path, nested()), "nn.Module: Linear")
    assert (module["cat"], module["args"]) == ("python_module", {"scope": 2})


def test_operators_carry_the_lines_open_at_their_start_innermost_first(tmp_path: Path) -> None:
    trace = rewritten(tmp_path, nested())
    stacks = {name: events_named(trace, name)[0]["args"].get("Call stack") for name in ("aten::add", "aten::mm")}
    assert stacks == {
        "aten::add": "/home/u/train.py(10): main",
        "aten::mm": "/home/u/model.py(42): Net.forward;/home/u/train.py(10): main",
    }


def test_a_line_that_has_ended_is_in_no_stack(tmp_path: Path) -> None:
    trace = rewritten(tmp_path, nested())
    assert events_named(trace, "aten::sum")[0]["args"]["Call stack"] == "/home/u/train.py(10): main"
    assert "Call stack" not in events_named(trace, "aten::zero_")[0]["args"]


def broken(*, lookup: bool = True) -> TraceBuilder:
    """Line 42 breaks the graph of a compiled function that line 10 calls; it was told of its end at 4 µs."""
    trace = TraceBuilder().op("@ds:0", 0, 9_000).op("Torch-Compiled Region: 0/0", 500, 8_000)
    trace.op("@ds:1", 1_000, 3_000).op("aten::mm", 1_100, 100)
    if lookup:
        trace.op("TorchDynamo Cache Lookup", 2_000, 400)
    return trace.op("Torch-Compiled Region: 1/0", 2_500, 5_500).op("aten::sum", 3_000, 10).op("aten::cos", 5_000, 10)


@pytest.mark.parametrize(("lookup", "duration"), [(True, 1.0), (False, 1.5)])
def test_a_line_that_broke_a_graph_ends_where_dynamo_begins_what_follows(
    tmp_path: Path, lookup: bool, duration: float
) -> None:
    trace = rewritten(tmp_path, broken(lookup=lookup))
    (line,) = events_named(trace, "model.py(42): Net.forward")
    assert (line["ts"], line["dur"]) == (1.0, duration)
    stacks = {event["name"]: event["args"]["Call stack"] for event in trace["traceEvents"] if event["cat"] == "cpu_op"}
    caller = "/home/u/train.py(10): main"
    assert {name for name, stack in stacks.items() if stack != caller} == {"aten::mm"}
    assert stacks["aten::mm"] == f"/home/u/model.py(42): Net.forward;{caller}"


def test_a_line_that_calls_compiled_code_holds_it(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:0", 0, 5_000).op("TorchDynamo Cache Lookup", 100, 100)
    trace.op("Torch-Compiled Region: 0/0", 300, 1_000).op("aten::cos", 2_000, 10)
    other = trace.op("@ds:1", 10_000, 500).op("Torch-Compiled Region: 0/0", 10_200, 800, tid=BACKWARD)
    result = rewritten(tmp_path, other)
    durations = [event["dur"] for event in result["traceEvents"] if event["cat"] == "python_line"]
    assert durations == [5.0, 0.5]


def test_nothing_on_the_cpu_goes_on_after_the_step_that_ends_the_window(tmp_path: Path) -> None:
    """Torch stopped at 90 µs and ended there what was open; the step had ended at 50 µs."""
    trace = (
        TraceBuilder().annotation("ProfilerStep#4", 0, 50_000).annotation("Optimizer.step#Adam.step", 40_000, 50_000)
    )
    trace.op("@ds:0", 1_000, 50_000).op("@ds:1", 41_000, 1_000).op("aten::mm", 60_000, 100)
    trace.op("aten::sum", 45_000, 20_000, tid=BACKWARD).op("aten::add", 60_000, 100, tid=BACKWARD)
    trace.op("@dl:1:7000", 51_000, 10).op("@dt:", 50_500, 10)
    trace.kernel("gemm", 48_000, 49_000, 30_000, launch_duration=100)
    trace.runtime("cudaDeviceSynchronize", 70_000, 10_000)
    result = rewritten(tmp_path, trace, drop_if_empty="ProfilerStep#4")
    spans = [(event["name"], event["ts"], event["dur"]) for event in result["traceEvents"] if event["ph"] == "X"]
    assert sorted(spans) == [
        ("Optimizer.step#Adam.step", 40.0, 10.0),
        ("ProfilerStep#4", 0.0, 50.0),
        ("aten::add", 60.0, 0.1),
        ("aten::sum", 45.0, 5.0),
        ("cudaLaunchKernel", 48.0, 0.1),
        ("gemm", 49.0, 30.0),
        ("model.py(42): Net.forward", 41.0, 1.0),
        ("model.py(42): Net.forward", 43.5, 6.5),
        ("train.py(10): main", 1.0, 49.0),
    ]


def test_no_scope_name_of_the_recorder_is_left(tmp_path: Path) -> None:
    trace = nested().event("gpu_user_annotation", "@ds:1", 3_000, 100, pid=0, tid=7).op("@ds:99", 4_000, 10)
    assert not [event for event in rewritten(tmp_path, trace)["traceEvents"] if event["name"].startswith("@d")]


def test_backward_operators_on_a_thread_of_the_engine_carry_the_forward_line_then_the_call_of_backward(
    tmp_path: Path,
) -> None:
    trace = TraceBuilder().op("@ds:1", 1_000, 500)
    trace.op("aten::mm", 1_100, 100, sequence=7).flow(1_100, 5_001).op("@ds:0", 4_000, 4_000)
    trace.backward("MmBackward0", 5_000, 1_000, 7).op("aten::mm", 5_100, 100, tid=BACKWARD)
    inner = events_named(rewritten(tmp_path, trace), "aten::mm")[1]
    assert inner["args"]["Call stack"] == "/home/u/model.py(42): Net.forward;/home/u/train.py(10): main"


def test_backward_operators_on_the_thread_that_called_backward_carry_the_forward_line_too(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:1", 1_000, 500).op("aten::mm", 1_100, 100, sequence=7).flow(1_100, 5_001)
    trace.op("@ds:0", 4_000, 4_000).backward("MmBackward0", 5_000, 1_000, 7, tid=MAIN).op("aten::mm", 5_100, 100)
    inner = events_named(rewritten(tmp_path, trace), "aten::mm")[1]
    assert inner["args"]["Call stack"] == "/home/u/model.py(42): Net.forward;/home/u/train.py(10): main"


def test_backward_operators_without_a_forward_carry_the_line_that_called_backward(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:0", 4_000, 4_000)
    trace.op("autograd::engine::evaluate_function: AccumulateGrad", 5_000, 100, tid=BACKWARD)
    (node,) = events_named(rewritten(tmp_path, trace), "autograd::engine::evaluate_function: AccumulateGrad")
    assert node["args"]["Call stack"] == "/home/u/train.py(10): main"


def test_a_line_that_calls_itself_stands_once_in_a_stack(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:0", 0, 100).op("@ds:1", 10, 80).op("@ds:1", 20, 60).op("aten::mm", 30, 10)
    (inner,) = events_named(rewritten(tmp_path, trace), "aten::mm")
    assert inner["args"]["Call stack"] == "/home/u/model.py(42): Net.forward;/home/u/train.py(10): main"


def test_times_keep_their_digits(tmp_path: Path) -> None:
    digits = "1712195495519689.047"
    raw = tmp_path / "raw"
    place = f'"pid": 1, "tid": 1, "ts": {digits}, "dur": 5.001, "args": {{}}'
    events = [f'{{ "ph": "X", "cat": "cpu_op", "name": "{name}", {place} }}' for name in ("@ds:0", "aten::mm")]
    raw.write_text(f'{{ "traceEvents": [ {" , ".join(events)} ] }}')
    target = tmp_path / "run.1.pt.trace.json"
    rewrite(Instructions(raw=str(raw), target=str(target), header=TABLES))
    assert target.read_text().count(f'"ts":{digits},"dur":5.001') == 2


def test_top_level_keys_of_torch_are_kept_and_ours_added(tmp_path: Path) -> None:
    raw = export(tmp_path, nested(), deviceProperties=[{"id": 0}], baseTimeNanoseconds=1790857026000000000)
    target = tmp_path / "run.1.pt.trace.json"
    rewrite(Instructions(raw=str(raw), target=str(target), header=msgspec.structs.replace(TABLES, rank=3)))
    trace = read_trace(target)
    assert trace.metadata["deviceProperties"] == [{"id": 0}]
    assert trace.base_ns == 1790857026000000000
    assert trace.header.rank == 3
    assert trace.header.call_stacks == CallStackAccount(operators=4, written=3, depth=64, cut=0)


def test_the_reader_finds_the_scopes_that_were_written(tmp_path: Path) -> None:
    rewritten(tmp_path, nested())
    trace = read_trace(tmp_path / "run.1.pt.trace.json.gz")
    rows = trace.events.kind == Kind.LINE_SCOPE
    lines = [trace.scopes[scope] for scope in trace.events.scope[rows].tolist()]
    assert [(scope.file, scope.line, scope.name) for scope in lines] == [
        ("/home/u/train.py", 10, "main"),
        ("/home/u/model.py", 42, "Net.forward"),
    ]


def test_names_that_json_must_escape_survive(tmp_path: Path) -> None:
    path = 'C:\\proj\\wei"rd\n.py'
    header = {"files": [{"path": path}], "scopes": [[0, 0, 1, "f\t<lambda>", 1, "", ""]]}
    trace = rewritten(tmp_path, TraceBuilder().op("@ds:0", 0, 100).op("aten::mm", 10, 20), header=header)
    assert events_named(trace, "aten::mm")[0]["args"]["Call stack"] == f"{path}(1): f\t<lambda>"
    assert events_named(trace, 'wei"rd\n.py(1): f\t<lambda>')


def test_a_path_with_undecodable_bytes_does_not_lose_the_trace(tmp_path: Path) -> None:
    header = {"files": [{"path": "/tmp/\udcff.py"}], "scopes": [[0, 0, 1, "f", 1, "", ""]]}
    trace = rewritten(tmp_path, TraceBuilder().op("@ds:0", 0, 100).op("aten::mm", 10, 20), header=header)
    assert events_named(trace, "aten::mm")[0]["args"]["Call stack"] == "/tmp/?.py(1): f"


def test_a_stack_that_torch_wrote_gives_way_to_the_exact_one(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:0", 0, 100).op("aten::mm", 10, 20, stack="train.py(3): main")
    assert events_named(rewritten(tmp_path, trace), "aten::mm")[0]["args"]["Call stack"] == "/home/u/train.py(10): main"


def test_annotations_are_renamed_and_taken_out(tmp_path: Path) -> None:
    trace = TraceBuilder().annotation("@dw:0", 0, 50).op("aten::mm", 10, 20).annotation("gone", 60, 10)
    names = [
        e["name"] for e in rewritten(tmp_path, trace, rename={"@dw:0": "ProfilerStep#0", "gone": None})["traceEvents"]
    ]
    assert names == ["ProfilerStep#0", "aten::mm"]


def test_light_annotations_stand_among_the_operators_of_the_export_and_nowhere_else(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:0", 0, 100).op("@da:0", 5, 50).op("aten::mm", 10, 20)
    (span,) = events_named(rewritten(tmp_path, trace, rename={"@da:0": "forward"}), "forward")
    assert span["cat"] == "user_annotation"
    assert "Call stack" not in span.get("args", {})


@pytest.mark.parametrize(("start", "kept"), [(10, True), (100, False)])
def test_a_last_step_is_kept_only_if_something_ran_in_it(tmp_path: Path, start: int, kept: bool) -> None:
    trace = TraceBuilder().step(4, 0, 50).op("aten::mm", start, 20)
    assert bool(events_named(rewritten(tmp_path, trace, drop_if_empty="ProfilerStep#4"), "ProfilerStep#4")) is kept


def test_a_window_without_operators_is_skipped_where_that_is_asked_for(tmp_path: Path) -> None:
    raw = export(tmp_path, TraceBuilder().op("@ds:0", 0, 100).step(5, 0, 100))
    target = tmp_path / "run.1.pt.trace.json.gz"
    header = {"files": FILES, "scopes": SCOPES}
    assert not rewrite(Instructions(raw=str(raw), target=str(target), header=read_header(header), skip_if_empty=True))
    assert not target.exists()


def test_a_broken_export_leaves_no_trace_and_no_partial_file(tmp_path: Path) -> None:
    raw = export(tmp_path, nested())
    raw.write_bytes(raw.read_bytes()[:700])
    with pytest.raises(TraceError):
        rewrite(Instructions(raw=str(raw), target=str(tmp_path / "run.1.pt.trace.json.gz"), header=Header()))
    assert [path.name for path in tmp_path.iterdir()] == [raw.name]


def test_nothing_is_at_the_target_until_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = export(tmp_path, nested())
    target = tmp_path / "run.1.pt.trace.json.gz"
    seen: list[list[str]] = []
    original = Path.replace

    def replace(self: Path, other: Path) -> Path:
        seen.append([path.name for path in tmp_path.iterdir() if ".pt.trace.json" in path.name])
        return original(self, other)

    monkeypatch.setattr(Path, "replace", replace)
    rewrite(Instructions(raw=str(raw), target=str(target), header=TABLES))
    assert seen == [[]]
    assert target.exists()


def test_the_other_process_answers_as_a_call_does(tmp_path: Path) -> None:
    raw = export(tmp_path, nested())
    target = tmp_path / "run.1.pt.trace.json.gz"
    instructions = Instructions(raw=str(raw), target=str(target), header=TABLES)
    process = HelperProcess.start("deepscope.capture.saving.writer")
    assert process is not None
    answer = process.ask(request(msgspec.json.encode(instructions), raw=raw, local_rank=0))
    process.end()
    assert msgspec.json.decode(answer, type=bool) == rewrite(instructions)


def many_operators(count: int, frames: int) -> tuple[TraceBuilder, dict[str, Any]]:
    """Operators in pairs, the second inside the first, below `frames` long lines."""
    trace = TraceBuilder()
    folder = "/home/u/" + "a-long-name-of-a-folder/" * 5
    header = {
        "files": [{"path": f"{folder}{i}.py"} for i in range(frames)],
        "scopes": [[0, i, 100 + i, f"function_{i}", 1, "", ""] for i in range(frames)],
    }
    for i in range(frames):
        trace.op(f"@ds:{i}", i, 1_000_000)
    for i in range(count):
        trace.op("aten::outer", 1_000 + 100 * i, 50).op("aten::inner", 1_000 + 100 * i + 10, 20)
    return trace, header


def test_line_dense_code_leaves_every_operator_its_stack(tmp_path: Path) -> None:
    trace = TraceBuilder().op("@ds:0", 0, 1_000_000)
    for i in range(1_000):
        trace.op("@ds:1", 100 + 100 * i, 90)
    trace.op("aten::mm", 110, 10)
    rewritten(tmp_path, trace)
    written = read_trace(tmp_path / "run.1.pt.trace.json.gz").header.call_stacks
    assert written == CallStackAccount(operators=1, written=1, depth=64, cut=0)


def test_stacks_together_are_no_larger_than_the_export_and_each_keeps_both_its_ends(tmp_path: Path) -> None:
    trace, header = many_operators(500, frames=12)
    document = rewritten(tmp_path, trace, header=header)
    stacks = [event["args"]["Call stack"] for event in document["traceEvents"] if event["cat"] == "cpu_op"]
    account = document["deepscope"]["call_stacks"]
    assert (account["operators"], account["written"], account["cut"]) == (1_000, 1_000, 1_000)
    assert 1 <= account["depth"] < 12
    assert sum(map(len, stacks)) <= (tmp_path / ".run.deepscope-raw").stat().st_size
    outer = account["depth"] // 4
    kept = [*range(11, 11 - account["depth"] + outer, -1), *range(outer - 1, -1, -1)]
    for stack in stacks:
        frames = [frame.partition(": ")[2] for frame in stack.split(";") if frame != CUT_MARK]
        assert frames == [f"function_{i}" for i in kept]
        assert stack.split(";").count(CUT_MARK) == 1


def test_the_owner_is_written_where_even_one_frame_each_is_more_than_the_export(tmp_path: Path) -> None:
    path = "/home/u/" + "x" * 4_000 + ".py"
    header = {"files": [{"path": path}], "scopes": [[0, 0, 1, "f", 1, "", ""]]}
    trace = TraceBuilder().op("@ds:0", 0, 100_000)
    for i in range(100):
        trace.op("aten::mm", 10 + 10 * i, 5)
    operators = events_named(rewritten(tmp_path, trace, header=header), "aten::mm")
    assert {event["args"]["Call stack"] for event in operators} == {f"{path}(1): f"}
