"""DS002, blocking copies to the device."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
TEXT = "loader = DataLoader(data, batch_size=8)\nfor batch in loader:\n    batch = batch.to(device)\n    net(batch)\n"


def steps(source: str, *, blocking: bool = False, count: int = 3, overlapped: bool = False) -> TraceBuilder:
    """Steps of 1,000 µs: a copy of 1 MB from 20 µs to 220 µs at line 3, then 700 µs of kernel at line 4."""
    builder = TraceBuilder()
    for number in range(count):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 3, "main", at, 300 * US)
        builder.line(FILE, 4, "main", at + 300 * US, 700 * US)
        builder.op("aten::to", at + 5 * US, 290 * US).op("aten::copy_", at + 6 * US, 280 * US)
        name = f"Memcpy HtoD ({source} -> Device)"
        builder.kernel(name, at + 10 * US, at + 20 * US, 200 * US, category="gpu_memcpy", bytes=1_000_000)
        if blocking:
            builder.runtime("cudaStreamSynchronize", at + 15 * US, 210 * US)
        if overlapped:
            builder.kernel("other", at + 11 * US, at + 20 * US, 200 * US, stream=9)
        builder.kernel("gemm", at + 305 * US, at + 310 * US, 680 * US)
    builder.files[0]["text"] = TEXT
    return builder


def test_copies_from_pageable_memory_are_found_with_their_bytes(findings_of):
    (found,) = findings_of(steps("Pageable"), "DS002")
    assert (found.line, found.saving_ns) == (3, 3 * 200 * US)
    assert found.evidence == {
        "copies": 3, "pageable_copies": 3, "copied_bytes": 3_000_000, "copying_ns": 600 * US, "blocked_ns": 0,
    }  # fmt: skip
    assert "pageable" in found.message


def test_pinned_memory_is_not_recommended_where_the_loaders_pin(findings_of):
    for pins in ([True], [True, False]):
        built = steps("Pageable")
        loaders = [{"pin_memory": one} for one in pins]
        built.metadata["deepscope"] = {"format": 2, "settings": {"loaders": loaders}}
        (found,) = findings_of(built, "DS002")
        assert ("pin_memory=True" in found.remedy.text) is (False in pins)
        assert any("pin_memory" in edit.new for edit in found.remedy.edits) is (False in pins)
        assert any("non_blocking=True" in edit.new for edit in found.remedy.edits)


def test_copies_from_pinned_memory_that_are_waited_for_are_found(findings_of):
    (found,) = findings_of(steps("Pinned", blocking=True), "DS002")
    assert (found.evidence["pageable_copies"], found.evidence["blocked_ns"]) == (0, 3 * 210 * US)
    # The copy itself, and the device's idle time from 220 µs to the kernel at 310 µs.
    assert found.saving_ns == 3 * (200 + 90) * US
    assert "waited for" in found.message


def test_copies_from_pinned_memory_that_nobody_waits_for_are_as_they_should_be(findings_of):
    assert findings_of(steps("Pinned"), "DS002") == []


def test_a_copy_beside_a_kernel_costs_nothing(findings_of):
    assert findings_of(steps("Pageable", overlapped=True), "DS002") == []


def test_copies_while_the_model_is_set_up_are_not_found(findings_of):
    builder = TraceBuilder().line(FILE, 3, "main", 0, 1000 * US).line(FILE, 4, "main", 1000 * US, 1000 * US)
    for row in range(5):
        builder.memcpy("HtoD", 1_000_000, row * 100 * US, row * 100 * US + 5 * US, 90 * US)
    builder.kernel("gemm", 1005 * US, 1010 * US, 900 * US)
    assert findings_of(builder, "DS002") == []


def test_the_copy_and_the_loader_of_the_same_file_are_edited(findings_of):
    (found,) = findings_of(steps("Pageable"), "DS002")
    assert [(edit.line, edit.old, edit.new) for edit in found.remedy.edits] == [
        (3, ".to(device)", ".to(device, non_blocking=True)"),
        (1, "DataLoader(data, batch_size=8)", "DataLoader(data, batch_size=8, pin_memory=True)"),
    ]


@pytest.mark.parametrize(
    ("loader", "copy", "edits"),
    [
        ("DataLoader(d, pin_memory=False)", "x = x.cuda()", [(3, ".cuda()", ".cuda(non_blocking=True)")]),
        ("DataLoader(d, **options)", "x = x.cuda()", [(3, ".cuda()", ".cuda(non_blocking=True)")]),
        ("DataLoader(", "x = x.cuda()", [(3, ".cuda()", ".cuda(non_blocking=True)")]),
        ("torch.utils.data.DataLoader(d,)", "x = x.cuda()",
         [(3, ".cuda()", ".cuda(non_blocking=True)"),
          (1, "torch.utils.data.DataLoader(d,)", "torch.utils.data.DataLoader(d, pin_memory=True)")]),
        ("DataLoader(d)", "x, y = x.to(device), y.to(device)", []),
        ("DataLoader(d)", "x = move(x)", []),
    ],
)  # fmt: skip
def test_only_plain_calls_are_edited(findings_of, loader, copy, edits):
    builder = steps("Pageable")
    builder.files[0]["text"] = f"l = {loader}\npass\n{copy}\n"
    (found,) = findings_of(builder, "DS002")
    assert [(edit.line, edit.old, edit.new) for edit in found.remedy.edits] == edits
