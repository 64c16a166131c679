"""What servers of models call their steps: how many requests a step has, how many tokens, and in which phase."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

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
