"""A device grafted onto a real CPU recording: every leaf operator gets a launch and a kernel of a known duration.

What each line should then have is worked out here in plain Python from the JSON, with nothing of DeepScope's, while the
backward pass still stands on the thread that called it. Only then is it moved to a thread of its own, where a device's
recording would have it, so that the answer does not depend on the joins that are under test.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

__all__ = ["Expected", "graft"]

Event = dict[str, Any]

ENGINE = "autograd::engine::evaluate_function: "
ENGINE_TID = 990_001
ENGINE_NUMBER = 9
"""The logical number (`Fwd thread id`) of autograd's thread, which its nodes' nodes refer to."""
PHASE_OF_KERNEL = 7919  # prime, so that durations do not repeat in step with the model's layers


@dataclass
class Expected:
    """Nanoseconds by (file, line); `None` for what no line owns."""

    self_ns: dict[tuple[str, int] | None, int] = field(default_factory=lambda: defaultdict(int))
    backward_ns: dict[tuple[str, int] | None, int] = field(default_factory=lambda: defaultdict(int))
    total_ns: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    device_ns: int = 0
    kernels: int = 0


class _Nesting:
    """The events of a recording's threads with the chain around each, found with a stack."""

    def __init__(self, document: dict[str, Any]) -> None:
        own = document["deepscope"]
        self.files = [file["path"] for file in own["files"]]
        self.scopes = own["scopes"]
        wanted = {"python_line", "cpu_op"}
        self.events = [e for e in document["traceEvents"] if e.get("ph") == "X" and e.get("cat") in wanted]
        for event in self.events:
            event["_start"] = ns(event["ts"])
            event["_end"] = event["_start"] + ns(event["dur"])
        order = {"python_line": 0, "cpu_op": 1}
        self.events.sort(key=lambda e: (str(e["tid"]), e["_start"], -e["_end"], order[e["cat"]]))
        self.leaves: list[Event] = []
        stack: list[Event] = []
        for event in self.events:
            while stack and (stack[-1]["tid"] != event["tid"] or stack[-1]["_end"] <= event["_start"]):
                stack.pop()
            event["_around"] = list(stack)
            event["_has_operator"] = False
            if event["cat"] == "cpu_op":
                for outer in stack:
                    outer["_has_operator"] = True
            if event["_end"] > event["_start"]:
                stack.append(event)
        self.leaves = [
            e for e in self.events if e["cat"] == "cpu_op" and not e["_has_operator"] and e["_end"] > e["_start"]
        ]
        self.forwards = [e for e in self.events if e["cat"] == "cpu_op" and self._may_be_forward(e)]

    def _may_be_forward(self, event: Event) -> bool:
        name = event["name"].removeprefix(ENGINE)
        is_node = name.rstrip("0123456789").endswith(("Backward", "AccumulateGrad", "GraphRoot", "CopyBackwards"))
        return "Sequence number" in event.get("args", {}) and not event["name"].startswith(ENGINE) and not is_node

    def line(self, event: Event) -> tuple[str, int]:
        _, file, line, *_ = self.scopes[event["args"]["scope"]]
        return self.files[file], line

    def forward_of(self, root: Event) -> Event | None:
        """The latest-started operator before the engine's span with the largest sequence number not above its own."""
        number = root["args"].get("Sequence number")
        if number is None:
            return None
        earlier = [e for e in self.forwards if e["args"]["Sequence number"] <= number and e["_start"] < root["_start"]]
        return max(earlier, key=lambda e: (e["args"]["Sequence number"], e["_start"]), default=None)

    def stack(self, event: Event) -> tuple[tuple[str, int] | None, set[tuple[str, int]]]:
        """The line that owns an event, and all lines of its stack."""
        owner, lines = None, set()
        for outer in reversed([*event["_around"], event]):
            if outer["cat"] == "python_line":
                owner = owner or self.line(outer)
                lines.add(self.line(outer))
            elif outer["name"].startswith(ENGINE):
                forward = self.forward_of(outer)
                if forward is not None:
                    forward_owner, forward_lines = self.stack(forward)
                    owner = owner or forward_owner
                    lines |= forward_lines
        return owner, lines


