"""The numbers of every line in plain Python, straight from their definitions: slow, and with nothing of DeepScope's.

What is open at an instant is found by looking at every event there is; there are no trees, no columns and no sweeps, so
that a mistake in the library's own joins has no twin here. For small traces of one device type with line scopes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

__all__ = ["Oracle", "Place"]

Place = tuple[str, int]
"""File and line."""
Span = tuple[int, int]

ENGINE = "autograd::engine::evaluate_function: "
CPU = {"user_annotation": 0, "python_line": 2, "python_module": 3, "cpu_op": 4, "cuda_runtime": 5}
"""Categories, and which comes first where two cover the same time."""
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
SYNC = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")


@dataclass(eq=False)
class Event:
    raw: dict[str, Any]
    start: int
    end: int
    order: int
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def category(self) -> str:
        return self.raw["cat"]

    @property
    def name(self) -> str:
        return self.raw["name"]

    @property
    def thread(self) -> tuple[Any, Any]:
        return self.raw["pid"], self.raw["tid"]

    @property
    def is_root(self) -> bool:
        return self.category == "cpu_op" and self.name.startswith(ENGINE)

    @property
    def is_step(self) -> bool:
        return self.name.startswith("ProfilerStep#")

    @property
    def entered(self) -> tuple[int, int, int, int]:
        return self.start, -(self.end - self.start), CPU[self.category], self.order


@dataclass
class Stack:
    """The line that owns something, and all lines on its stack."""

    owner: Place | None
    lines: set[Place]


class Oracle:
    """Everything about one trace, given as the JSON document; `step` restricts it to one step."""

    def __init__(self, document: dict[str, Any], step: int | None = None) -> None:
        own = document["deepscope"]
        self.files = [file["path"] for file in own["files"]]
        self.scopes = own["scopes"]
        self.events: list[Event] = []
        self.memory: list[tuple[int, tuple[Any, Any], dict[str, Any]]] = []
        self.arrows: dict[Any, dict[str, tuple[int, tuple[Any, Any]]]] = defaultdict(dict)
        for raw in document["traceEvents"]:
            if raw["ph"] == "X":
                start = _ns(raw["ts"])
                event = Event(raw, start, start + _ns(raw["dur"]), len(self.events), raw.get("args", {}))
                self.events.append(event)
            elif raw["ph"] == "i":
                self.memory.append((_ns(raw["ts"]), (raw["pid"], raw["tid"]), raw["args"]))
            elif raw["ph"] in "sf":
                self.arrows[raw["id"]][raw["ph"]] = _ns(raw["ts"]), (raw["pid"], raw["tid"])
        self.cpu = [event for event in self.events if event.category in CPU and not event.is_step]
        self.lines = [event for event in self.cpu if event.category == "python_line"]
        self.work = [event for event in self.events if event.category in WORK]
        self.steps = sorted((e for e in self.events if e.is_step), key=lambda e: e.start)
        self.whole = step is None
        chosen = [e for e in self.steps if self.whole or e.name == f"ProfilerStep#{step}"]
        self.window: list[Span] = [(e.start, e.end) for e in chosen]
        self._by_thread: dict[Any, list[Event]] = defaultdict(list)
        for event in self.cpu:
            self._by_thread[event.thread].append(event)
        self._stacks: dict[int, Stack] = {}

    # --- what is open

    def place(self, event: Event) -> Place:
        row = self.scopes[event.args["scope"]]
        return self.files[row[1]], row[2]

    def open_at(self, thread: Any, at: int, before: Event | None = None) -> list[Event]:
        """What is open on a thread at an instant, innermost first; before an event: what entered earlier than it."""
        found = [
            e
            for e in self._by_thread[thread]
            if e.start <= at < e.end and (before is None or (e.entered < before.entered and e is not before))
        ]
        return sorted(found, key=lambda e: e.entered, reverse=True)

    @cached_property
    def training_thread(self) -> Any:
        return self.steps[0].thread

    # --- backward

    @cached_property
    def forward_threads(self) -> dict[int, Any]:
        """`Fwd thread id` → thread, by the arrows."""
        found = {}
        for ends in self.arrows.values():
            (_, tail), (at, head) = ends["s"], ends["f"]
            root = next((e for e in self.open_at(head, at) if e.is_root), None)
            if root is not None:
                found[root.args["Fwd thread id"]] = tail
        return found

    def partner(self, root: Event) -> Event | None:
        number = root.args.get("Sequence number")
        if number is None:
            return None
        thread = self.forward_threads[root.args["Fwd thread id"]]
        candidates = [
            e
            for e in self._by_thread[thread]
            if e.category == "cpu_op"
            and not e.is_root
            and not e.name.endswith("Backward0")
            and e.args.get("Sequence number", number + 1) <= number
            and e.start < root.start
        ]
        return max(candidates, key=lambda e: (e.args["Sequence number"], e.entered), default=None)

    def calling_thread(self, root: Event) -> Any:
        return self.forward_threads.get(root.args.get("Fwd thread id"), self.training_thread)

    def stack(self, event: Event | None) -> Stack:
        """The stack of an event, itself included."""
        if event is None:
            return Stack(None, set())
        if event.order not in self._stacks:
            chain = [event, *self.open_at(event.thread, event.start, before=event)]
            self._stacks[event.order] = self._stack_of(chain)
        return self._stacks[event.order]

    def _stack_of(self, chain: list[Event]) -> Stack:
        """Of events from the inside outwards."""
        owner, lines = None, set()
        for depth, event in enumerate(chain):
            if event.category == "python_line":
                owner = owner or self.place(event)
                lines.add(self.place(event))
            elif event.is_root:
                around = chain[depth + 1 :] or self.open_at(self.calling_thread(event), event.start)
                forward, caller = self.stack(self.partner(event)), self._stack_of(around)
                return Stack(owner or forward.owner or caller.owner, lines | forward.lines | caller.lines)
        return Stack(owner, lines)

    def is_backward(self, event: Event) -> bool:
        return any(e.is_root for e in [event, *self.open_at(event.thread, event.start, before=event)])

    # --- the numbers, by place; None for no line

    def launch(self, work: Event) -> Event:
        (call,) = [
            e
            for e in self.cpu
            if e.category == "cuda_runtime" and e.args.get("correlation") == work.args["correlation"]
        ]
        return call

    def in_extent(self, at: int) -> bool:
        return self.whole or any(start <= at < end for start, end in self.window)

    def clipped(self, start: int, end: int) -> int:
        if self.whole:
            return end - start
        return sum(max(0, min(end, last) - max(start, first)) for first, last in self.window)

    def numbers(self) -> dict[Place | None, dict[str, int]]:
        """All numbers that are not zero."""
        result: dict[Place | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._add_work(result)
        self._add_cpu(result)
        self._add_waits(result)
        self._add_idle(result)
        self._add_memory(result)
        return {place: {k: v for k, v in row.items() if v} for place, row in result.items()}

    def _add_work(self, result: Any) -> None:
        for work in self.work:
            call = self.launch(work)
            if not self.in_extent(call.start):
                continue
            stack, duration = self.stack(call), work.end - work.start
            row = result[stack.owner]
            row["self_device_ns"] += duration
            row["backward_device_ns"] += duration * self.is_backward(call)
            row["launches"] += work.category == "kernel"
            for place in stack.lines or {None}:
                result[place]["total_device_ns"] += duration
            if work.category == "gpu_memcpy":
                direction = {"HtoD": "h2d", "DtoH": "d2h", "DtoD": "d2d"}[work.name.split()[1]]
                row[f"{direction}_ns"] += duration
                row[f"{direction}_bytes"] += work.args["bytes"]
            if "nccl" in work.name:
                others = [
                    (e.start, e.end)
                    for e in self.work
                    if e.category == "kernel" and "nccl" not in e.name and e.args["device"] == work.args["device"]
                ]
                row["collective_ns"] += duration
                row["collective_exposed_ns"] += sum(
                    end - start for start, end in _without([(work.start, work.end)], others)
                )

    def _add_cpu(self, result: Any) -> None:
        for scope in self.lines:
            around = [e for e in self.open_at(scope.thread, scope.start, before=scope) if e.category == "python_line"]
            place = self.place(scope)
            duration = self.clipped(scope.start, scope.end)
            result[place]["calls"] += self.in_extent(scope.start)
            result[place]["self_cpu_ns"] += duration
            if around:
                result[self.place(around[0])]["self_cpu_ns"] -= duration
            if place not in {self.place(e) for e in around}:
                result[place]["total_cpu_ns"] += duration
            inside = [
                (e.start, e.end)
                for e in self._by_thread[scope.thread]
                if e.category in ("python_line", "cpu_op", "cuda_runtime") and e.entered > scope.entered
            ]
            result[place]["python_ns"] += sum(
                self.clipped(start, end) for start, end in _without([(scope.start, scope.end)], inside)
            )
        for operator in self.cpu:
            if operator.category != "cpu_op":
                continue
            outwards = self.open_at(operator.thread, operator.start, before=operator)
            operators = [e for e in outwards if e.category == "cpu_op"]
            if not operators and not any(e.category == "python_line" for e in outwards):
                duration = self.clipped(operator.start, operator.end)
                result[None]["self_cpu_ns"] += duration
                result[None]["total_cpu_ns"] += duration
            closest = next((e for e in outwards if e.category in ("cpu_op", "python_line")), None)
            own = not operators or (closest is not None and closest.category == "python_line")
            if own and not operator.is_root and self.in_extent(operator.start):
                result[self.stack(operator).owner]["operators"] += 1

    def _add_waits(self, result: Any) -> None:
        spans: dict[Any, list[Span]] = defaultdict(list)
        blocking = {e.args.get("correlation") for e in self.work if "DtoH (Device -> Pageable)" in e.name}
        for event in self.cpu:
            is_call = event.category == "cuda_runtime" and (
                event.name in SYNC or event.args.get("correlation") in blocking
            )
            if is_call or event.name == "aten::_local_scalar_dense":
                spans[self.stack(event).owner, event.thread].append((event.start, event.end))
        for (owner, _), found in spans.items():
            result[owner]["wait_ns"] += sum(self.clipped(start, end) for start, end in _union(found))

    def _add_idle(self, result: Any) -> None:
        for device in {work.args["device"] for work in self.work}:
            busy = [(work.start, work.end) for work in self.work if work.args["device"] == device]
            for start, end in _without(self.window, busy):
                cuts = {start, end} | {t for e in self.lines for t in (e.start, e.end) if start < t < end}
                ordered = sorted(cuts)
                for first, last in pairwise(ordered):
                    opened = [e for e in self.open_at(self.training_thread, first) if e.category == "python_line"]
                    result[self.place(opened[0]) if opened else None]["idle_ns"] += last - first

    def _add_memory(self, result: Any) -> None:
        for at, thread, args in self.memory:
            if args["Device Type"] == 0 or not self.in_extent(at):
                continue
            owner = self._stack_of(self.open_at(thread, at)).owner
            result[owner]["bytes_allocated" if args["Bytes"] > 0 else "bytes_freed"] += abs(args["Bytes"])


def _ns(microseconds: object) -> int:
    return int(Decimal(str(microseconds)) * 1000)


def _union(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _without(spans: list[Span], holes: list[Span]) -> list[Span]:
    """What the holes leave of the spans' union."""
    left = []
    for start, end in _union(spans):
        at = start
        for first, last in _union(holes):
            if last <= at or first >= end:
                continue
            if first > at:
                left.append((at, first))
            at = max(at, last)
        if at < end:
            left.append((at, end))
    return left
