"""The lines of captured CUDA graphs, told by torch's own annotations of graphs on a runtime that stands in for CUDA's.

The stand-in answers what `torch/cuda/_graph_annotations.py` of torch 2.13 to 2.15 asks while a stream is captured. A
real capture is recorded by tests/gpu/test_streams.py.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import deepscope
from deepscope.capture.compiled import captures
from deepscope.capture.compiled.captures import CaptureHold
from deepscope.capture.dynamo import PythonFrame
from deepscope.capture.lines import UserCode
from deepscope.trace.read import read_trace

annotations = pytest.importorskip(
    "torch.cuda._graph_annotations", reason=f"torch {torch.__version__} has no annotations of graphs"
)

HERE = Path(__file__)
CAPTURED, EXECUTABLE = 3, 40
"""Numbers of the graph as it is captured, and of its executable form."""


class Runtime:
    """A stream under capture whose nodes follow each other."""

    KERNEL, EMPTY, CONDITIONAL = "kernel", "empty", "conditional"
    TYPES = SimpleNamespace(
        CU_GRAPH_NODE_TYPE_KERNEL=KERNEL,
        CU_GRAPH_NODE_TYPE_MEMCPY="memcpy",
        CU_GRAPH_NODE_TYPE_MEMSET="memset",
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP="memory operations",
        CU_GRAPH_NODE_TYPE_EVENT_RECORD="record",
        CU_GRAPH_NODE_TYPE_WAIT_EVENT="wait",
        CU_GRAPH_NODE_TYPE_HOST="host",
        CU_GRAPH_NODE_TYPE_GRAPH="graph",
        CU_GRAPH_NODE_TYPE_CONDITIONAL=CONDITIONAL,
    )

    def __init__(self) -> None:
        self.is_active = False
        self.kinds: list[str] = []
        self.launch = partial(self.kinds.append, self.KERNEL)
        """No Python of its own, as an operator has none."""
        self.calls = 0
        self.cudaStreamCaptureStatus = SimpleNamespace(cudaStreamCaptureStatusActive="active")
        self.cudaGraphNodeType = SimpleNamespace(cudaGraphNodeTypeKernel=self.KERNEL, cudaGraphNodeTypeMemcpy="memcpy")

    def cudaStream_t(self, init_value: int) -> int:
        return init_value

    def cudaStreamGetCaptureInfo(self, stream: int) -> Any:
        self.calls += 1
        last = [len(self.kinds) - 1] if self.kinds else []
        return ("active" if self.is_active else "none"), 0, "graph", last, [], len(last)

    def cudaGraphGetId(self, graph: Any) -> int:
        return CAPTURED

    def cudaGraphGetRootNodes(self, graph: Any, pNumRootNodes: int = 0) -> Any:
        return ([0] if self.kinds else []), min(len(self.kinds), 1)

    def cudaGraphNodeGetDependentNodes(self, node: int, pNumDependentNodes: int = 0) -> Any:
        following = [node + 1] if node + 1 < len(self.kinds) else []
        return following, [], len(following)

    def cudaGraphNodeGetType(self, node: int) -> str:
        return self.kinds[node]

    def cudaGraphNodeGetToolsId(self, node: int) -> int:
        return CAPTURED << 32 | node

    def cudaGraphExec_t(self, init_value: int) -> int:
        return init_value

    def cudaGraphExecGetId(self, handle: int) -> int:
        return handle


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    runtime = Runtime()

    class Graph:
        """In place of `torch.cuda.graph`."""

        def __init__(self) -> None:
            self.cuda_graph = SimpleNamespace(raw_cuda_graph_exec=lambda: EXECUTABLE)

        def __enter__(self) -> None:
            runtime.is_active = True

        def __exit__(self, *_: object) -> None:
            runtime.is_active = False

    monkeypatch.setattr(torch.version, "cuda", "13.1")
    monkeypatch.setattr(torch.cuda.graphs, "graph", Graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=9))
    monkeypatch.setattr(annotations, "_cuda_runtime", runtime)
    driver = SimpleNamespace(CUgraphNodeType=Runtime.TYPES, cuGraphNodeGetType=runtime.cudaGraphNodeGetType)
    monkeypatch.setattr(annotations, "_cuda_driver", driver, raising=False)
    monkeypatch.setattr(annotations, "_HAS_CUDA_BINDINGS", True)
    for name in ("_check_cuda_bindings", "_check_cuda_bindings_driver"):
        monkeypatch.setattr(annotations, name, lambda answer: answer, raising=False)
    monkeypatch.setattr(annotations, "_tools_id_available", True)
    monkeypatch.setattr(annotations, "_ANNOTATABLE_TYPES", None)
    monkeypatch.setattr(annotations, "_SOURCELESS_NODE_TYPES", None, raising=False)
    monkeypatch.setattr(annotations, "_NESTED_GRAPH_TYPES", None, raising=False)
    monkeypatch.setattr(captures, "_captured", {})
    yield runtime
    assert annotations._pending_scopes == []
    assert not annotations._annotations_enabled


@contextmanager
def held(root: Path = HERE.parent) -> Iterator[None]:
    hold = CaptureHold(UserCode(root))
    yield
    hold.release()


def line(mark: str) -> int:
    (found,) = (
        number
        for number, text in enumerate(HERE.read_text(encoding="utf-8").splitlines(), 1)
        if text.endswith(f"# @{mark}")
    )
    return found


def stacks() -> dict[int, list[tuple[str, int]]]:
    """Node → function and line of its stack."""
    (graph,) = captures.captured_graphs()
    assert graph.graph == EXECUTABLE
    assert all(
        isinstance(frame, PythonFrame) and frame.file == str(HERE) for _, stack in graph.nodes for frame in stack
    )
    return {node: [(frame.function.rpartition(".")[2], frame.line) for frame in stack] for node, stack in graph.nodes}


def inner(cuda: Runtime) -> None:
    cuda.launch()  # @inner
    cuda.launch()  # @inner_second


def outer(cuda: Runtime) -> None:
    with torch.cuda.graphs.graph():  # @with
        cuda.launch()  # @first
        inner(cuda), cuda.launch()  # @both
        cuda.launch(), cuda.kinds.append(Runtime.EMPTY)  # @with_empty
        [cuda.launch() for _ in range(2)]  # @comprehension


def test_each_node_has_the_stack_of_the_line_that_launched_it(cuda: Runtime):
    with held():
        outer(cuda)
    found = stacks()
    assert found[0] == [("outer", line("first"))]
    assert found[1] == [("outer", line("both")), ("inner", line("inner"))]
    assert found[2] == [("outer", line("both")), ("inner", line("inner_second"))]
    assert found[3] == [("outer", line("both"))]
    assert found[4] == [("outer", line("with_empty"))]
    assert 5 not in found  # torch annotates what does something
    assert {node: stack[0] for node, stack in found.items() if node > 5} == dict.fromkeys(
        (6, 7), ("outer", line("comprehension"))
    )


def test_without_a_hold_nothing_is_asked(cuda: Runtime):
    outer(cuda)
    with held():
        pass
    outer(cuda)
    assert (cuda.calls, captures.captured_graphs()) == (0, [])


def test_where_the_driver_cannot_tell_nothing_is_told(cuda: Runtime, monkeypatch):
    monkeypatch.setattr(annotations, "_tools_id_available", False)
    with held():
        outer(cuda)
    assert (cuda.calls, captures.captured_graphs()) == (0, [])


def test_older_bindings_are_no_matter_to_warn_of(cuda: Runtime, monkeypatch, caplog):
    monkeypatch.delattr(Runtime, "cudaGraphNodeGetToolsId")
    monkeypatch.setattr(annotations, "_tools_id_available", None)
    with held():
        outer(cuda)
    assert (cuda.calls, captures.captured_graphs(), caplog.records) == (0, [], [])


def test_hooks_are_gone_behind_the_capture_and_the_hold(cuda: Runtime):
    kind: Any = torch.cuda.graphs.graph
    methods = kind.__enter__, kind.__exit__
    before = sys.gettrace()
    with held(), held():
        outer(cuda)
        assert sys.gettrace() is before
    assert (kind.__enter__, kind.__exit__) == methods
    if sys.version_info >= (3, 12):
        assert "deepscope-capture" not in [sys.monitoring.get_tool(number) for number in range(6)]


@pytest.mark.parametrize("broken", ["cudaStreamGetCaptureInfo", "cudaGraphNodeGetToolsId", "cudaGraphExecGetId"])
def test_what_goes_wrong_does_not_reach_the_capture(cuda: Runtime, monkeypatch, broken):
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(cuda, broken, fail)
    with held():
        outer(cuda)
    assert captures.captured_graphs() == []
    assert len(cuda.kinds) == 8


def test_an_exception_in_the_capture_is_the_users(cuda: Runtime):
    def failing() -> None:
        with torch.cuda.graphs.graph():
            cuda.launch()
            raise ZeroDivisionError

    with held(), pytest.raises(ZeroDivisionError):
        failing()
    assert not annotations._annotations_enabled


def annotate(*, enabled: bool) -> None:
    """As `torch.cuda.graph(enable_annotations=True)` does from torch 2.14 on."""
    if hasattr(annotations, "_set_annotations_enabled"):
        annotations._set_annotations_enabled(enabled)
    elif enabled:
        annotations.enable_annotations()
    else:
        annotations.disable_annotations()


def annotated(cuda: Runtime) -> dict[int, Any]:
    """What the user's own annotations are of a capture."""
    cuda.kinds.clear()
    annotate(enabled=True)
    try:
        with torch.cuda.graphs.graph():
            with annotations.mark_kernels("phase"):
                cuda.launch()
            annotations.resolve_pending_annotations()
        return dict(annotations.get_kernel_annotations())
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            annotations.clear_kernel_annotations()
        annotate(enabled=False)


