"""At which lines the kernels of CUDA graphs were captured, where torch and the driver can tell the nodes of a graph.

A replay launches a whole graph with one call, so that its kernels tell nothing of the lines that they come from. While
a graph is captured, `torch.cuda._graph_annotations` is asked for the nodes that each stretch between two lines adds (it
needs `cuda.bindings` and a driver of CUDA 13.1; without them it finds none). In a trace the replayed kernels bear their
nodes' ids (`graph node id`).
"""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, FrameType
from typing import Any, NamedTuple

from deepscope.capture.dynamo import PythonFrame
from deepscope.capture.lines import UserCode

_GRAPHS, _ANNOTATIONS = "torch.cuda.graphs", "torch.cuda._graph_annotations"
_MOST = 200_000
"""Nodes that are remembered."""


class Captured(NamedTuple):
    """A graph that was captured."""

    graph: int
    """The number of its executable form: the upper half of its nodes' ids."""
    nodes: list[tuple[int, tuple[PythonFrame, ...]]]
    """The number of each node, the lower half of its id, and the stack that it was captured at, outermost first."""


_captured: dict[int, Captured] = {}
"""By number: captures come before the windows that their replays lie in."""


def captured_graphs() -> list[Captured]:
    """The graphs that were captured in this process under a hold, as long as they are not too many."""
    return list(_captured.values())


class _Stretches:
    """The nodes that a capture adds from `open` to `close`, again and again, as torch tells them; from 2.14 on.

    Nothing of it is published, so that annotations of the user's stay as they are.
    """

    def __init__(self, annotations: Any) -> None:
        self._annotations = annotations
        self._scope: Any = None
        self._graph: int | None = None
        """The number of the graph that the first one began in."""

    def open(self) -> None:
        scope = self._scope = self._annotations._begin_kernel_scope()
        if self._graph is None and scope is not None:
            self._graph = int(self._annotations._graph_id(scope.graph))

    def close(self) -> list[int]:
        """The nodes; none of a body within the graph (`torch.cond`), which are numbered on their own."""
        scope, self._scope = self._scope, None
        if scope is None:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are such bodies
            found = self._annotations._end_kernel_scope(scope)
        return [node & 0xFFFFFFFF for node in found if node >> 32 == self._graph]

    def end(self) -> None:
        """The last one is closed."""


class _Marks:
    """The same in torch 2.13, by `mark_kernels` alone: it publishes what it is given, which is taken out again."""

    def __init__(self, annotations: Any) -> None:
        self._annotations = annotations
        self._mark: Any = None
        self._name: dict[str, Any] = {}
        self._was_enabled = annotations._annotations_enabled
        self._pending = len(annotations._pending_scopes)
        annotations.enable_annotations()

    def open(self) -> None:
        self._name = {"deepscope": True}
        self._mark = self._annotations.mark_kernels(self._name)
        self._mark.__enter__()

    def close(self) -> list[int]:
        mark, self._mark = self._mark, None
        if mark is None:
            return []
        mark.__exit__(None, None, None)
        pending = self._annotations._pending_scopes
        is_ours = pending and pending[-1][0] is self._name
        return [node & 0xFFFFFFFF for node in pending.pop()[1]] if is_ours else []

    def end(self) -> None:
        if not self._was_enabled:
            self._annotations.disable_annotations()
            del self._annotations._pending_scopes[self._pending :]


