"""Modules: which `nn.Module` each event ran in, by DeepScope's module scopes or torch's `nn.Module: …` frames.

In a trace with neither, the regions that `record_function` names stand for them (`DistributedDataParallel.forward`).
The kernels of a CUDA graph's replay ran in the region that `torch.cuda.graph_annotations` marks in the capture.
What Lightning does between the user's lines is in spans of its own (`FrameworkSpans`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, mask_of, of_kind
from deepscope.analysis.ownership.calls import STEP, CallForest, nest
from deepscope.analysis.ownership.owners import Work
from deepscope.trace.arrays import distinct_places, distinct_values, nearest, nearest_to, pick, position_in
from deepscope.trace.communication import is_collective
from deepscope.trace.joins.correlation import launches
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

GRAPH_REGION = "CUDA graph"
"""The class of a region that is known from a CUDA graph's annotations alone."""
_FRAME = re.compile(r"nn\.Module: (.+?)(?:_(\d+))?$")


class Instance(NamedTuple):
    """A single module: several may be of one class."""

    path: str
    """Without recorded paths the class, with the number that torch gives to each module of it (`Linear_3`)."""
    class_name: str
    own_parameters: int = 0
    """Elements of its own parameters; 0 where the trace does not tell."""
    parameters: int = 0
    """The same with those of the modules in it."""


NamedT = TypeVar("NamedT", tuple[str, str], Instance)


@dataclass(frozen=True, slots=True)
class ModuleScopes:
    """Modules and the events that are calls of them."""

    names: list[tuple[str, str]]
    """(path, class) of each; without recorded paths both are the class."""
    nodes: Int64
    """The events, ascending; of a region in a CUDA graph the first of its work in each replay; shape (m,)."""
    module: Int64
    """Index into `names`; shape (m,)."""
    callers: Int64
    """Position in `nodes` of the module call around each; backward work lies in its forward; shape (m,)."""
    callers_on_thread: Int64
    """The same by its own thread alone; shape (m,)."""
    instances: list[Instance]
    """What `--by module` tells apart: by path, else by torch's numbers of the frames."""
    instance: Int64
    """Index into `instances`; shape (m,)."""
    of_event: Int64
    """Position in `nodes` of the innermost module call around each event, -1 for none; shape (n,)."""

    def events_of(self, work: Work) -> Int64:
        """The event whose module each piece of work has: its own in a region of a CUDA graph, else that of its launch;
        -1 where that is not known; shape (w,)."""
        return np.where(self.of_event[work.event] >= 0, work.event, work.node)

    def of_work(self, work: Work) -> Int64:
        """Position in `nodes` of the innermost module call around each piece of work, -1 for none; shape (w,)."""
        return pick(self.of_event, self.events_of(work))


def find_modules(trace: Trace, calls: CallForest) -> ModuleScopes:
    """All calls of modules in a trace."""
    index: dict[tuple[str, str], int] = {}
    module = np.full(len(trace.events), -1, np.int64)
    recorded = of_kind(trace, Kind.MODULE_SCOPE)
    parent, up = calls.parent, calls.up
    if recorded.any():
        table = np.full(len(trace.scopes) + 1, -1, np.int64)
        for scope in distinct(trace.events.scope[recorded], len(trace.scopes)):
            known = trace.scopes[scope]
            table[scope] = index.setdefault((known.path or known.name, known.name), len(index))
        module = np.where(recorded, table[trace.events.scope], -1)
        instances = _recorded(trace, list(index), table)
        instance = module
    else:
        module = _by_name(trace, Kind.PYTHON_FUNCTION, _module_of_frame, index)
        numbered: dict[tuple[str, str], int] = {}
        instance = _by_name(trace, Kind.PYTHON_FUNCTION, _numbered_module_of_frame, numbered)
        instances = [Instance(name, _module_of_frame(f"nn.Module: {name}")) for name, _ in numbered]
        if not index:
            module = _by_name(trace, Kind.ANNOTATION, _region, index)
            parent, up = _calls_of_regions(trace, calls)
            instance, instances = module, [Instance(*name) for name in index]
    names = list(index)
    if (trace.events.region >= 0).any():
        regions = _graph_regions(trace, up)
        module, instance, up = module.copy(), instance.copy(), regions.up
        module[regions.first] = _indexes(names, regions.paths, lambda path, name: (path, name))[regions.region]
        instance[regions.first] = _indexes(instances, regions.paths, Instance)[regions.region]
    nodes = np.flatnonzero(module >= 0)
    if not len(nodes):
        return ModuleScopes([], nodes, nodes, nodes, nodes, [], nodes, module)
    of_event = position_in(nodes, nearest(up, module >= 0), len(module))
    on_thread = position_in(nodes, nearest(parent, module >= 0), len(module)) if calls.bridged else of_event
    return ModuleScopes(
        names=names,
        nodes=nodes,
        module=module[nodes],
        callers=pick(of_event, up[nodes]),
        callers_on_thread=pick(on_thread, parent[nodes]),
        instances=instances,
        instance=instance[nodes],
        of_event=of_event,
    )