def test_the_users_own_annotations_stay_theirs(cuda: Runtime):
    alone = annotated(cuda)
    assert list(alone) == [CAPTURED << 32]
    with held():
        assert annotated(cuda) == alone
    assert list(stacks()) == [0]


def test_the_nodes_of_a_body_within_the_graph_are_not_taken_for_its_own(cuda: Runtime, monkeypatch):
    if not hasattr(annotations, "_begin_kernel_scope"):
        pytest.skip(f"torch {torch.__version__} cannot tell the graph of a body from its own")
    with held(), torch.cuda.graphs.graph():
        cuda.launch()
        cuda.kinds.append(Runtime.CONDITIONAL)
        monkeypatch.setattr(cuda, "cudaGraphNodeGetToolsId", lambda node: (CAPTURED + 1) << 32 | node)
        cuda.launch()
    assert list(stacks()) == [0]


def test_a_debugger_is_left_alone_and_only_monitoring_has_room_beside_it(cuda: Runtime):
    def debugger(*_: Any) -> Any:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        with held():
            outer(cuda)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert bool(captures.captured_graphs()) == (sys.version_info >= (3, 12))


def test_captures_go_into_the_traces_that_come_after_them(cuda: Runtime, tmp_path: Path):
    recording = deepscope.profile(tmp_path, root=HERE.parent)
    outer(cuda)
    with recording:
        torch.randn(2)
    code = read_trace(recording.traces[0]).header.compiled
    (graph,) = code.captures
    assert graph.graph == EXECUTABLE
    places = {node: code.places[place] for node, place in graph.nodes}
    assert {node: place.line for node, place in places.items() if place and node < 4} == {
        0: line("first"),
        1: line("inner"),
        2: line("inner_second"),
        3: line("both"),
    }
    place = places[1]
    assert place is not None
    assert place.function == "inner"
    assert not place.library
    caller = code.places[place.caller]
    assert caller is not None
    assert caller.line == line("both")
