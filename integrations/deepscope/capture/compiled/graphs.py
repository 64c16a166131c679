"""Which of torch.compile's graphs run in a window, and the level at which they keep their lines.

The calls of graphs are watched from the window's start to its end. Inductor's provenance level is 0 by default: it
forgets which lines a kernel was made from. Level 2 keeps the stack of each kernel's nodes; generated code is the same
but for comments. The level is part of the key of inductor's cache, so that a program's first run with it compiles once
more. It is held as long as there is a recording to come or under way, and put back then. Nothing here imports inductor,
which takes seconds.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from deepscope.capture.compiled.captures import Captured, captured_graphs
from deepscope.capture.dynamo import Broken, Compiled, graph_breaks, hide_modules, recompilations
from deepscope.capture.process_hooks.signals import comes_from_handler

_MODULE = "torch._inductor.output_code"
_MOST = 2_000
"""Graphs of a window that are remembered."""


class SeenGraph(NamedTuple):
    """What a graph says of itself; "" for what it does not tell."""

    key: str
    """What its calls bear in their event's name."""
    stacks: str
    """JSON: kernel, a colon and the number of the call → texts of stacks."""
    nodes: str
    """JSON: under `cppCodeToPost` the same keys → the names of the nodes that were fused."""
    graph: str
    """The graph in readable form, with the place of each node."""
    code: str
    """The generated code."""


@dataclass(frozen=True)
class CompiledRecord:
    """What there was of compiled code in a window."""

    graphs: list[SeenGraph] = field(default_factory=list)
    """The graphs that ran."""
    breaks: list[Broken] = field(default_factory=list)
    """The graph breaks that were met so far, before the window too."""
    recompilations: list[Compiled] = field(default_factory=list)
    """Those so far."""
    since_ns: int = 0
    """The begin of the window, since the epoch."""
    captures: list[Captured] = field(default_factory=list)
    """The CUDA graphs that were captured so far, before the window too."""


class GraphWatch:
    """Remembers each graph that is called from `start` to `stop`.

    Nothing that goes wrong here reaches the call. A graph without a key (the cache is off, or does not take it) bears
    one while it is called, since the event would not tell it from others.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Any, str]] = {}
        """By identity: the graph, which is kept alive so that its identity stays its own, and its key."""
        self._kind: Any = None
        self._original: Callable[..., Any] | None = None
        self._is_late = False
        """Inductor was not imported when the window began."""
        self._since_ns = 0

    def start(self) -> None:
        """Watch from here on; where inductor is not imported yet, from the next `look` on."""
        self._since_ns = time.time_ns()
        self._is_late = _MODULE not in sys.modules
        self.look()

    def look(self) -> None:
        """Begin to watch if inductor was imported since."""
        kind = getattr(sys.modules.get(_MODULE), "CompiledFxGraph", None)
        if not callable(kind) or self._original is not None:
            return
        original: Callable[..., Any] = kind.__call__
        hide_modules([sys.modules[__name__]])
        note = self._note

        @functools.wraps(original)
        def watched(graph: Any, *args: Any, **kwargs: Any) -> Any:
            name = note(graph)
            if not name:
                return original(graph, *args, **kwargs)
            graph._fx_graph_cache_key = name
            try:
                return original(graph, *args, **kwargs)
            finally:
                graph._fx_graph_cache_key = None

        self._kind, self._original = kind, original
        kind.__call__ = watched

    def stop(self) -> CompiledRecord:
        """Watch no longer; what there was."""
        kind, original = self._kind, self._original
        self._kind = self._original = None
        if kind is not None and getattr(kind.__call__, "__wrapped__", None) is original:
            kind.__call__ = original
        if self._is_late:
            self._add_living()
        seen, self._seen = self._seen, {}
        graphs = [_describe_graph(graph, key) for graph, key in seen.values()]
        return CompiledRecord(
            graphs, graph_breaks(), recompilations(), since_ns=self._since_ns, captures=captured_graphs()
        )

    def _note(self, graph: Any) -> str:
        """Remembers a graph that is called; the name to call it by where it has none of its own, else ""."""
        try:
            found = self._seen.get(id(graph))
            if found is None:
                found = self._remember(graph)
            return found[1] if getattr(graph, "_fx_graph_cache_key", "") is None else ""
        except Exception as error:
            if comes_from_handler(error):
                raise
            return ""  # nothing of ours may end the user's call

    def _remember(self, graph: Any) -> tuple[Any, str]:
        if len(self._seen) >= _MOST:
            return graph, ""
        key = getattr(graph, "_fx_graph_cache_key", None)
        found = graph, key if isinstance(key, str) else f"deepscope-{len(self._seen)}"
        self._seen[id(graph)] = found
        return found

    def _add_living(self) -> None:
        """The graphs that were made in a window that began before inductor was imported."""
        kind = getattr(sys.modules.get(_MODULE), "CompiledFxGraph", None)
        if kind is None:
            return
        for found in gc.get_referrers(kind):
            has_key = type(found) is kind and getattr(found, "_fx_graph_cache_key", None) is not None
            if has_key and id(found) not in self._seen:
                self._remember(found)


def _describe_graph(graph: Any, key: str) -> SeenGraph:
    names = (
        "inductor_provenance_stack_traces_str",
        "inductor_provenance_mapping_str",
        "inductor_post_grad_graph_str",
        "source_code",
    )
    texts = [getattr(graph, name, None) for name in names]
    return SeenGraph(key, *(text if isinstance(text, str) else "" for text in texts))


LEVEL = 2
"""Inductor's "basic". Level 1 keeps the nodes' whole history, too, and takes longer to compile."""

_VARIABLE = "INDUCTOR_PROVENANCE"
_DEBUG = "TORCH_COMPILE_DEBUG"
_CONFIG = "torch._inductor.config"
_OPTION = "trace.provenance_tracking_level"

_holds = 0
_own_variable = False
"""Whether the environment's variable is ours."""
_own_level = False
"""Whether the level in inductor's configuration is ours."""


