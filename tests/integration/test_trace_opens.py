"""A recorded trace opens in the tools that people have: torch-tb-profiler, HTA, Chrome's and Perfetto's viewers."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import deepscope
from deepscope.trace.format.run_account import account_path
from recorded import TESTS, Net, load, loader, train_step

FRAME = re.compile(r"^(/.+)\((\d+)\): .+$")


@pytest.fixture(scope="module")
def trace_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with deepscope.profile(folder, wait=1, warmup=1, active=3, filename="train", root=TESTS) as recording:
        for batch in recording.iterate(loader()):
            train_step(net, optimizer, batch)
    (path,) = recording.traces
    return path


@pytest.fixture(scope="module")
def trace(trace_path: Path) -> dict[str, Any]:
    return load(trace_path)


@pytest.fixture(scope="module")
def dashboard_profile(trace_path: Path) -> Any:
    """The run as torch-tb-profiler's views have it, loaded in this process as its loader does in one for each file."""
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    with io.Cache() as cache:
        data = RunProfileData.parse("train.rank0", "1", str(trace_path), cache)
    return RunGenerator("train.rank0", "1", data).generate_run_profile()


def complete(trace: dict[str, Any], category: str | None = None) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and category in (None, e.get("cat"))]


def test_the_dashboard_takes_the_file_for_a_worker_of_that_name(trace_path: Path) -> None:
    from torch_tb_profiler import consts

    match = consts.WORKER_PATTERN.match(trace_path.name)
    assert match is not None
    assert match.group(1) == "train.rank0"


def test_the_dashboard_has_a_stack_with_exact_lines_for_every_operator(dashboard_profile: Any, trace: Any) -> None:
    names = {row["name"] for row in dashboard_profile.operation_table_by_name["data"]}
    stacks = dashboard_profile.operation_stack_by_name
    assert {"aten::linear", "aten::relu", "aten::mm"} <= names
    for name in names & {event["name"] for event in complete(trace, "cpu_op") if "Call stack" in event["args"]}:
        for row in stacks[name]["data"]:
            for frame in filter(None, row["call_stack"].split(";")):
                assert FRAME.match(frame)
    relu = [row["call_stack"].split(";")[0] for row in stacks["aten::relu"]["data"]]
    assert relu == [f"{TESTS / 'recorded.py'}({line_of('self.first(x).relu()')}): Net.forward"]


def line_of(text: str) -> int:
    lines = (TESTS / "recorded.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_line_scopes_are_no_operators_to_the_dashboard(dashboard_profile: Any) -> None:
    names = {row["name"] for row in dashboard_profile.operation_table_by_name["data"]}
    assert not [name for name in names if name.startswith(("@d", "nn.Module")) or ".py(" in name]


def test_the_dashboard_knows_the_steps(dashboard_profile: Any) -> None:
    assert [row[0] for row in dashboard_profile.overview["steps"]["rows"]] == ["2", "3", "4"]


@pytest.mark.filterwarnings("ignore")
def test_hta_parses_it_and_finds_the_steps(trace_path: Path) -> None:
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(
        trace_files={0: str(trace_path)}, trace_dir=str(trace_path.parent), include_last_profiler_step=True
    )
    assert sorted(int(step) for step in analysis.get_profiler_steps()) == [2, 3, 4]


def test_events_have_the_keys_and_types_of_the_trace_event_format(trace: dict[str, Any]) -> None:
    kinds = {"ph": str, "name": str, "pid": (int, str), "tid": (int, str), "ts": (int, float)}
    for event in trace["traceEvents"]:
        for key, kind in kinds.items():
            assert isinstance(event[key], kind), event
        assert isinstance(event.get("args", {}), dict)
        if event["ph"] == "X":
            assert isinstance(event["dur"], (int, float))
            assert event["dur"] >= 0


@pytest.mark.parametrize("category", ["python_line", "python_module"])
def test_scopes_of_a_thread_nest_or_stand_apart(trace: dict[str, Any], category: str) -> None:
    threads = defaultdict(list)
    for event in complete(trace, category):
        start = round(event["ts"] * 1000)
        threads[event["pid"], event["tid"]].append((start, -(start + round(event["dur"] * 1000))))
    assert threads
    for spans in threads.values():
        ends: list[int] = []
        for start, negative_end in sorted(spans):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or -negative_end <= ends[-1]
            ends.append(-negative_end)


def test_every_scope_stands_in_the_table(trace: dict[str, Any]) -> None:
    own = trace["deepscope"]
    for event in complete(trace, "python_line"):
        kind, file, line, name, *_ = own["scopes"][event["args"]["scope"]]
        path = own["files"][file]["path"]
        assert kind == 0
        assert event["name"] == f"{Path(path).name}({line}): {name}"
    for event in complete(trace, "python_module"):
        kind, _, _, name, _, path, python_module, *_ = own["scopes"][event["args"]["scope"]]
        assert (kind, event["name"]) == (1, f"nn.Module: {name}")
        assert (path, python_module) in {
            ("", "recorded"),
            ("first", "torch.nn.modules.linear"),
            ("second", "torch.nn.modules.linear"),
        }


def test_flows_still_join_forward_and_backward(trace: dict[str, Any]) -> None:
    starts = {event["id"] for event in trace["traceEvents"] if event["ph"] == "s"}
    ends = {event["id"] for event in trace["traceEvents"] if event["ph"] == "f"}
    assert starts
    assert starts == ends


def test_nothing_but_the_trace_and_the_account_of_its_run_is_left_in_the_folder(trace_path: Path) -> None:
    assert set(trace_path.parent.iterdir()) == {trace_path, account_path(trace_path)}