class Capture:
    """One capture, from `begin` to `end`. Nothing that goes wrong here reaches it."""

    def __init__(self, annotations: Any, code: UserCode) -> None:
        self._annotations = annotations
        self._follower = LineFollower(code, self._moved)
        self._nodes: dict[int, tuple[PythonFrame, ...]] = {}
        self._stack: tuple[PythonFrame, ...] | None = None
        """Of the stretch that is open."""
        self._stretches: _Stretches | _Marks | None = None

    def begin(self, base: FrameType) -> None:
        """The capture has begun in the frame `base`."""
        with suppress(Exception):
            if not _tells_nodes(self._annotations):
                return
            kind = _Stretches if hasattr(self._annotations, "_begin_kernel_scope") else _Marks
            self._stretches = kind(self._annotations)
            if not self._follower.start(base):
                self._close()

    def close(self) -> None:
        """The capture is about to end."""
        with suppress(Exception):
            self._follower.stop()
            self._close()
            if self._stretches is not None:
                self._stretches.end()

    def end(self, graph: Any) -> Captured | None:
        """The capture has ended; what it told, None where that is nothing."""
        with suppress(Exception):
            if self._nodes:
                runtime, checked = self._annotations._cuda_runtime, self._annotations._check_cuda_bindings
                handle = runtime.cudaGraphExec_t(init_value=graph.raw_cuda_graph_exec())
                return Captured(int(checked(runtime.cudaGraphExecGetId(handle))), list(self._nodes.items()))
        return None

    def _moved(self, stack: tuple[PythonFrame, ...]) -> None:
        with suppress(Exception):
            if stack != self._stack:
                self._close()
                if self._stretches is not None:
                    self._stretches.open()
                    self._stack = stack

    def _close(self) -> None:
        """The nodes since the last line are that line's."""
        stack, self._stack = self._stack, None
        if stack is not None and self._stretches is not None:
            for node in self._stretches.close():
                self._nodes.setdefault(node, stack)


def _tells_nodes(annotations: Any) -> bool:
    """Whether `cuda.bindings` and the driver tell nodes; torch itself would warn of older bindings."""
    has_call = hasattr(getattr(annotations, "_cuda_runtime", None), "cudaGraphNodeGetToolsId")
    return has_call and not annotations._is_tools_id_unavailable()


class CaptureHold:
    """Has captures from `take` to `release` watched for the lines of some user code; takes at once.

    Several may be held. One that is dropped without `release` is released then.
    """

    def __init__(self, code: UserCode) -> None:
        self._code = code
        self._end: Any = None
        self.take()

    def take(self) -> None:
        """Hold, unless this is held already, or torch has no graphs with annotations."""
        if (self._end is None or not self._end.alive) and _can_annotate():
            kind = sys.modules[_GRAPHS].graph
            self._end = weakref.finalize(self, _released, kind, self._code)
            self._end.atexit = False
            _taken(kind, self._code)

    def release(self) -> None:
        """Hold no longer; safe to call twice."""
        if self._end is not None:
            self._end()


def _can_annotate() -> bool:
    """Whether torch is here, is made for CUDA, and has annotations of graphs; they are imported as a capture begins."""
    torch: Any = sys.modules.get("torch")
    is_for_cuda = getattr(getattr(torch, "version", None), "cuda", None) is not None
    return _GRAPHS in sys.modules and is_for_cuda and find_spec(_ANNOTATIONS) is not None


_holds: list[UserCode] = []
_originals: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}


def _taken(kind: type, code: UserCode) -> None:
    _holds.append(code)
    if kind not in _originals:
        _originals[kind] = kind.__enter__, kind.__exit__  # type: ignore[attr-defined]
        kind.__enter__, kind.__exit__ = _watched(*_originals[kind])  # type: ignore[attr-defined]


def _released(kind: type, code: UserCode) -> None:
    _holds.remove(code)
    if _holds or kind not in _originals:
        return
    enter, leave = _originals.pop(kind)
    for name, original in (("__enter__", enter), ("__exit__", leave)):
        if getattr(getattr(kind, name), "__wrapped__", None) is original:
            setattr(kind, name, original)


