"""A step of a real rank as a program for many: what runs on the CPU, what it launches, and the lines around it."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np

__all__ = [
    "COMPUTE", "IDENTIFIERS", "LOADER_LINE", "PACK_LINE", "PROCESS", "RING", "ROOT", "STRIDE", "TRAIN", "TRANSFER_NS",
    "WIRE", "DeviceEvent", "Event", "HostEvent", "Program", "Source", "make_program", "read_source",
]  # fmt: skip

Event = dict[str, Any]

_HOST_SPEED = 0.25
"""The CPU's time in the source is multiplied by it, so that the device is what a step waits for, as in training."""
_LONGEST_CALL_NS = 20_000
"""A call of the runtime that takes longer waits for something; it is cut to that."""
TRANSFER_NS = 600_000
"""Of each collective and message: what most of the source's all-reduces take."""
_PREPARE_NS, _LOADER_NS, _MESSAGE_NS, _PAUSE_NS = 150_000, 400_000, 40_000, 30_000
COMPUTE, RING, WIRE = 7, 24, 28
"""Streams: kernels, collectives, messages."""
PROCESS = 4242
_REPEATED = "LinearWithGradAccumulationAndAsyncCommunication"
STRIDE = 1_000_000
"""Between the identifiers of a step and the next one's."""
IDENTIFIERS = ("correlation", "External id", "Ev Idx")
ROOT = "/home/user/megatron"


@dataclass
class HostEvent:
    """An event of the CPU in the program's own time."""

    event: Event
    start: float
    end: float
    work: bool = False
    """Of the operators that a rank with more work calls."""
    message: Literal["", "recv", "send"] = ""


@dataclass
class DeviceEvent:
    """A kernel or copy; `at` is its launch in the program's own time."""

    event: Event
    at: float
    duration: float
    stream: int
    group: Literal["", "tp", "dp", "pp"] = ""
    work: bool = False
    message: Literal["", "recv", "send"] = ""


@dataclass
class Program:
    """A step for all ranks."""

    hosts: list[HostEvent] = field(default_factory=list)
    devices: list[DeviceEvent] = field(default_factory=list)
    length: float = 0.0
    cuts: set[float] = field(default_factory=set)
    loader: float = 0.0
    prepare: float = 0.0
    """Moments within the loader and the line of Python, where time can be put in."""
    work: tuple[float, float] = (0.0, 0.0)
    syncs: dict[float, float] = field(default_factory=dict)
    """Start → end of each wait for the device."""
    scopes: list[list[Any]] = field(default_factory=list)
    work_line: int = 0


TRAIN = [
    "import torch",
    "from model import forward",
    "",
    "",
    "def prepare(batch):",
    "    return pack_tokens(batch)",
    "",
    "",
    "def train(loader, model):",
    "    for batch in loader:",
    "        batch = prepare(batch)",
    "        hidden = receive_from_stage_before()",
    "        hidden = forward(model, hidden, batch)",
    "        send_to_stage_behind(hidden)",
    "        torch.cuda.synchronize()",
]
LOADER_LINE, _PREPARE_LINE, PACK_LINE, _RECEIVE_LINE, _FORWARD_LINE, _SEND_LINE, _SYNC_LINE = (
    10,
    11,
    6,
    12,
    13,
    14,
    15,
)


def _ns(microseconds: object) -> int:
    return int(Decimal(str(microseconds)) * 1000)


@dataclass
class Source:
    """The part of a trace that is used: the CPU's events of one thread, squeezed, and its kernels."""

    document: dict[str, Any]
    hosts: list[HostEvent]
    devices: list[DeviceEvent]


def read_source(path: Path, collectives: int) -> Source:
    document = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    events = [event for event in document["traceEvents"] if event.get("ph") == "X"]
    step = next(event for event in events if str(event["name"]).startswith("ProfilerStep#"))
    start, end = _ns(step["ts"]), _ns(step["ts"]) + _ns(step["dur"])
    thread = [e for e in events if (e["pid"], e["tid"]) == (step["pid"], step["tid"]) and start <= _ns(e["ts"]) < end]
    thread = [e for e in thread if not e["name"].startswith(("ProfilerStep#", "enumerate(DataLoader)"))]
    device = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")}
    squeeze = _squeezed(thread, start)
    hosts = [HostEvent(e, squeeze(_ns(e["ts"]) - start), squeeze(_ns(e["ts"]) + _ns(e["dur"]) - start)) for e in thread]
    hosts.sort(key=lambda host: (host.start, -host.end))
    devices = []
    for host in hosts:
        found = device.get(host.event.get("args", {}).get("correlation")) if _is_runtime(host.event) else None
        if found is not None:
            comm = "nccl" in found["name"]
            duration = TRANSFER_NS if comm else _ns(found["dur"])
            devices.append(DeviceEvent(found, host.start, duration, RING if comm else COMPUTE, "tp" if comm else ""))
    rings = [one.at for one in devices if one.group][:collectives]
    tops = list(_tops(hosts))
    last = next(top for top in tops if top.end > rings[-1])
    first = next(top for top in tops if _is_operator(top.event))
    hosts = [host for host in hosts if first.start <= host.start <= last.end]
    devices = [one for one in devices if first.start <= one.at <= last.end]
    for moved in hosts:
        moved.start, moved.end = moved.start - first.start, moved.end - first.start
    for one in devices:
        one.at -= first.start
    for number, one in enumerate([one for one in devices if one.group]):
        if number % 8 == 7:
            one.group = "dp"
    return Source(document, hosts, devices)


