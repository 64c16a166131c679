"""Advice that names a library's module and option."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/model.py"
US = 1_000


def recomputed(python_module: str) -> TraceBuilder:
    """A step of 1,000 µs: a block of 200 µs on line 5, which the backward pass runs again."""
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 400 * US)
    builder.line(FILE, 6, "main", 400 * US, 600 * US)
    builder.module("Block", "h.3", 90 * US, 220 * US, python_module=python_module)
    builder.op("autograd::engine::evaluate_function: CheckpointBackward", 500 * US, 400 * US, sequence=1, fwd_thread=1)
    builder.op("CheckpointBackward", 501 * US, 398 * US, sequence=1, fwd_thread=1)
    for row, start in enumerate((100, 600)):
        builder.module("Layer", "h.3.mlp", start * US, 200 * US, python_module=python_module)
        builder.op("aten::tanh", (start + 10) * US, 180 * US, sequence=2 + row, tid=MAIN)
    return builder


@pytest.mark.parametrize(
    ("python_module", "option"),
    [
        ("transformers.models.gpt2.modeling_gpt2", "gradient_checkpointing_disable()"),
        ("timm.models.vision_transformer", "set_grad_checkpointing(False)"),
        ("diffusers.models.unets.unet_2d", "disable_gradient_checkpointing()"),
        ("torchvision.models.densenet", "memory_efficient=False"),
    ],
)
def test_what_a_librarys_modules_compute_again_is_an_option_of_that_library(findings_of, python_module, option):
    (found,) = findings_of(recomputed(python_module), "DS008")
    assert found.message.endswith("(module h.3, Block)")
    assert option in found.remedy.text


@pytest.mark.parametrize(
    "python_module", ["", "mine.blocks", "transformers_of_mine.blocks", "torchvision.models.resnet"]
)
def test_other_modules_have_no_option(findings_of, python_module):
    (found,) = findings_of(recomputed(python_module), "DS008")
    assert "module" not in found.message
    assert "Here that is" not in found.remedy.text


def casts(python_module: str, *, users: bool = False) -> TraceBuilder:
    """A frozen layer's weight of 100 µs is cast in each of two steps."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 900 * US)
        builder.module("Attention", "h.0.attn", at + US, 800 * US, python_module=python_module)
        if users:
            builder.line(FILE, 20, "project", at + 2 * US, 790 * US)
        builder.module("Linear", "h.0.attn.q", at + 3 * US, 700 * US, python_module="torch.nn.modules.linear")
        builder.op("aten::linear", at + 10 * US, 600 * US)
        for row in range(3):
            then = at + (20 + 110 * row) * US
            builder.op("aten::to", then, 100 * US).op("aten::_to_copy", then + US, 98 * US)
        builder.op("aten::linear", at + 400 * US, 200 * US)
    return builder


def test_a_frozen_model_of_a_library_is_loaded_in_the_type_that_it_is_used_in(findings_of):
    (found,) = findings_of(casts("transformers.models.gpt2.modeling_gpt2"), "DS018")
    assert "from_pretrained(…, dtype=torch.bfloat16)" in found.remedy.text
    assert "(module h.0.attn, Attention)" in found.message
    (found,) = findings_of(casts("mine"), "DS018")
    assert "from_pretrained" not in found.remedy.text


def test_code_of_the_users_within_a_librarys_module_is_not_the_librarys(findings_of):
    (found,) = findings_of(casts("transformers.models.gpt2.modeling_gpt2", users=True), "DS018")
    assert found.line == 20
    assert "from_pretrained" not in found.remedy.text


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"frameworks": ["transformers.Trainer"]}, ["TrainingArguments(dataloader_num_workers=…"]),
        ({"frameworks": ["accelerate.Accelerator"]}, []),
        ({"frameworks": ["a word"]}, []),
        ({"trainer": {"precision": "32-true"}}, []),
        ({}, []),
    ],
)
def test_a_framework_that_trains_is_named_with_its_option(findings_of, settings: dict[str, Any], named: list[str]):
    builder = TraceBuilder(deepscope={"settings": settings})
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 900 * US)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 500 * US)
        builder.op("aten::mm", at + 500 * US, 400 * US)
    (found,) = findings_of(builder, "DS003")
    assert [one for one in ["TrainingArguments(dataloader_num_workers=…"] if one in found.remedy.text] == named
