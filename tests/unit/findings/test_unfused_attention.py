"""DS010, attention written out."""

from __future__ import annotations

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/model.py"
US = 1_000


def attention(
    *,
    first: str = "aten::bmm",
    second: str = "aten::bmm",
    module: str = "",
    name: str = "GPT2Attention",
    within: str = "",
    other: str = "aten::div",
) -> TraceBuilder:
    """A step of 1,000 µs: products of 50 µs at 100 and 400 µs, between them a division, a copy and a softmax."""
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "forward", 0, 480 * US)
    if module:
        builder.module(name, "h.0.attn", 10 * US, 460 * US, python_module=module)
    if within:
        builder.op(within, 20 * US, 440 * US)
    builder.op("aten::matmul", 90 * US, 65 * US).op("aten::clone", 92 * US, 5 * US)
    builder.op(first, 100 * US, 50 * US, sequence=1)
    builder.op(other, 200 * US, 30 * US, sequence=2).op("aten::copy_", 210 * US, 10 * US)
    builder.op("aten::softmax", 250 * US, 100 * US, sequence=3).op("aten::_softmax", 252 * US, 90 * US, sequence=3)
    builder.op("aten::matmul", 390 * US, 65 * US).op(second, 400 * US, 50 * US, sequence=4)
    return builder.op("aten::mm", 470 * US, 9 * US)


def test_what_passes_over_the_scores_is_found_at_the_softmax(findings_of):
    (found,) = findings_of(attention(), "DS010")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {"passes_ns": 135 * US, "attentions": 1, "attentions_per_step": 1.0}
    assert found.saving_ns == 135 * US
    assert "scaled_dot_product_attention" in found.remedy.text
    assert "attn_implementation" not in found.remedy.text


def test_in_training_the_backward_counts_less_the_product_that_a_fused_kernel_computes_again(findings_of):
    builder = attention().line(FILE, 6, "main", 480 * US, 500 * US)
    builder.backward("BmmBackward0", 500 * US, 60 * US, 4, tid=MAIN)
    builder.backward("SoftmaxBackward0", 600 * US, 120 * US, 3, tid=MAIN)
    builder.backward("DivBackward0", 750 * US, 40 * US, 2, tid=MAIN)
    builder.backward("BmmBackward0", 800 * US, 60 * US, 1, tid=MAIN)
    (found,) = findings_of(builder, "DS010")
    assert found.evidence["passes_ns"] == (135 + 120 + 40) * US
    assert found.saving_ns == (135 + 120 + 40 - 50) * US


def test_a_librarys_module_is_named_with_its_option(findings_of):
    (found,) = findings_of(attention(module="transformers.models.gpt2.modeling_gpt2"), "DS010")
    assert "h.0.attn, GPT2Attention" in found.message
    assert 'attn_implementation="sdpa"' in found.remedy.text
    (found,) = findings_of(attention(module="torch.nn.modules.activation", name="MultiheadAttention"), "DS010")
    assert "need_weights=False" in found.remedy.text


def test_a_softmax_between_other_products_is_no_attention(findings_of):
    assert findings_of(attention(first="aten::mm"), "DS010") == []
    assert findings_of(attention(second="aten::addmm"), "DS010") == []
    assert findings_of(attention(other="aten::mm"), "DS010") == []


def test_the_kernel_that_torch_itself_writes_out_is_not_found(findings_of):
    assert findings_of(attention(within="aten::scaled_dot_product_attention"), "DS010") == []
    # `nn.TransformerEncoderLayer` in inference: one operator of torch's own that has a softmax between its products.
    assert findings_of(attention(within="aten::_transformer_encoder_layer_fwd"), "DS010") == []


def test_products_of_two_functions_are_no_attention(findings_of):
    builder = attention()
    builder.line(FILE, 90, "other", 395 * US, 60 * US)
    assert findings_of(builder, "DS010") == []


def test_with_a_device_its_work_is_what_counts(findings_of):
    builder = attention()
    for launch, at, duration in ((110, 120, 40), (205, 210, 20), (260, 265, 70), (410, 420, 40)):
        builder.kernel("k", launch * US, at * US, duration * US)
    (found,) = findings_of(builder, "DS010")
    assert found.saving_ns == 90 * US