def _watched(enter: Callable[..., Any], leave: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`torch.cuda.graph`'s methods with a watch around the capture."""

    @functools.wraps(enter)
    def watched_enter(self: Any) -> Any:
        result = enter(self)
        with suppress(Exception):
            if _holds:
                self._deepscope_capture = capture = Capture(import_module(_ANNOTATIONS), _holds[-1])
                capture.begin(sys._getframe(1))
        return result

    @functools.wraps(leave)
    def watched_leave(self: Any, *error: Any) -> Any:
        capture = self.__dict__.pop("_deepscope_capture", None)
        if capture is not None:
            capture.close()
        result = leave(self, *error)
        if capture is not None:
            _remember(capture.end(self.cuda_graph))
        return result

    return watched_enter, watched_leave


def _remember(found: Captured | None) -> None:
    if found is not None and sum(len(one.nodes) for one in _captured.values()) + len(found.nodes) <= _MOST:
        _captured[found.graph] = found


_monitoring: Any = getattr(sys, "monitoring", None)
_IDS = (3, 4, 2, 1)
"""Tool ids to try; recordings take 4 first."""
_DEEPEST = 50

Moved = Callable[[tuple[PythonFrame, ...]], None]


class LineFollower:
    """Tells `moved` the stack of user code, outermost first, each time that the thread comes to another of its lines.

    The stack begins with the frame that `start` is given. `moved` must not raise. It costs much, and is meant for what
    happens once.
    """

    def __init__(self, code: UserCode, moved: Moved) -> None:
        self._code = code
        self._moved = moved
        self._thread = 0
        self._base: FrameType | None = None
        self._tool: int | None = None
        self._is_tracing = False
        self._before: Any = None
        """The trace function of the frame that it began with."""

    def start(self, base: FrameType) -> bool:
        """Follow from here on; whether that can be done beside whoever else follows lines."""
        self._thread, self._base = get_ident(), base
        found = self._monitor() if _monitoring is not None else self._trace()
        if found:
            self._moved(self._stack(base))
        return found

    def stop(self) -> None:
        """Leave nothing behind; safe to call twice."""
        tool, self._tool = self._tool, None
        if tool is not None:
            _monitoring.set_events(tool, 0)
            for event in self._callbacks():
                _monitoring.register_callback(tool, event, None)
            _monitoring.free_tool_id(tool)
            _monitoring.restart_events()
        if self._is_tracing:
            self._is_tracing = False
            sys.settrace(None)
            if self._base is not None:
                self._base.f_trace = self._before
        self._base = self._before = None

    def _stack(self, frame: FrameType | None) -> tuple[PythonFrame, ...]:
        """The frames of user code from the base to `frame`; () for one that the base did not call."""
        found: list[PythonFrame] = []
        while frame is not None:
            code = frame.f_code
            if len(found) < _DEEPEST and self._code.owns(code.co_filename):
                name = getattr(code, "co_qualname", code.co_name)
                found.append(PythonFrame(code.co_filename, frame.f_lineno or code.co_firstlineno, name))
            if frame is self._base:
                return tuple(reversed(found))
            frame = frame.f_back
        return ()

    def _tell(self, frame: FrameType | None) -> None:
        with suppress(Exception):  # it would reach the user's code
            if stack := self._stack(frame):
                self._moved(stack)

    def _monitor(self) -> bool:
        self._tool = next((number for number in _IDS if _monitoring.get_tool(number) is None), None)
        if self._tool is None:
            return False
        _monitoring.use_tool_id(self._tool, "deepscope-capture")
        _monitoring.restart_events()
        callbacks = self._callbacks()
        for event, callback in callbacks.items():
            _monitoring.register_callback(self._tool, event, callback)
        _monitoring.set_events(self._tool, sum(callbacks))
        return True

    def _callbacks(self) -> dict[int, Callable[..., Any]]:
        events = _monitoring.events
        ends = (events.PY_RETURN, events.PY_YIELD)
        return {events.LINE: self._on_line, **dict.fromkeys(ends, self._on_end), events.PY_UNWIND: self._on_unwind}

    def _on_line(self, code: CodeType, _line: int) -> Any:
        if not self._code.owns(code.co_filename):
            return _monitoring.DISABLE
        if get_ident() == self._thread:
            self._tell(sys._getframe(1))
        return None

    def _on_end(self, code: CodeType, _offset: int, _value: Any) -> Any:
        if not self._code.owns(code.co_filename):
            return _monitoring.DISABLE
        if get_ident() == self._thread:
            self._tell(sys._getframe(1).f_back)
        return None

    def _on_unwind(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if get_ident() == self._thread and self._code.owns(code.co_filename):
            self._tell(sys._getframe(1).f_back)

    def _trace(self) -> bool:
        if sys.gettrace() is not None:
            return False
        self._is_tracing = True
        if self._base is not None and self._code.owns(self._base.f_code.co_filename):
            self._before, self._base.f_trace = self._base.f_trace, self._traced
        sys.settrace(self._on_call)
        return True

    def _on_call(self, frame: FrameType, _event: str, _value: Any) -> Any:
        return self._traced if self._code.owns(frame.f_code.co_filename) else None

    def _traced(self, frame: FrameType, event: str, _value: Any) -> Any:
        if get_ident() == self._thread:
            self._tell(frame.f_back if event == "return" else frame)
        return self._traced
