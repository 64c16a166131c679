"""DS039: more threads of an operator than cores that are free, planted on both sides of each threshold."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import TraceBuilder

MS = 1_000_000


def waiting(threads: int = 4, kernel_ms: int = 0, **machine: Any) -> TraceBuilder:
    """A step of 100 ms on a machine of 8 cores, 6 of which others use, with a core for 60 % of the time."""
    use = {"cores": 8, "allowed_cores": 8, "own_cores": 2.0, "others_cores": 6.0, "core_wait_ratio": 0.4}
    builder = TraceBuilder(deepscope={"settings": {"threads": threads}, "machine": use | machine})
    builder.step(1, 0, 100 * MS).line("/home/me/train.py", 5, "main", 0, 90 * MS).op("aten::mm", MS, 80 * MS)
    if kernel_ms:
        builder.kernel("mm", MS, 2 * MS, kernel_ms * MS)
    return builder


def test_the_wait_for_cores_is_what_fewer_threads_save(findings_of):
    (found,) = findings_of(waiting(), "DS039")
    assert found.saving_ns == 40 * MS
    assert not found.is_measured
    assert found.evidence == {"threads": 4, "cores": 8, "others_cores": 6.0, "core_wait_ratio": 0.4}
    assert "4 threads, and 2 cores are free" in found.message
    assert "torch.set_num_threads(2)" in found.remedy.text


def test_with_a_device_no_more_is_saved_than_it_is_idle(findings_of):
    (found,) = findings_of(waiting(kernel_ms=80), "DS039")
    assert found.saving_ns == 20 * MS


@pytest.mark.parametrize(
    ("changes", "free"),
    [
        ({}, 2),
        ({"others_cores": 7.9}, 1),
        ({"others_cores": 0.1, "allowed_cores": 3}, 3),
        ({"others_cores": 0.1, "quota_cores": 1.5}, 1),
        ({"others_cores": None, "allowed_cores": 0}, None),
        ({"core_wait_ratio": 0.14}, None),
        ({"core_wait_ratio": None}, None),
        ({"cores": 0}, None),
        ({"threads": 2}, None),
        ({"threads": 1, "others_cores": 8.0}, None),
        ({"threads": 9, "others_cores": None}, 8),
    ],
)
def test_threads_are_held_against_the_cores_that_are_free(findings_of, changes: dict[str, Any], free: int | None):
    found = [one.remedy.text for one in findings_of(waiting(**changes), "DS039")]
    assert len(found) == (free is not None)
    assert all(f"OMP_NUM_THREADS={free}`" in text for text in found)


def test_a_machine_that_is_not_known_is_not_too_small(findings_of):
    assert (
        findings_of(TraceBuilder(deepscope={"settings": {"threads": 64}}).step(1, 0, MS).op("aten::mm", 0, MS), "DS039")
        == []
    )