class ProvenanceHold:
    """Has graphs that are compiled from `take` to `release` know their lines; takes at once.

    Several may be held, and a user's own choice of a level is left alone. One that is dropped without `release` is
    released then.
    """

    def __init__(self) -> None:
        self._end: Any = None
        self.take()

    def take(self) -> None:
        """Hold, unless this is held already."""
        if self._end is None or not self._end.alive:
            self._end = weakref.finalize(self, _released)
            self._end.atexit = False
            _taken()

    def release(self) -> None:
        """Hold no longer; safe to call twice."""
        self._end()


def _taken() -> None:
    global _holds, _own_variable, _own_level
    _holds += 1
    config = sys.modules.get(_CONFIG)
    if config is not None:
        if _level(config) == 0:
            _set_level(config, LEVEL)
            _own_level = True
    elif not _own_variable and _VARIABLE not in os.environ and _DEBUG not in os.environ:
        os.environ[_VARIABLE] = str(LEVEL)
        _own_variable = True


def _released() -> None:
    global _holds, _own_variable, _own_level
    _holds -= 1
    if _holds:
        return
    config = sys.modules.get(_CONFIG)
    if config is not None and (_own_level or _own_variable) and _level(config) == LEVEL:
        _set_level(config, 0)
    if _own_variable and os.environ.get(_VARIABLE) == str(LEVEL):
        del os.environ[_VARIABLE]
    _own_variable = _own_level = False


def _level(config: Any) -> int | None:
    """The level now; None where this torch has none (before 2.9)."""
    return getattr(getattr(config, "trace", None), "provenance_tracking_level", None)


def _set_level(config: Any, level: int) -> None:
    """Sets it for all threads: an assignment holds for one (autograd compiles backward graphs on a thread of its own).

    Inductor keeps what stands in the code, or in the environment, apart from what was assigned.
    """
    entry: Any = getattr(config, "_config", {}).get(_OPTION)
    if hasattr(entry, "default"):
        entry.default = level
    if _level(config) != level:
        config.trace.provenance_tracking_level = level