def _recorded(trace: Trace, names: list[tuple[str, str]], table: Int64) -> list[Instance]:
    """The recorded modules with their parameters; `table` has the place in `names` of each scope."""
    counts = [(0, 0)] * len(names)
    for scope, place in zip(trace.scopes, table.tolist(), strict=False):
        if place >= 0:
            counts[place] = max(counts[place], (scope.parameters, scope.own_parameters))
    return [Instance(*name, own, whole) for name, (whole, own) in zip(names, counts, strict=True)]


class _GraphRegions(NamedTuple):
    """The regions that annotations name in CUDA graphs; arrays of shape (r,), one row for a region of a replay."""

    paths: list[str]
    first: Int64
    """The first event of its work."""
    region: Int64
    """Index into `paths`."""
    up: Int64
    """The way from each event of the trace, now also from a region's work to its first piece, and from there to the
    region around it by the names (`layers.0` around `layers.0.mlp`), else to the replaying call; shape (n,)."""


def _graph_regions(trace: Trace, up: Int64) -> _GraphRegions:
    events = trace.events
    rows = np.flatnonzero(events.region >= 0)
    strings, region = distinct_places(events.region[rows])
    paths = [trace.strings[one] for one in strings.tolist()]
    launch = launches(trace)[rows]
    rows = rows[order := np.lexsort((events.start_ns[rows], region, launch))]
    key = ((launch + 1) * len(paths) + region)[order]
    begins = np.append(True, key[1:] != key[:-1])
    keys, first, region, launch = key[begins], rows[begins], region[order][begins], launch[order][begins]
    up = up.copy()
    up[rows] = first[np.cumsum(begins) - 1]
    up[first] = launch
    around = _regions_around(paths)
    outer = pick(around, region)
    while (outer >= 0).any():
        wanted = keys - region + outer
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = (outer >= 0) & (keys[at] == wanted)
        up[first[found]] = first[at[found]]
        outer = np.where(found, -1, pick(around, outer))
    return _GraphRegions(paths, first, region, up)


def _regions_around(paths: list[str]) -> Int64:
    """The place of the longest path that each path goes on from, -1 for none."""
    place = {path: i for i, path in enumerate(paths)}
    around = np.full(len(paths), -1, np.int64)
    for i, path in enumerate(paths):
        prefix, dot, _ = path.rpartition(".")
        while dot and around[i] < 0:
            around[i] = place.get(prefix, -1)
            prefix, dot, _ = prefix.rpartition(".")
    return around


def _indexes(known: list[NamedT], paths: list[str], make: Callable[[str, str], NamedT]) -> Int64:
    """The index of each path among the known modules, which get those that are not there."""
    place = {one[0]: i for i, one in reversed(list(enumerate(known)))}
    for path in paths:
        if path not in place:
            place[path] = len(known)
            known.append(make(path, GRAPH_REGION))
    return np.array([place[path] for path in paths], np.int64)


def _calls_of_regions(trace: Trace, calls: CallForest) -> tuple[Int64, Int64]:
    """`parent` and `up` without scopes and frames: a region holds all that starts in it, wherever it began itself."""
    parent = nest(trace, (Kind.ANNOTATION, Kind.OPERATOR, Kind.RUNTIME)).parent
    library = calls.nested.library
    is_library = mask_of(library, len(parent))
    parent[library] = nearest_to(calls.parent[library], calls.parent, ~is_library)
    return parent, np.where(calls.up == calls.parent, parent, calls.up) if calls.bridged else parent


