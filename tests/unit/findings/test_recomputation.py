"""DS008, recomputed activations."""

from __future__ import annotations

from trace_builder import BACKWARD, MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def checkpointed(*, sequence: int | None = 7, backward_line: int = 12, module: bool = False) -> TraceBuilder:
    """Two steps. Line 30 calls lines 12 and 13; in the backward pass 200 µs of `backward_line` run again."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 30, "main", at, 400 * US)
        if module:
            builder.module("Block", "blocks.0", at + 10 * US, 380 * US)
        builder.line(FILE, 12, "forward", at + 20 * US, 190 * US)
        builder.op("aten::mm", at + 30 * US, 170 * US, sequence=5)
        builder.line(FILE, 13, "forward", at + 220 * US, 150 * US)
        builder.op("aten::relu", at + 230 * US, 130 * US, sequence=6)
        builder.line(FILE, 31, "main", at + 400 * US, 600 * US)
        builder.backward("ReluBackward0", at + 410 * US, 500 * US, 6, tid=MAIN)
        if module:
            builder.module("Block", "blocks.0", at + 415 * US, 210 * US)
        builder.line(FILE, backward_line, "forward", at + 420 * US, 200 * US)
        builder.op("aten::mm", at + 430 * US, 170 * US, sequence=sequence)
    return builder


def test_lines_that_run_again_below_autograds_engine_are_found_where_they_were_called(findings_of):
    (found,) = findings_of(checkpointed(), "DS008")
    assert (found.file, found.line) == (FILE, 30)
    # Checkpointing itself takes 10 µs before, from the start of the autograd node (a nanosecond in its span) on.
    whole = 2 * (210 * US - 1)
    assert found.evidence == {"recomputed_ns": whole, "recomputations": 2, "recomputations_per_step": 1.0}
    assert found.saving_ns == whole
    assert "memory" in found.message


def test_a_module_that_runs_again_counts_as_a_whole(findings_of):
    (found,) = findings_of(checkpointed(module=True), "DS008")
    assert (found.line, found.saving_ns) == (30, 2 * (215 * US - 1))


def test_a_single_step_has_its_own_part(findings_of):
    (found,) = findings_of(checkpointed(), "DS008", step=1)
    assert found.saving_ns == 210 * US - 1


def test_a_backward_written_in_python_recomputes_nothing(findings_of):
    # Its lines run in no forward pass, or its operators take no numbers of autograd's.
    assert findings_of(checkpointed(backward_line=50), "DS008") == []
    assert findings_of(checkpointed(sequence=None), "DS008") == []


def test_double_backward_is_no_recomputation(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 400 * US)
    builder.op("aten::mm", 10 * US, 300 * US, sequence=5).line(FILE, 6, "main", 400 * US, 500 * US)
    builder.backward("MmBackward0", 410 * US, 400 * US, 5, tid=MAIN).op("aten::mm", 420 * US, 300 * US, sequence=6)
    assert findings_of(builder, "DS008") == []


def test_on_a_device_the_saving_is_the_devices_time(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 30, "main", 0, 300 * US)
    builder.line(FILE, 12, "forward", 10 * US, 100 * US).op("aten::mm", 20 * US, 20 * US, sequence=5)
    builder.kernel("gemm", 25 * US, 30 * US, 80 * US).line(FILE, 31, "main", 300 * US, 300 * US)
    builder.backward("MmBackward0", 310 * US, 200 * US, 5, tid=BACKWARD)
    builder.line(FILE, 12, "forward", 320 * US, 100 * US, tid=BACKWARD)
    builder.op("aten::mm", 330 * US, 20 * US, sequence=6, tid=BACKWARD)
    builder.kernel("gemm", 335 * US, 340 * US, 80 * US, tid=BACKWARD)
    builder.op("aten::mm", 450 * US, 20 * US, tid=BACKWARD)
    builder.kernel("gemm", 455 * US, 460 * US, 90 * US, tid=BACKWARD)
    (found,) = findings_of(builder, "DS008")
    assert (found.line, found.saving_ns) == (30, 80 * US)


def test_little_recomputation_is_not_worth_a_word(findings_of):
    assert findings_of(checkpointed().step(2, 2000 * US, 40_000 * US), "DS008") == []