def ns(microseconds: object) -> int:
    return int(Decimal(str(microseconds)) * 1000)


def us(nanoseconds: int) -> float:
    return float(Decimal(nanoseconds) / 1000)


def graft(document: dict[str, Any], *, engine_thread: bool = True) -> Expected:
    """Adds launches and kernels to a recording's JSON, in place, and says what they should come to.

    Args:
        document: a trace of DeepScope's, recorded on the CPU with one thread of the user's.
        engine_thread: move what autograd's engine ran to a thread of its own, as with a device.
    """
    nesting = _Nesting(document)
    expected = Expected()
    added: list[Event] = []
    free_from = 0
    for number, leaf in enumerate(nesting.leaves):
        duration = 500 + number * PHASE_OF_KERNEL % 3989
        is_backward = any(outer["name"].startswith(ENGINE) for outer in [*leaf["_around"], leaf])
        owner, lines = nesting.stack(leaf)
        expected.self_ns[owner] += duration
        expected.device_ns += duration
        expected.kernels += 1
        if is_backward:
            expected.backward_ns[owner] += duration
        for line in lines:
            expected.total_ns[line] += duration
        start = max(free_from, leaf["_end"])
        free_from = start + duration
        added += _kernel(leaf, number, start, duration)
    if engine_thread:
        _move_engine(document, nesting)
    for event in nesting.events:
        for key in ("_start", "_end", "_around", "_has_operator"):
            del event[key]
    document["traceEvents"] += added
    return expected


def _kernel(leaf: Event, number: int, start: int, duration: int) -> list[Event]:
    correlation = 5_000_000 + number
    launch = {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": leaf["pid"],
        "tid": leaf["tid"],
        "ts": leaf["ts"],
        "dur": 0.001,
        "args": {"correlation": correlation},
    }
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": f"kernel_{leaf['name']}",
        "pid": 0,
        "tid": 7,
        "ts": us(start),
        "dur": us(duration),
        "args": {"correlation": correlation, "device": 0, "stream": 7},
    }
    leaf["_launch"] = launch
    return [launch, kernel]


def _move_engine(document: dict[str, Any], nesting: _Nesting) -> None:
    """Everything below the outermost spans of autograd's engine goes to a thread of its own, arrows and all.

    Nodes made there (by `create_graph=True`) then have that thread for their forward, and say so.
    """
    spans = []
    for event in nesting.events:
        root = next((outer for outer in [event, *reversed(event["_around"])] if outer["name"].startswith(ENGINE)), None)
        if root is not None and event["name"] in (root["name"], root["name"].removeprefix(ENGINE)):
            forward = nesting.forward_of(root)
            if forward is not None and any(outer["name"].startswith(ENGINE) for outer in forward["_around"]):
                event["args"]["Fwd thread id"] = ENGINE_NUMBER
        outermost = event["name"].startswith(ENGINE) and not any(
            outer["name"].startswith(ENGINE) for outer in event["_around"]
        )
        if outermost:
            spans.append((event["tid"], event["_start"], event["_end"]))
        inside = outermost or any(outer["name"].startswith(ENGINE) for outer in event["_around"])
        if inside:
            event["_moves"] = True
    for event in nesting.events:
        launch = event.pop("_launch", None)
        if event.pop("_moves", False):
            event["tid"] = ENGINE_TID
            if launch is not None:
                launch["tid"] = ENGINE_TID
    for arrow in document["traceEvents"]:
        if arrow.get("cat") == "fwdbwd":
            at = ns(arrow["ts"])
            if any(tid == arrow["tid"] and start <= at < end for tid, start, end in spans):
                arrow["tid"] = ENGINE_TID