def _by_name(trace: Trace, kind: Kind, judge: Callable[[str], str], index: dict[tuple[str, str], int]) -> Int64:
    """The module that each event of a kind stands for by its name, -1 for none; new ones are added to the index."""
    events = of_kind(trace, kind)
    table = np.full(len(trace.strings) + 1, -1, np.int64)
    for string in distinct(trace.events.name[events], len(trace.strings)):
        name = judge(trace.strings[string])
        if name:
            table[string] = index.setdefault((name, name), len(index))
    return np.where(events, table[trace.events.name], -1)


def _module_of_frame(name: str) -> str:
    match = _FRAME.match(name)
    return match[1] if match else ""


def _numbered_module_of_frame(name: str) -> str:
    return name.removeprefix("nn.Module: ") if _FRAME.match(name) else ""


def _region(name: str) -> str:
    """An annotation that names a part of the program: neither a step nor a collective."""
    return "" if STEP.match(name) or is_collective(name) else name


LIGHTNING = "Lightning"
LOOPS = "loops"
_ACTION = "[pl][profile]"
_DRIVES = re.compile(r"(?:^|[.\]])(?:train_dataloader|val|test|predict|sanity_check)_next$|^run_training_batch$")
"""The line that these run in is one that the framework's loop runs in."""
_NOT_ITS_OWN = re.compile(r"_next$|\.backward$|^backward$")
"""Loading data and the backward pass: the loader's time, and waiting for autograd."""
_CALLBACK = re.compile(r"^\[Callback\](\w+)")
_TORCHS = re.compile(r"^(?:Optimizer\.|enumerate\(DataLoader\)#)")


@dataclass(frozen=True, slots=True)
class FrameworkSpans:
    """Spans directly within runs of the lines that call the framework's loop; arrays of shape (k,)."""

    nodes: Int64
    """The events, ascending."""
    run: Int64
    """The event of the line's run that each lies in."""
    part: Int64
    """What the framework does in it, an index into `parts`; -1 where it is not the framework that works."""
    parts: list[str]
    """`loops`, the first, is also what it does where no span is open."""

    @property
    def hosts(self) -> Int64:
        """The runs of lines that the framework's loop runs in; ascending."""
        return distinct_values(self.run)

    def only(self, chosen: Mask) -> FrameworkSpans:
        """Some of them; `chosen` has shape (k,)."""
        return FrameworkSpans(self.nodes[chosen], self.run[chosen], self.part[chosen], self.parts)


def find_framework(trace: Trace, marks: Mask, parent: Int64) -> FrameworkSpans:
    """The spans of the framework.

    Args:
        trace: any trace; most have none.
        marks: which events stand for lines; shape (n,).
        parent: the event that encloses each one on its thread; shape (n,).
    """
    parts = [LOOPS]
    strings, names = trace.strings, trace.events.name
    of_name = np.full(len(strings) + 1, _NEITHER, np.int64)
    drives = np.zeros(len(strings) + 1, np.bool_)
    annotations = of_kind(trace, Kind.ANNOTATION)
    for index in distinct(names[annotations], len(strings)):
        of_name[index], drives[index] = _understood(strings[index], parts)
    nodes = np.flatnonzero(annotations)
    nodes = nodes[of_name[names[nodes]] != _NEITHER]
    if not drives[names[nodes]].any():
        return FrameworkSpans(nodes[:0], nodes[:0], nodes[:0], parts)
    run = nearest_to(parent[nodes], parent, marks | of_kind(trace, Kind.OPERATOR, Kind.RUNTIME))
    direct = (run >= 0) & marks[run]
    nodes, run = nodes[direct], run[direct]
    hosts = mask_of(run[drives[names[nodes]]], len(names))
    kept = hosts[run]
    return FrameworkSpans(nodes[kept], run[kept], of_name[names[nodes[kept]]], parts)


_NEITHER = -2


def _understood(name: str, parts: list[str]) -> tuple[int, bool]:
    """The part that a span's name stands for, added to `parts` where it is new, and whether it drives a loop."""
    if not name.startswith(_ACTION):
        return (-1 if _TORCHS.match(name) else _NEITHER), False
    action = name[len(_ACTION) :]
    drives = _DRIVES.search(action) is not None
    if _NOT_ITS_OWN.search(action):
        return -1, drives
    part = _part(action)
    if part not in parts:
        parts.append(part)
    return parts.index(part), drives


def _part(action: str) -> str:
    if found := _CALLBACK.match(action):
        return f"callback {found[1]}"
    if action.startswith("[Logger]"):
        return "logging"
    return "checkpoints" if action.endswith("save_checkpoint") else LOOPS
