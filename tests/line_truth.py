"""Runs a target program under the line recorder beside an independent witness of the line that each operator ran on.

The witness is a `TorchDispatchMode`: at each operator it walks the Python frames to the innermost one of the target and
notes its `f_lineno`. It puts a span of its own around the operator, so that both accounts stand in one trace.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from deepscope.capture.lines import LineRecord, LineRecorder, UserCode, parse_name
from deepscope.trace.format.span_names import MOMENT_NAME, is_own

TARGETS = Path(__file__).parent / "targets"
WITNESS = "truth:"


@dataclass
class Span:
    """One event of the raw trace, with what it stands in; `line` is None for what is no line scope."""

    name: str
    start_ns: int
    end_ns: int
    thread: Any
    args: dict[str, Any]
    line: tuple[str, int] | None = None
    module: str | None = None
    parent: Span | None = None
    children: list[Span] = field(default_factory=list)

    @property
    def is_operator(self) -> bool:
        return self.line is None and self.module is None and not self.name.startswith(WITNESS) and not is_own(self.name)

    @property
    def lines(self) -> list[tuple[str, int]]:
        """The line scopes that this event stands in, innermost first."""
        return [span.line for span in self.above() if span.line is not None]

    def above(self) -> Iterator[Span]:
        span = self.parent
        while span is not None:
            yield span
            span = span.parent


@dataclass
class Recording:
    spans: list[Span]
    record: LineRecord

    @property
    def witnessed(self) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(WITNESS)]

    @property
    def operators(self) -> list[Span]:
        """Operators that no other operator called, in order of start."""
        return [span for span in self.spans if span.is_operator and not any(up.is_operator for up in span.above())]


class Witness(TorchDispatchMode):
    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        line = frame.f_lineno if frame is not None else 0
        with torch._C._profiler._RecordFunctionFast(f"{WITNESS}{line}"):
            return function(*args, **(kwargs or {}))


def load_target(name: str, folder: Path = TARGETS) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"target_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lengthen_target(name: str, folder: Path, lines: int = 300) -> None:
    """A copy of a target in `folder`, with so many lines more at the start of each of its functions."""
    tree = ast.parse((TARGETS / f"{name}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            declarations = [one for one in node.body if isinstance(one, (ast.Nonlocal, ast.Global))]
            rest = [one for one in node.body if one not in declarations]
            node.body = [*declarations, *ast.parse("_ = 0\n" * lines).body, *rest]
    (folder / f"{name}.py").write_text(ast.unparse(tree))


def everywhere() -> Any:
    """Torch's configuration that records all threads, where this torch has it."""
    try:
        return torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        return None


@contextmanager
def recording(folder: Path, user_code: UserCode, **options: Any) -> Iterator[list[Recording]]:
    """Record the block with lines; the list holds the recording afterwards."""
    done: list[Recording] = []
    recorder = LineRecorder(user_code, **options)
    with profile(activities=[ProfilerActivity.CPU], experimental_config=everywhere()) as torch_profiler:
        recorder.start()
        try:
            yield done
        finally:
            record = recorder.stop()
    path = folder / "raw.json"
    torch_profiler.export_chrome_trace(str(path))
    done.append(Recording(read_spans(path, record), record))


def run_target(name: str, folder: Path, *, with_witness: bool, targets: Path = TARGETS, **options: Any) -> Recording:
    module = load_target(name, targets)
    witness = Witness(str(module.__file__))

    def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with Witness(witness.file):
                return function(*args)

        return call if with_witness else function

    with recording(folder, UserCode.find(root=targets), **options) as done:
        if with_witness:
            with witness:
                module.main(in_thread)
        else:
            module.main(in_thread)
    return done[0]


def read_spans(path: Path, record: LineRecord) -> list[Span]:
    """The CPU events of a raw trace of torch's, nested by time, scopes resolved; in order of thread and start."""
    spans: list[Span] = []
    moments: dict[Any, int] = {}
    events = json.loads(path.read_text())["traceEvents"]
    events = [one for one in events if one.get("ph") == "X" and one.get("cat") in ("cpu_op", "user_annotation")]
    for event in sorted(events, key=lambda one: float(one["ts"])):
        start = round(float(event["ts"]) * 1000)
        if event["name"] == MOMENT_NAME:
            moments[event["tid"]] = start
            continue
        end = start + round(float(event["dur"]) * 1000)
        scope = parse_name(event["name"])
        if scope is None:
            spans.append(Span(event["name"], start, end, event["tid"], event.get("args", {})))
            continue
        for number in scope.scopes:
            row = record.scopes[number]
            if scope.began_ns:
                end = moments[event["tid"]]
                start = end - scope.began_ns
            span = Span(event["name"], start, end, event["tid"], event.get("args", {}))
            if row.kind == 0:
                span.line = (row.file, row.line)
            else:
                span.module = row.path
            spans.append(span)
    spans.sort(key=lambda span: (str(span.thread), span.start_ns, -span.end_ns))
    open_spans: list[Span] = []
    for span in spans:
        while open_spans and (open_spans[-1].thread != span.thread or open_spans[-1].end_ns <= span.start_ns):
            open_spans.pop()
        if open_spans:
            span.parent = open_spans[-1]
            open_spans[-1].children.append(span)
        open_spans.append(span)
    return spans
