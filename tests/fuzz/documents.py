"""Mutations of a trace that is still JSON: its events, their fields and arguments, and the header."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fuzz.values import nasty_value

__all__ = ["mutate_document"]

Document = dict[str, Any]
Mutation = Callable[[random.Random, Document], None]

_NAMES = [
    "ProfilerStep#99999999999999999999", "ProfilerStep#9223372036854775807", "ProfilerStep#0", "ProfilerStep#-1",
    "ProfilerStep#\u0663", "ProfilerStep#1", "ProfilerStep#00001", "[memory]",
    "autograd::engine::evaluate_function: MmBackward0", "MmBackward0", "aten::mm", "aten::_local_scalar_dense",
    "cudaStreamSynchronize", "cudaLaunchKernel", "Memcpy HtoD (Pinned -> Device)", "ncclDevKernel_AllReduce",
    "nn.Module: Linear_0", "a.py(99999999999999999999): f", "a.py(-3): f", "a.py(0): f", "<built-in method x>",
    "Torch-Compiled Region: 0/0", "CompiledFunctionBackward", "Optimizer.step#SGD.step",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Iteration Start: PyTorch Profiler",
    "Record Window End", "Enqueue", "Dequeue@x", "process_name", "thread_name", "@ds:1", "@ds:99999999999999999999",
]  # fmt: skip
_CATEGORIES = [
    "cpu_op", "user_annotation", "python_function", "python_line", "python_module", "cuda_runtime", "cuda_driver",
    "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "fwdbwd", "ac2g", "cpu_instant_event",
    "overhead", "Trace", "Operator", "Kernel", "Memcpy", "Runtime", "HostToDevice", "xpu_runtime", "mtia_ccp_events",
    "privateuse1_driver", "",
]  # fmt: skip
_FIELDS = [
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args",
]  # fmt: skip
_ARGUMENTS = [
    "correlation", "External id", "external id",
    "Sequence number", "Fwd thread id", "device", "stream", "bytes", "Call stack", "Input Dims",
    "Input dims", "Input type", "Concrete Inputs", "scope", "connection_id", "correlation_id", "Stream Id", "size",
    "Addr", "Bytes", "Total Allocated", "Device Type", "Device Id", "name", "entries",
]  # fmt: skip
_METADATA = [
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName", "host_name",
    "displayTimeUnit", "record_shapes", "trace_id", "deepscope",
]  # fmt: skip


def mutate_document(dice: random.Random, document: Document) -> list[str]:
    """Some mutations at random, in place; returns what was done."""
    done = []
    for _ in range(dice.choice([1, 1, 1, 2, 2, 3, 5, 20])):
        mutation = dice.choice(_MUTATIONS)
        mutation(dice, document)
        done.append(mutation.__name__.strip("_"))
    return done


def _event(dice: random.Random, document: Document) -> dict[str, Any]:
    events = document["traceEvents"]
    found = dice.choice(events) if isinstance(events, list) and events else {}
    return found if isinstance(found, dict) else {}


def _a_field_of_an_event(dice: random.Random, document: Document) -> None:
    _event(dice, document)[dice.choice(_FIELDS)] = nasty_value(dice)


def _a_field_of_many_events(dice: random.Random, document: Document) -> None:
    field, value = dice.choice(_FIELDS), nasty_value(dice)
    for _ in range(dice.randrange(1, 60)):
        _event(dice, document)[field] = value


def _a_field_left_out(dice: random.Random, document: Document) -> None:
    _event(dice, document).pop(dice.choice(_FIELDS), None)


def _an_argument(dice: random.Random, document: Document) -> None:
    event = _event(dice, document)
    args = event.get("args")
    if not isinstance(args, dict):
        args = event["args"] = {}
    own = [*args] if args and dice.random() < 0.7 else _ARGUMENTS
    args[dice.choice(own)] = nasty_value(dice)


def _an_argument_of_many_events(dice: random.Random, document: Document) -> None:
    name, value = dice.choice(_ARGUMENTS), nasty_value(dice)
    for _ in range(dice.randrange(1, 60)):
        args = _event(dice, document).get("args")
        if isinstance(args, dict):
            args[name] = value


def _a_name(dice: random.Random, document: Document) -> None:
    _event(dice, document)["name"] = dice.choice(_NAMES)


def _a_category(dice: random.Random, document: Document) -> None:
    for _ in range(dice.choice([1, 1, 30])):
        _event(dice, document)["cat"] = dice.choice(_CATEGORIES)


def _a_phase(dice: random.Random, document: Document) -> None:
    for _ in range(dice.choice([1, 1, 30])):
        _event(dice, document)["ph"] = dice.choice(
            ["X", "B", "E", "i", "I", "s", "f", "t", "C", "M", "b", "e", "P", "", "XX"]
        )


def _a_time_moved(dice: random.Random, document: Document) -> None:
    by = dice.choice([-1, 1]) * dice.choice([0.001, 1, 1000, 2**20, 2**43, 10**15, 2**52, 2**53, 2**62 // 1000])
    for _ in range(dice.choice([1, 1, 10, 300])):
        event = _event(dice, document)
        field = dice.choice(["ts", "dur"])
        if isinstance(event.get(field), (int, float)) and abs(event[field]) < 2**1000:  # floats hold no more
            event[field] += by


def _a_time_scaled(dice: random.Random, document: Document) -> None:
    for event in document["traceEvents"] if isinstance(document["traceEvents"], list) else []:
        if isinstance(event, dict) and isinstance(event.get("dur"), (int, float)) and dice.random() < 0.5:
            event["dur"] *= dice.choice([0, -1, 2, 10**3, 10**6, 10**9])


def _a_thread_moved(dice: random.Random, document: Document) -> None:
    for _ in range(dice.choice([1, 10, 300])):
        event, other = _event(dice, document), _event(dice, document)
        event["tid"], event["pid"] = other.get("tid"), other.get("pid")


def _values_exchanged(dice: random.Random, document: Document) -> None:
    event, other, field = _event(dice, document), _event(dice, document), dice.choice(_FIELDS)
    if field in event and field in other:
        event[field], other[field] = other[field], event[field]


def _an_event_that_is_none(dice: random.Random, document: Document) -> None:
    events = document["traceEvents"]
    if isinstance(events, list):
        events.insert(dice.randrange(len(events) + 1), nasty_value(dice))


def _an_event_again(dice: random.Random, document: Document) -> None:
    events = document["traceEvents"]
    if isinstance(events, list) and events:
        events.extend([dice.choice(events)] * dice.choice([1, 2, 300]))


def _events_left_out(dice: random.Random, document: Document) -> None:
    events = document["traceEvents"]
    if isinstance(events, list):
        share = dice.random()
        document["traceEvents"] = [event for event in events if dice.random() < share]


def _another_order(dice: random.Random, document: Document) -> None:
    if isinstance(document["traceEvents"], list):
        dice.shuffle(document["traceEvents"])


def _a_top_level_key(dice: random.Random, document: Document) -> None:
    document[dice.choice(_METADATA)] = nasty_value(dice)


def _no_events(dice: random.Random, document: Document) -> None:
    if dice.random() < 0.2:
        document["traceEvents"] = nasty_value(dice)


def _inside_the_header(dice: random.Random, document: Document) -> None:
    """Some place, at any depth, of what stands beside the events."""
    place: Any = {key: value for key, value in document.items() if key != "traceEvents"}
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = dice.choice(keys)
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and dice.random() < 0.85:
            place = inner
            continue
        if dice.random() < 0.2 and not isinstance(place, list):
            del place[key]
        else:
            place[key] = nasty_value(dice)
        return


_MUTATIONS: list[Mutation] = [
    _a_field_of_an_event, _a_field_of_an_event, _a_field_of_many_events, _a_field_left_out, _an_argument,
    _an_argument, _an_argument_of_many_events, _a_name, _a_category, _a_phase, _a_time_moved, _a_time_moved,
    _a_time_scaled, _a_thread_moved, _values_exchanged, _an_event_that_is_none, _an_event_again, _events_left_out,
    _another_order, _a_top_level_key, _no_events, _inside_the_header, _inside_the_header, _inside_the_header,
]  # fmt: skip
