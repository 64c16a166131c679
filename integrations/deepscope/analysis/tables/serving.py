"""The phases of a server of models, by the annotations around its steps: their names tell requests and tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.records import ServingPhase
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

ServingPhaseName = Literal["prefill", "decode", "mixed", "verify"]
"""Tokens of prompts, one token more for each request, both in one step, or the check of tokens drafted ahead."""


class ServingStep(NamedTuple):
    """A step as its name tells it."""

    phase: ServingPhaseName
    requests: int
    tokens: int
    """-1 where the name does not tell."""


def serving_step(name: str) -> ServingStep | None:
    """The step that an annotation stands for; None for any other name, and for steps without a request."""
    for pattern, read in _FORMATS:
        if found := pattern.fullmatch(name):
            return read(found)
    return None


def _vllm(found: re.Match[str]) -> ServingStep | None:
    contexts, context_tokens, generations, generated = (int(one) for one in found.groups())
    if not contexts + generations:
        return None
    phase: ServingPhaseName = "mixed" if contexts and generations else "prefill" if contexts else "decode"
    return ServingStep(phase, contexts + generations, context_tokens + generated)


_MODES: dict[str, ServingPhaseName] = {
    "EXTEND": "prefill", "DECODE": "decode", "MIXED": "mixed", "TARGET_VERIFY": "verify", "VERIFY": "verify",
}  # fmt: skip
_FIELD = re.compile(r"(\w+)=(\d{1,12})(?!\d)")


def _sglang(found: re.Match[str]) -> ServingStep | None:
    phase = _MODES.get(found[1])
    fields = {name: int(value) for name, value in _FIELD.findall(found[2])}
    requests = fields.get("bs", 0)
    if phase is None or not requests:
        return None
    tokens = fields.get("toks", -1)
    if tokens < 0 and phase == "decode":
        tokens = requests
    if tokens < 0 and phase == "mixed" and {"c_sq", "g"} <= fields.keys():
        tokens = fields["c_sq"] + fields["g"]
    return ServingStep(phase, requests, tokens)


_TOKENS = r"\((?:sq)?(\d{1,12})(?:sk\d+sqsq\d+sqsk\d+)?\)"
_FORMATS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], ServingStep | None]], ...] = (
    # vLLM's `Worker.annotate_profile`: `execute_context_2(512)_generation_7(7)`; with details the number of all tokens
    # stands behind `execute_`, and `sq` before those of each phase.
    (re.compile(rf"execute_(?:\d{{1,12}}_)?context_(\d{{1,9}}){_TOKENS}_generation_(\d{{1,9}}){_TOKENS}"), _vllm),
    # SGLang's `build_step_span_name`: `step[EXTEND bs=2 toks=4096]`, `step[DECODE bs=16]`.
    (re.compile(r"step\[([A-Z_]{1,30})((?: \w{1,20}=\d{1,30}){1,20})\]"), _sglang),
)


def serving_table(analysis: Analysis) -> list[ServingPhase]:
    """The phases, that with most time first; none where no annotation tells steps of a server."""
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
    rows: dict[str, ServingPhase] = {}
    for place, event in enumerate(found.tolist()):
        one = serving_step(trace.strings[int(events.name[event])])
        if one is None or not analysis.extent.holds(start[place : place + 1]).all():
            continue
        row = rows.setdefault(
            one.phase,
            ServingPhase(phase=one.phase, steps=0, duration_ns=0, device_ns=0, requests=0, tokens=0),
        )
        row.steps += 1
        row.duration_ns += int(done[place] - start[place])
        row.device_ns += int(device[place]) if work.metric == "device" else 0
        row.requests += one.requests
        row.tokens += max(one.tokens, 0)
        row.untold_steps += one.tokens < 0
    return sorted(rows.values(), key=lambda row: -row.duration_ns)


def _outermost(found: Int64, start: Int64, end: Int64) -> Int64:
    """The spans that lie in none of the others, by their starts: a server may annotate a step twice."""
    order = found[np.lexsort((-end[found], start[found]))]
    before = np.maximum.accumulate(np.concatenate((np.full(1, np.iinfo(np.int64).min), end[order][:-1])))
    return order[start[order] >= before]