def _is_runtime(event: Event) -> bool:
    return event["cat"] in ("cuda_runtime", "cuda_driver")


def _is_operator(event: Event) -> bool:
    return bool(event["cat"] == "cpu_op")


def _squeezed(thread: list[Event], start: int) -> Callable[[int], float]:
    """The source's time → the program's: calls that wait are cut, then all is as fast as `_HOST_SPEED` says."""
    old, new, cut = [0], [0.0], 0.0
    for event in sorted((e for e in thread if _is_runtime(e)), key=lambda e: _ns(e["ts"])):
        begin, length = _ns(event["ts"]) - start, _ns(event["dur"])
        if length > _LONGEST_CALL_NS and begin >= old[-1]:
            old += [begin, begin + length]
            new.append(begin - cut)
            cut += length - _LONGEST_CALL_NS
            new.append(begin + length - cut)
    old.append(10**12)
    new.append(10**12 - cut)
    return lambda at: float(np.interp(at, old, new)) * _HOST_SPEED


def _tops(hosts: list[HostEvent]) -> Iterator[HostEvent]:
    """The events in no other one."""
    end = -1.0
    for host in hosts:
        if host.start >= end:
            end = host.end
            yield host


# The program


def make_program(source: Source, repeats: int) -> tuple[Program, list[str]]:
    """A step, and the lines of `model.py`."""
    program, at = Program(), _PAUSE_NS * 1.0
    model = ["def forward(model, hidden, batch):"]
    lines: dict[str, int] = {}
    scope = _Scopes(program)
    identifiers = iter(range(STRIDE // 2, STRIDE))

    def annotation(name: str, start: float, end: float) -> None:
        args = {"External id": next(identifiers), "Ev Idx": 0}
        program.hosts.append(HostEvent({"cat": "user_annotation", "name": name, "args": args}, start, end))

    # The loader, then a line of Python alone.
    scope.train("train", LOADER_LINE, at, at + _LOADER_NS)
    annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 5_000, at + _LOADER_NS - 5_000)
    program.loader = at + _LOADER_NS / 2
    at += _LOADER_NS
    scope.train("train", _PREPARE_LINE, at, at + _PREPARE_NS)
    scope.train("prepare", PACK_LINE, at + 2_000, at + _PREPARE_NS - 2_000)
    program.prepare = at + _PREPARE_NS / 2
    at += _PREPARE_NS
    at = _message(program, scope, identifiers, "recv", at) + 2_000
    forward_start = at
    work_from = next(
        top for top in _tops(source.hosts) if top.event["name"] == _REPEATED and top.start > source.hosts[-1].start / 3
    )
    at = _copy(program, source, -1.0, work_from.end, at, 0, work=False)
    program.work = (at, at + repeats * (work_from.end - work_from.start + _PAUSE_NS))
    for number in range(repeats):
        at = _copy(program, source, work_from.start, work_from.end, at, number + 1, work=True) + _PAUSE_NS
    at = _copy(program, source, work_from.end, float("inf"), at, 0, work=False)
    # The lines of the model: neighbours of one name are one run of a line.
    tops = [top for top in _tops(sorted(program.hosts, key=lambda h: (h.start, -h.end))) if top.start >= forward_start]
    tops = [top for top in tops if not top.message]
    runs: list[list[HostEvent]] = []
    for top in tops:
        same = runs and runs[-1][-1].event["name"] == top.event["name"] and runs[-1][-1].work == top.work
        if same and not top.work:
            runs[-1].append(top)
        else:
            runs.append([top])
    scope.train("train", _FORWARD_LINE, forward_start - 1_000, at + 1_000)
    for run, (begin, end) in zip(runs, _bounds(runs), strict=True):
        name = run[0].event["name"]
        word = re.sub(r"\W+", "_", name.removeprefix("aten::")).strip("_").lower()[:40] or "call"
        if word not in lines:
            model.append(f"    hidden = {word}(hidden)")
            lines[word] = len(model)
        scope.model(lines[word], begin, end, work=run[0].work)
        if name == _REPEATED:
            program.work_line = lines[word]
    at = _message(program, scope, identifiers, "send", at + _PAUSE_NS)
    scope.train("train", _SYNC_LINE, at, at + 20_000)
    args = {"cbid": 165, "correlation": next(identifiers)}
    program.hosts.append(
        HostEvent({"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "args": args}, at + 4_000, at + 14_000)
    )
    program.length = at + 20_000 + _PAUSE_NS
    for host in program.hosts:
        if host.event["cat"] == "cuda_runtime" and host.event["name"] in (
            "cudaStreamSynchronize",
            "cudaDeviceSynchronize",
        ):
            program.syncs[host.start] = host.end
    program.cuts = {0.0, program.length, program.loader, program.prepare, *program.work, *program.syncs}
    program.cuts |= {*program.syncs.values(), *(run[0].start for run in runs)}
    program.hosts.sort(key=lambda host: (host.start, -host.end))
    program.devices.sort(key=lambda one: one.at)
    return program, model


def _bounds(runs: list[list[HostEvent]]) -> Iterator[tuple[float, float]]:
    """Where the line of each run begins and ends: within the gaps between them, half a microsecond away at most."""
    before = [500.0] + [(behind[0].start - run[-1].end) / 3 for run, behind in itertools.pairwise(runs)]
    for run, left, right in zip(runs, before, [*before[1:], 500.0], strict=True):
        yield run[0].start - min(left, 500.0), run[-1].end + min(right, 500.0)


class _Scopes:
    """Runs of lines, and the table of them."""

    def __init__(self, program: Program) -> None:
        self._program, self._numbers = program, dict[tuple[int, int, str], int]()

    def train(self, function: str, line: int, start: float, end: float, message: Any = "") -> None:
        self._add(0, line, function, 9 if function == "train" else 5, start, end, message=message)

    def model(self, line: int, start: float, end: float, *, work: bool) -> None:
        self._add(1, line, "forward", 1, start, end, work=work)

    def _add(self, file: int, line: int, function: str, first: int, start: float, end: float, **more: Any) -> None:
        key = (file, line, function)
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._program.scopes):
            self._program.scopes.append([0, file, line, function, first, "", ""])
        name = f"{'model.py' if file else 'train.py'}({line}): {function}"
        event = {"cat": "python_line", "name": name, "args": {"scope": number}}
        self._program.hosts.append(HostEvent(event, start, end, **more))


def _copy(program: Program, source: Source, start: float, end: float, at: float, number: int, *, work: bool) -> float:
    """What begins in [start, end), again, from `at` on; where it ends."""
    begin = max(start, 0.0)
    shift = number * 20_000
    last = begin

    def renamed(event: Event) -> Event:
        args = {key: value + shift if key in IDENTIFIERS else value for key, value in event.get("args", {}).items()}
        return {**event, "args": args}

    for host in source.hosts:
        if start <= host.start < end:
            program.hosts.append(
                HostEvent(renamed(host.event), host.start - begin + at, host.end - begin + at, work=work)
            )
            last = max(last, host.end)
    for one in source.devices:
        if start <= one.at < end:
            event = renamed(one.event)
            program.devices.append(DeviceEvent(event, one.at - begin + at, one.duration, one.stream, one.group, work))
    return (last if end == float("inf") else end) - begin + at


def _message(
    program: Program, scope: _Scopes, identifiers: Iterator[int], kind: Literal["recv", "send"], at: float
) -> float:
    """An activation from the stage before, or to the one behind: the calls, the launch and the kernel."""
    end = at + _MESSAGE_NS
    scope.train("train", _RECEIVE_LINE if kind == "recv" else _SEND_LINE, at, end, message=kind)
    shapes = {"Input Dims": [[2048, 4, 4096]], "Input type": ["c10::Half"]}
    names = {"recv": ("c10d::recv_", "nccl:recv"), "send": ("c10d::send", "nccl:send")}[kind]
    calls = [("cpu_op", names[0]), ("cpu_op", "record_param_comms"), ("user_annotation", names[1])]
    for depth, (category, name) in enumerate(calls, 1):
        args = {"External id": next(identifiers), **shapes, "Ev Idx": 0}
        event = {"cat": category, "name": name, "args": args}
        program.hosts.append(HostEvent(event, at + 2_000 * depth, end - 2_000 * depth, message=kind))
    # As torch does around NCCL: its stream waits for the compute stream, which waits for a message that is received.
    waits = [(10_000, "cudaEventRecord"), (12_000, "cudaStreamWaitEvent"), (23_000, "cudaEventRecord")]
    for later, name in [*waits, *([(36_500, "cudaStreamWaitEvent")] if kind == "recv" else [])]:
        event = {"cat": "cuda_runtime", "name": name, "args": {"correlation": next(identifiers)}}
        program.hosts.append(HostEvent(event, at + later, at + later + 1_000, message=kind))
    correlation = next(identifiers)
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": correlation, "cbid": 211}}
    program.hosts.append(HostEvent(launch, at + 15_000, at + 21_000, message=kind))
    args = {"correlation": correlation, "device": 0, "stream": WIRE, "context": 1}
    kernel = {"cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", "args": args}
    program.devices.append(DeviceEvent(kernel, at + 15_000, TRANSFER_NS, WIRE, "pp", message=kind))
    return end
