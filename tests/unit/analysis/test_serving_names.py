"""Names of servers' steps, as vLLM, SGLang and real traces have them."""

from __future__ import annotations

import pytest

from deepscope.analysis.tables.serving import serving_step


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("execute_context_2(512)_generation_0(0)", ("prefill", 2, 512)),
        ("execute_context_0(0)_generation_7(7)", ("decode", 7, 7)),
        ("execute_context_1(93)_generation_7(14)", ("mixed", 8, 107)),
        ("execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk8209sqsq16sqsk8209)", ("decode", 16, 16)),
        (
            "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)",
            ("mixed", 46, 8192),
        ),
        ("step[DECODE bs=16]", ("decode", 16, 16)),
        ("step[EXTEND bs=2 toks=4096]", ("prefill", 2, 4096)),
        ("step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", ("prefill", 2, 12)),
        ("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40]", ("mixed", 2, 6)),
        ("step[MIXED bs=2]", ("mixed", 2, None)),
        ("step[TARGET_VERIFY bs=4]", ("verify", 4, None)),
    ],
)
def test_a_step_tells_its_phase_requests_and_tokens(name: str, read: tuple[str, int, int | None]) -> None:
    assert serving_step(name) == read


@pytest.mark.parametrize(
    "name",
    [
        "execute_context_0(0)_generation_0(0)",
        "execute_context_1(2)",
        "execute_new_1_cached_2",
        "step[IDLE bs=0]",
        "step[DECODE bs=0]",
        "step[DRAFT_EXTEND bs=4]",
        "step[DECODE]",
        "step[DECODE bs=9] and more",
        "capture_32_DECODE",
        "ProfilerStep#3",
        "",
        "step[DECODE bs=" + "9" * 5000 + "]",
        "execute_context_" + "1" * 5000,
    ],
)
def test_other_names_tell_none(name: str) -> None:
    assert serving_step(name) is None
