"""Verdicts on traces of real devices, where what holds an operator back is well known."""

from __future__ import annotations

import re

import pytest

from deepscope.records import Profile
from deepscope.report.line_verdict import figures
from deepscope.store import load_profile
from recorded_traces import SHARED_TRACES, needs_shared_traces

pytestmark = needs_shared_traces

KNOWN = [
    # Qwen's prefill on an H100 in bfloat16: large products, and a MLP's and a norm's arithmetic between them.
    ("tracelens-qwen_qwen1.5-0.5b-chat__1016005", "compute-bound", ["aten::mm", "aten::addmm"]),
    ("tracelens-qwen_qwen1.5-0.5b-chat__1016005", "memory-bound",
     ["aten::mul", "aten::copy_", "aten::add", "aten::silu", "aten::pow", "aten::mean"]),
    ("tracelens-facebook_timesformer-base-finetuned-k400__1016002", "memory-bound",
     ["aten::_softmax", "aten::gelu", "aten::native_layer_norm"]),
    # Megatron on an A100 in float16: products of 4096 and more; scores of attention without fusion.
    ("astra-sim-megatron-tp8-megatron_kineto_0", "compute-bound", ["aten::mm"]),
    ("astra-sim-megatron-tp8-megatron_kineto_0", "memory-bound", ["aten::exp", "aten::div_"]),
    # A diffusion transformer on an MI300X.
    ("tracelens-xdit_sd_3.5-profile_trace_rank_0", "compute-bound", ["aten::mm", "aten::addmm"]),
    ("tracelens-mi300-resnet_act_checkpoint", "memory-bound", ["aten::native_batch_norm"]),
    ("kineto-resnet50_num_workers_0-worker0.1623143089861", "memory-bound",
     ["aten::cudnn_batch_norm", "aten::threshold_backward", "aten::clamp_min"]),
]  # fmt: skip


def profile_of(name: str) -> Profile:
    assert SHARED_TRACES is not None
    return load_profile(SHARED_TRACES / f"{name}.json.gz", cache=False)


@pytest.mark.parametrize(("name", "word", "operators"), KNOWN, ids=[f"{name[:24]}-{word}" for name, word, _ in KNOWN])
def test_operators_are_held_back_by_what_they_are_known_for(name, word, operators):
    profile = profile_of(name)
    found = {one.name: one for one in profile.operators}
    assert {one: found[one].verdict for one in operators} == dict.fromkeys(operators, word)
    for one in operators:
        match = re.search(r"([\d.]+) [PTG](?:FLOP|B)/s, (\d+)% of the ", figures(found[one], profile.peaks))
        assert match is not None
        assert 0 < int(match[2]) <= 103, one


def test_a_products_speed_is_its_operations_by_its_time():
    """Of the trace's 96 products some are shorter than 5 µs, and are counted as such; the rest is a little faster."""
    profile = profile_of("tracelens-qwen_qwen1.5-0.5b-chat__1016005")
    product = next(one for one in profile.operators if one.name == "aten::mm")
    rates = product.why.rates
    assert sum(rate.device_ns for rate in rates) + product.why.short_ns == product.self_device_ns
    assert 0.98 * product.flops <= sum(rate.flops for rate in rates) <= product.flops
    share = sum(rate.flops for rate in rates) / (sum(rate.device_ns for rate in rates) * 1e-9) / 989.4e12
    assert 0.6 < share < 0.7
    assert f"{100 * share:.0f}% of the H100 SXM's in bfloat16" in figures(product, profile.peaks)


def test_lines_of_real_programs_have_their_word():
    words = {
        ("kineto-resnet50_num_workers_0-worker0.1623143089861", 42): "data",
        ("kineto-resnet50_num_workers_0-worker0.1623143089861", 49): "launch-bound",
        ("kineto-resnet50_num_workers_0-worker0.1623143089861", 51): "memory-bound",
        ("tracelens-mi300-resnet_act_checkpoint", 82): "communication",
        ("tracelens-qwen_qwen1.5-0.5b-chat__1016005", 28): "memory-bound",
        ("torch-profiling-tutorial-dc3b0e7228dd_851.1752215573993169006", 36): "launch-bound",
    }
    profiles = {name: profile_of(name) for name, _ in words}
    found = {
        (name, line.line): line.verdict
        for name, profile in profiles.items()
        for line in profile.lines
        if (name, line.line) in words and line.cost_ns >= 0.005 * profile.totals.wall_ns
    }
    assert found == words
