"""DS024, gradient clipping that holds up the device."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
CHECKS = "clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)"


def steps(
    line: str = CHECKS,
    *,
    text: str = "",
    checked: bool = True,
    waits: bool = True,
    loops: int = 0,
    frame: str = "",
    action: str = "",
    **more: Any,
) -> TraceBuilder:
    """Four steps of 1,000 µs: a kernel until 700 µs launched on line 2; on line 3 gradients are clipped from 100 µs on.

    That waits until 720 µs for a value that was copied until 710 µs; the next kernel starts at 1,010 µs. With `loops`
    so many norms are launched from 740 µs on, each kernel 4 µs long and 6 µs after the one before.
    """
    builder = TraceBuilder(**more)
    for number in range(4):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, 100 * US)
        builder.line(FILE, 3, "main", at + 100 * US, 900 * US)
        builder.kernel("gemm", at + 5 * US, at + 10 * US, 690 * US)
        if frame:
            builder.frame(frame, at + 101 * US, 890 * US)
        if action:
            builder.annotation(action, at + 101 * US, 890 * US)
        if waits:
            if checked:
                builder.op("aten::is_nonzero", at + 102 * US, 624 * US)
            builder.op("aten::item", at + 103 * US, 622 * US)
            builder.op("aten::_local_scalar_dense", at + 104 * US, 616 * US)
            builder.memcpy("DtoH", 4, at + 105 * US, at + 705 * US, 5 * US)
            builder.runtime("cudaStreamSynchronize", at + 107 * US, 613 * US)
        for row in range(loops):
            then = at + (740 + 10 * row) * US
            builder.op("aten::linalg_vector_norm", then, 5 * US)
            builder.kernel("norm", then + US, then + 2 * US, 4 * US)
    builder.files[0]["text"] = text or f"for batch in loader:\n    loss = net(batch).mean()\n    {line}\n"
    return builder


def test_the_check_of_the_norm_is_found_at_the_line_that_clips(findings_of):
    (found,) = findings_of(steps(), "DS024")
    assert (found.file, found.line) == (FILE, 3)
    idle = 3 * 300 * US + 290 * US
    assert found.evidence == {
        "wait_ns": 4 * 616 * US,
        "waits": 4,
        "waits_per_step": 1.0,
        "device_idle_after_ns": idle,
    }
    assert found.saving_ns == idle
    assert "error_if_nonfinite=False" in found.remedy.text
    assert findings_of(steps(), "DS001") == []


def test_fabric_checks_unless_it_is_told_not_to(findings_of):
    (found,) = findings_of(steps("fabric.clip_gradients(net, optimizer, max_norm=1.0)"), "DS024")
    assert "fabric.clip_gradients(…, error_if_nonfinite=False)" in found.remedy.text


def test_a_norm_that_is_read_at_once_is_better_kept_on_the_device(findings_of):
    (found,) = findings_of(steps("norm = clip_grad_norm_(net.parameters(), 1.0).item()", checked=False), "DS024")
    assert "norm.detach()" in found.remedy.text
    assert "error_if_nonfinite" not in found.remedy.text


READS = "def main():\n    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    {line}\n"


@pytest.mark.parametrize("line", ["log(norm.item())", "total += float(norm)", "total += float(norm.item())"])
def test_a_norm_that_is_read_on_another_line_is_found_there(findings_of, line):
    builder = steps(text=READS.format(line=line), checked=False)
    for number in range(4):
        builder.op("aten::linalg_vector_norm", number * 1000 * US + 50 * US, US)
    (found,) = findings_of(builder, "DS024")
    assert found.line == 3
    assert findings_of(builder, "DS001") == []


@pytest.mark.parametrize("line", ["log(loss.item())", "log(loss.item(), norm.item())", "log(other(norm).item())"])
def test_another_value_that_is_read_is_a_synchronisation_like_any(findings_of, line):
    builder = steps(text=READS.format(line=line), checked=False)
    assert findings_of(builder, "DS024") == []
    assert len(findings_of(builder, "DS001")) == 1


@pytest.mark.parametrize(
    "inside",
    [
        {"frame": "/site-packages/torch/nn/utils/clip_grad.py(168): clip_grad_norm_"},
        {"action": "[pl][profile][LightningModule]Net.configure_gradient_clipping"},
    ],
)
def test_a_library_that_clips_is_seen_by_its_spans(findings_of, inside):
    (found,) = findings_of(steps("trainer.fit(net)", **inside), "DS024")
    assert found.line == 3
    assert findings_of(steps("trainer.fit(net)"), "DS024") == []


def test_clipping_that_waits_for_nothing_has_nothing_to_save(findings_of):
    assert findings_of(steps(waits=False), "DS024") == []


def test_one_gradient_after_the_other_is_found_with_the_idle_time_before_each_kernel(findings_of):
    (found,) = findings_of(steps(waits=False, loops=24, line="clip_grad_norm_(p, 1.0, foreach=False)"), "DS024")
    # 42 µs before the first one, 6 µs before each of the others.
    assert found.evidence == {"idle_before_ns": 4 * (42 + 23 * 6) * US}
    assert "foreach=True" in found.remedy.text


def test_a_few_norms_or_many_at_once_are_no_loop(findings_of):
    assert findings_of(steps(waits=False, loops=19), "DS024") == []
    builder = steps(waits=False, loops=24)
    for number in range(4):
        builder.op("aten::_foreach_norm", number * 1000 * US + 730 * US, 5 * US)
    assert findings_of(builder, "DS024") == []


def test_gaps_before_these_kernels_are_promised_once(findings_of):
    builder = steps(waits=False, loops=24)
    assert len(findings_of(builder, "DS024")) == 1
    assert findings_of(builder, "DS004") == []


def test_on_the_cpu_nothing_waits(findings_of):
    builder = TraceBuilder()
    for number in range(4):
        builder.step(number, number * 1000 * US, 1000 * US).line(FILE, 3, "main", number * 1000 * US, 900 * US)
        builder.op("aten::is_nonzero", number * 1000 * US + US, 500 * US)
    builder.files[0]["text"] = f"\n\n{CHECKS}\n"
    assert findings_of(builder, "DS024") == []
