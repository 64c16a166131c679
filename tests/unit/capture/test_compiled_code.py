"""What compiled graphs say of themselves, as the header's tables have it; the level that has them say it."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import deepscope
from deepscope.capture.compiled import graphs
from deepscope.capture.compiled.graphs import CompiledRecord, GraphWatch, SeenGraph
from deepscope.capture.compiled.provenance import compiled_code, frames_of, function_at
from deepscope.capture.dynamo import Broken, Compiled, PythonFrame
from deepscope.capture.program import record_steps
from deepscope.lightning import DeepProfiler
from deepscope.trace.format.process_tables import CompiledCode, GraphBreak, Recompilation, SourcePlace

MODEL = "/p/model.py"


def stack(*lines: int, file: str = MODEL, note: str = "") -> str:
    """A stack's text as torch has it on 3.11 and later."""
    return "".join(f'  File "{file}", line {line}, in f\n    y = g(x)\n        ^^^^\n' for line in lines) + note


def code_of(*graphs: SeenGraph, **more: Any) -> CompiledCode:
    return compiled_code(
        CompiledRecord(list(graphs), **more), lambda frame, caller: SourcePlace(0, frame.line, frame.function, caller)
    )


def sources(code: CompiledCode) -> list[tuple[str, dict[int, int]]]:
    """Kernels with their nodes by line."""
    rows = code.places
    return [
        (kernel.name, {row.line: nodes for place, nodes in kernel.sources if (row := rows[place]) is not None})
        for graph in code.graphs
        for kernel in graph.kernels
        if kernel is not None
    ]


def graph(stacks: Any, *, nodes: Any = None, text: str = "", code: str = "") -> SeenGraph:
    return SeenGraph("f1", json.dumps(stacks), json.dumps({"cppCodeToPost": nodes or {}}), text, code)


GRAPH_TEXT = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4]"):
        # File: /p/model.py:3 in f, code: y = x.sin() * 2
        sin: "f32[4][1]cpu" = torch.ops.aten.sin.default(primals_1)
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(sin, 2);  sin = None

        # No stacktrace found for following nodes
        clone: "f32[4][1]cpu" = torch.ops.aten.clone.default(mul)

        # File: /p/model.py:4 in f, code: return y + 1
        add: "f32[4][1]cpu" = torch.ops.aten.add.Tensor(clone, 1);  mul = None
        return (add,)
"""


def test_lines_count_by_their_nodes_in_the_graph() -> None:
    one = graph(
        {"cpp_fused_0:1": [stack(4), stack(3)]},
        nodes={"cpp_fused_0:1": ["add", "mul", "sin", "clone"]},
        text=GRAPH_TEXT,
    )
    assert sources(code_of(one)) == [("cpp_fused_0", {4: 1, 3: 2})]


def test_nodes_of_triton_kernels_stand_in_the_comments_above_them() -> None:
    code = """
