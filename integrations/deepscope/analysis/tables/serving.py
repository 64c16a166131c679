"""The phases of a server of models, by the annotations around its steps: their names tell requests and tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.records import ServingPhase, ServingStep
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

ServingPhaseName = Literal["prefill", "decode", "mixed", "verify"]
"""Tokens of prompts, one token more for each request, both in one step, or the check of tokens drafted ahead."""


class NamedStep(NamedTuple):
    """A step as its name tells it."""

    phase: ServingPhaseName
    requests: int
    tokens: int | None
    """None where the name does not tell."""


def serving_step(name: str) -> NamedStep | None:
    """The step that an annotation stands for; None for any other name, and for steps without a request."""
    for pattern, read in _FORMATS:
        if found := pattern.fullmatch(name):
            return read(found)
    return None


def _vllm(found: re.Match[str]) -> NamedStep | None:
    contexts, context_tokens, generations, generated = (int(one) for one in found.groups())
    if not contexts + generations:
        return None
    phase: ServingPhaseName = "mixed" if contexts and generations else "prefill" if contexts else "decode"
    return NamedStep(phase, contexts + generations, context_tokens + generated)


_MODES: dict[str, ServingPhaseName] = {
    "EXTEND": "prefill", "DECODE": "decode", "MIXED": "mixed", "TARGET_VERIFY": "verify", "VERIFY": "verify",
}  # fmt: skip
_FIELD = re.compile(r"(\w+)=(\d{1,12})(?!\d)")


def _sglang(found: re.Match[str]) -> NamedStep | None:
    phase = _MODES.get(found[1])
    fields = {name: int(value) for name, value in _FIELD.findall(found[2])}
    requests = fields.get("bs", 0)
    if phase is None or not requests:
        return None
    tokens = fields.get("toks")
    if tokens is None and phase == "decode":
        tokens = requests
    if tokens is None and phase == "mixed" and {"c_sq", "g"} <= fields.keys():
        tokens = fields["c_sq"] + fields["g"]
    return NamedStep(phase, requests, tokens)


_TOKENS = r"\((?:sq)?(\d{1,12})(?:sk\d+sqsq\d+sqsk\d+)?\)"
_FORMATS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], NamedStep | None]], ...] = (
    # vLLM's `Worker.annotate_profile`: `execute_context_2(512)_generation_7(7)`; with details the number of all tokens
    # stands behind `execute_`, and `sq` before those of each phase.
    (re.compile(rf"execute_(?:\d{{1,12}}_)?context_(\d{{1,9}}){_TOKENS}_generation_(\d{{1,9}}){_TOKENS}"), _vllm),
    # SGLang's `build_step_span_name`: `step[EXTEND bs=2 toks=4096]`, `step[DECODE bs=16]`.
    (re.compile(r"step\[([A-Z_]{1,30})((?: \w{1,20}=\d{1,30}){1,20})\]"), _sglang),
)


def serving_step_table(analysis: Analysis) -> list[ServingStep]:
    """The steps of a server within the extent; none where no annotation tells them."""
    trace, work = analysis.attribution.trace, analysis.attribution.work
    events = trace.events
    found = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION), serving_step))
    if not len(found):
        return []
    found = found[events.thread[found] == np.bincount(events.thread[found]).argmax()]
    found = _outermost(found, events.start_ns, events.start_ns + events.duration_ns)
    start, end = events.start_ns[found], events.start_ns[found] + events.duration_ns[found]
    launched = work.node >= 0
    step = np.searchsorted(start, work.launch_ns[launched], "right") - 1
    inside = (step >= 0) & (work.launch_ns[launched] < end[step])
    done, device = end.copy(), np.zeros(len(found), np.int64)
    np.maximum.at(done, step[inside], work.end_ns[launched][inside])
    np.add.at(device, step[inside], work.duration_ns[launched][inside])
    done[:-1] = np.minimum(done[:-1], start[1:])
    busy = sum((one.overlap_ns(start, done) for one in work.busy.values()), np.zeros(len(found), np.int64))
    on_device = work.metric == "device"
    rows: list[ServingStep] = []
    for place, event in enumerate(found.tolist()):
        one = serving_step(trace.strings[int(events.name[event])])
        if one is not None and analysis.extent.holds(start[place : place + 1]).all():
            rows.append(
                ServingStep(
                    number=place,
                    phase=one.phase,
                    requests=one.requests,
                    tokens=one.tokens,
                    start_ns=int(start[place]),
                    duration_ns=int(done[place] - start[place]),
                    busy_ns=int(busy[place]) if on_device else 0,
                    idle_ns=int((done[place] - start[place]) * len(work.busy) - busy[place]) if on_device else 0,
                    device_ns=int(device[place]) if on_device else 0,
                )
            )
    return rows


def serving_table(steps: Sequence[ServingStep]) -> list[ServingPhase]:
    """The phases of a server's steps, that with most time first."""
    rows: dict[str, ServingPhase] = {}
    for step in steps:
        row = rows.setdefault(
            step.phase,
            ServingPhase(phase=step.phase, steps=0, duration_ns=0, device_ns=0, requests=0, tokens=0),
        )
        row.steps += 1
        row.duration_ns += step.duration_ns
        row.device_ns += step.device_ns
        row.requests += step.requests
        row.tokens += step.tokens or 0
        row.steps_without_tokens += step.tokens is None
    return sorted(rows.values(), key=lambda row: -row.duration_ns)


def _outermost(found: Int64, start: Int64, end: Int64) -> Int64:
    """The spans that lie in none of the others, by their starts: a server may annotate a step twice."""
    order = found[np.lexsort((-end[found], start[found]))]
    before = np.maximum.accumulate(np.concatenate((np.full(1, np.iinfo(np.int64).min), end[order][:-1])))
    return order[start[order] >= before]