# kernel path: /tmp/x.py
# Topologically Sorted Source Nodes: [y], Original ATen: [aten.sin]
# Graph fragment:
#   %arg0_1 : Tensor "f32[4]" = PlaceHolder[target=arg0_1]
#   %sin : Tensor "f32[4]"[num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%arg0_1,))
#   %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sin, 2), kwargs = {})
#   return %mul
triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''
"""
    one = graph({"triton_poi_fused_0:7": [stack(3), stack(4)]}, text=GRAPH_TEXT, code=code)
    assert sources(code_of(one)) == [("triton_poi_fused_0", {3: 2, 4: 1})]


def test_where_no_nodes_are_known_each_expression_is_one() -> None:
    again = stack(3, note="Gradient addition node due to multiple use of tensor around:")
    assert sources(code_of(graph({"cpp_fused_0:1": [stack(3), again, stack(4)]}))) == [("cpp_fused_0", {3: 2, 4: 1})]


def test_calls_of_one_function_from_several_lines_part_its_nodes() -> None:
    one = graph({"k:1": [stack(10, 3), stack(11, 3)]}, nodes={"k:1": ["sin", "mul"]}, text=GRAPH_TEXT)
    code = code_of(one)
    assert [nodes for _, nodes in code.graphs[0].kernels[0].sources] == [1, 1]  # type: ignore[union-attr]
    assert {(row.line, row.caller) for row in code.places if row is not None} == {(10, -1), (3, 0), (11, -1), (3, 2)}


def test_kernels_stand_in_the_order_of_their_calls_and_those_of_other_graphs_are_left_out() -> None:
    """Torch collects the stacks of all backward graphs that it compiles one after the other."""
    stacks = {"mine:9": [stack(1)], "other:1": [stack(2)], "mine:10": [stack(3)]}
    assert [name for name, _ in sources(code_of(graph(stacks)))] == ["other", "mine", "mine"]
    code = "        # [Provenance debug handles] mine:9\n        # [Provenance debug handles] mine:10\n"
    assert sources(code_of(graph(stacks, code=code))) == [("mine", {1: 1}), ("mine", {3: 1})]


@pytest.mark.parametrize("stacks", ["", "null", "x", "[]", '{"k:1": 7}', '{"k:1": [7, null]}', '{"": [""]}', "{}"])
def test_what_is_no_stack_is_no_source(stacks: str) -> None:
    assert all(not kernel for _, kernel in sources(code_of(SeenGraph("f", stacks, stacks, stacks, stacks))))


def test_a_graph_that_was_compiled_without_is_not_told() -> None:
    assert code_of(SeenGraph("f", "", "", "", "")).graphs == []


def test_frames_are_read_from_a_stacks_text_outermost_first() -> None:
    assert frames_of(stack(1, 2)) == (PythonFrame(MODEL, 1, "f"), PythonFrame(MODEL, 2, "f"))
    assert frames_of("nothing") == ()
    assert len(frames_of(stack(*range(1, 99)))) == 50


def test_breaks_and_recompilations_name_places() -> None:
    code = code_of(
        breaks=[Broken((PythonFrame(MODEL, 3, "f"), PythonFrame(MODEL, 9, "g")), "why")],
        recompilations=[
            Compiled(PythonFrame(MODEL, 2, "f"), "size", 70, began_ns=began_ns) for began_ns in (999, 1000)
        ],
        since_ns=1000,
    )
    assert code.breaks == [GraphBreak(1, "why")]
    assert code.recompilations == [Recompilation(2, "size", 70, earlier=True), Recompilation(2, "size", 70)]
    assert code.places[1] == SourcePlace(0, 9, "g", 0)


def test_a_line_is_of_the_innermost_function_of_that_name(tmp_path: Any) -> None:
    path = tmp_path / "code.py"
    path.write_text(
        "class Net:\n    @one\n    @two\n    def forward(self):\n        x = 1\n"
        "        def forward():\n            return x\n"
    )
    assert function_at(str(path), 5, "forward") == ("Net.forward", 2)
    assert function_at(str(path), 7, "forward") == ("Net.forward.<locals>.forward", 6)
    assert function_at(str(path), 5, "other") == ("other", 0)
    assert function_at(str(tmp_path / "none.py"), 5, "f") == ("f", 0)


def test_each_window_looks_up_functions_in_the_files_of_its_time(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"

    def row(frame: PythonFrame, caller: int) -> SourcePlace:
        return SourcePlace(0, frame.line, function_at(str(path), frame.line, frame.function)[0], caller)

    broken = CompiledRecord(breaks=[Broken((PythonFrame(str(path), 3, "f"),), "")])
    names = []
    for text in ("class A:\n    def f(x):\n        return x\n", "class B:\n    def f(x):\n        return x\n"):
        path.write_text(text)
        names += [place.function for place in compiled_code(broken, row).places]
    assert names == ["A.f", "B.f"]


class Inductor(types.ModuleType):
    """Stands in for `torch._inductor.output_code`."""

    class CompiledFxGraph:
        def __init__(self, key: str | None) -> None:
            self._fx_graph_cache_key = key
            self.inductor_provenance_stack_traces_str = "{}"
            self.names: list[str | None] = []

        def __call__(self, inputs: list[int]) -> int:
            self.names.append(self._fx_graph_cache_key)
            if not inputs:
                raise KeyError("the user's")
            return sum(inputs)


@pytest.fixture
def inductor(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = Inductor("torch._inductor.output_code")
    monkeypatch.setitem(sys.modules, "torch._inductor.output_code", module)
    return module


def test_graphs_that_run_are_seen_and_nothing_stays_behind(inductor: Any) -> None:
    before = inductor.CompiledFxGraph.__call__
    idle, ran = inductor.CompiledFxGraph("idle"), inductor.CompiledFxGraph("ran")
    watch = GraphWatch()
    watch.start()
    assert [ran([1, 2]), ran([3])] == [3, 3]
    assert [one.key for one in watch.stop().graphs] == ["ran"]
    assert inductor.CompiledFxGraph.__call__ is before
    assert watch.stop().graphs == []
    assert idle.names == []


def test_a_graph_without_a_key_bears_one_while_it_runs(inductor: Any) -> None:
    one, other = inductor.CompiledFxGraph(None), inductor.CompiledFxGraph(None)
    watch = GraphWatch()
    watch.start()
    one([1]), other([1]), one([1])
    with pytest.raises(KeyError, match="the user's"):
        one([])
    keys = [graph.key for graph in watch.stop().graphs]
    assert len(set(keys)) == 2
    assert (one.names, other.names) == ([keys[0]] * 3, [keys[1]])
    assert one._fx_graph_cache_key is None


def test_graphs_of_a_window_that_began_before_inductor_was_there_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._inductor.output_code", raising=False)
    watch = GraphWatch()
    watch.start()
    module = Inductor("torch._inductor.output_code")
    module.CompiledFxGraph = type("CompiledFxGraph", (), dict(vars(Inductor.CompiledFxGraph)))  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, "torch._inductor.output_code", module)
    graph = module.CompiledFxGraph("fresh")
    graph([1])
    assert [one.key for one in watch.stop().graphs] == ["fresh"]


class Trace:
    provenance_tracking_level = 0


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Any:
    gc.collect()  # recordings of other tests
    module = types.ModuleType("torch._inductor.config")
    module.trace = Trace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._inductor.config", module)
    monkeypatch.setattr(graphs, "_holds", 0)
    monkeypatch.delenv("INDUCTOR_PROVENANCE", raising=False)
    return module


def test_the_level_is_held_as_long_as_anybody_holds_it(config: Any) -> None:
    first, second = graphs.ProvenanceHold(), graphs.ProvenanceHold()
    assert config.trace.provenance_tracking_level == graphs.LEVEL
    first.release()
    first.release()
    assert config.trace.provenance_tracking_level == graphs.LEVEL
    second.release()
    assert config.trace.provenance_tracking_level == 0
    first.take()
    assert config.trace.provenance_tracking_level == graphs.LEVEL
    del first
    gc.collect()
    assert config.trace.provenance_tracking_level == 0


@pytest.mark.parametrize("own", [1, 2, 3])
def test_a_level_of_the_users_own_is_left_alone(own: int, config: Any) -> None:
    config.trace.provenance_tracking_level = own
    hold = graphs.ProvenanceHold()
    assert config.trace.provenance_tracking_level == own
    hold.release()
    assert config.trace.provenance_tracking_level == own


def test_a_torch_without_a_level_is_left_alone(config: Any) -> None:
    config.trace = object()
    graphs.ProvenanceHold().release()
    assert not hasattr(config.trace, "provenance_tracking_level")


def test_before_inductor_is_imported_the_environment_says_the_level(
    config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch._inductor.config")
    hold = graphs.ProvenanceHold()
    assert os.environ["INDUCTOR_PROVENANCE"] == "2"
    hold.release()
    assert "INDUCTOR_PROVENANCE" not in os.environ
    monkeypatch.setenv("INDUCTOR_PROVENANCE", "1")
    graphs.ProvenanceHold().release()
    assert os.environ["INDUCTOR_PROVENANCE"] == "1"


def test_who_records_holds_the_level_from_the_beginning(config: Any, tmp_path: Any) -> None:
    recording = deepscope.profile(tmp_path)
    assert config.trace.provenance_tracking_level == graphs.LEVEL
    with recording:
        assert config.trace.provenance_tracking_level == graphs.LEVEL
    assert config.trace.provenance_tracking_level == 0
    profiler = DeepProfiler(tmp_path)
    assert config.trace.provenance_tracking_level == graphs.LEVEL
    profiler.setup("fit")
    assert config.trace.provenance_tracking_level == graphs.LEVEL
    profiler.teardown("fit")
    assert config.trace.provenance_tracking_level == 0
    with record_steps(tmp_path):
        assert config.trace.provenance_tracking_level == graphs.LEVEL
    assert config.trace.provenance_tracking_level == 0
    kept = [deepscope.profile(tmp_path, compiled_lines=False), DeepProfiler(tmp_path, compiled_lines=False)]
    assert config.trace.provenance_tracking_level == 0
    assert kept


def test_constructing_a_recording_imports_no_inductor_and_no_dynamo() -> None:
    code = (
        "import sys, torch; before = set(sys.modules); import deepscope; deepscope.profile('x'); "
        "print([n for n in set(sys.modules) - before if n.startswith(('torch._inductor', 'torch._dynamo'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"
