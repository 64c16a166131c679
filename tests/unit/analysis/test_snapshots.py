"""Who held what in a snapshot of torch's memory, against an allocator that keeps its own account."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepscope.analysis.snapshots.summary import snapshot_report
from deepscope.records.memory import SnapshotDevice, SnapshotMoment
from deepscope.trace.memory_snapshots import snapshot_of
from memory_snapshots import BACKWARD, Allocator, Piece, frames, of_line


def device(snapshot: dict[str, Any]) -> SnapshotDevice:
    (found,) = snapshot_report(snapshot_of(snapshot, "a"), "a").devices
    return found


def by_line(moment: SnapshotMoment) -> dict[str | int, int]:
    """Bytes by line, or by why there is none."""
    return {row.line or row.kind: row.size_bytes for row in moment.holders}


ACTIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3 << 20), st.integers(0, 10**6), st.booleans()), min_size=1, max_size=60
)
STACKS = [of_line(1), of_line(2), BACKWARD, []]
KEYS: list[str | int] = [1, 2, "backward", "no_line"]


@given(actions=ACTIONS, kept=st.integers(1, 80))
def test_rows_sum_to_the_peak_whatever_is_cut_off(actions: list[tuple[int, int, int, bool]], kept: int) -> None:
    """Against an account of every block: its line is known if it was allocated in the history or lives at its end."""
    allocator = Allocator()
    pieces: list[tuple[Piece, int, int]] = []  # the block, its stack, the entry that allocated it
    pending: list[tuple[Piece, int, int]] = []
    accounts: list[list[tuple[Piece, int, int, int]]] = []  # what is live after each entry

    def note() -> None:
        live = [(piece, piece.requested, stack, entry) for piece, stack, entry in (*pieces, *pending)]
        accounts.extend([live] * (len(allocator.entries) - len(accounts)))

    for what, size, choice, completed in actions:
        if what < 2 or not pieces:
            before = len(allocator.entries)
            piece = allocator.alloc(size, STACKS[choice % 4])
            if len(allocator.entries) - before == 2:  # the segment's entry comes first
                accounts.append(accounts[-1] if accounts else [])
            pieces.append((piece, choice % 4, len(allocator.entries) - 1))
        else:
            one = pieces.pop(choice % len(pieces))
            allocator.free(one[0], completed=False)
            pending.append(one)
            note()
            if completed:
                pending.remove(one)
                allocator.complete(one[0])
        note()
    snapshot = allocator.snapshot()
    snapshot["device_traces"][0] = allocator.entries[-kept:]
    found = device(snapshot)
    assert sum(row.size_bytes for row in found.peak.holders) == found.peak.allocated_bytes
    if not found.has_peak:
        return
    history = accounts[-kept:]
    totals = [sum(size for _, size, _, _ in live) for live in history]
    assert found.peak.allocated_bytes == max(totals)
    first = len(accounts) - len(history)
    survivors = {id(piece): entry for piece, _, entry in (*pieces, *pending)}
    expected: Counter[str | int] = Counter()
    for piece, size, stack, entry in history[totals.index(max(totals))]:
        is_known = entry >= first or (survivors.get(id(piece)) == entry and STACKS[stack])
        expected[KEYS[stack] if is_known else "before"] += size
    assert +Counter(by_line(found.peak)) == +expected
    if found.peak.reserved_bytes >= 0:
        assert found.peak.reserved_bytes >= found.peak.allocated_bytes


def test_a_block_that_another_stream_uses_is_live() -> None:
    allocator = Allocator()
    first = allocator.alloc(1000, of_line(1))
    allocator.free(first, completed=False)
    allocator.alloc(500, of_line(2))
    assert by_line(device(allocator.snapshot()).peak) == {1: 1000, 2: 500}


def test_without_completed_releases_the_requests_count() -> None:
    allocator = Allocator()
    for line in (1, 2):
        allocator.free(allocator.alloc(1000, of_line(line)))
    snapshot = allocator.snapshot()
    snapshot["device_traces"][0] = [one for one in allocator.entries if one["action"] != "free_completed"]
    assert by_line(device(snapshot).peak) == {1: 1000}


def test_a_line_of_the_users_owns_what_libraries_allocate_for_it() -> None:
    allocator = Allocator()
    library = ("/usr/lib/python3/site-packages/transformers/trainer.py", 5, "step")
    allocator.alloc(1000, frames(library, ("/home/me/train.py", 7, "main")))
    allocator.alloc(100, frames(library))
    allocator.alloc(10, frames(("/usr/lib/python3/site-packages/torch/nn/functional.py", 5, "linear")))
    allocator.alloc(1, frames(("/src/Python/ceval.c", 9, "do_call_core"), ("<string>", 3, "<module>")))
    assert by_line(device(allocator.snapshot()).peak) == {7: 1000, 5: 100, "no_line": 11}


def test_rows_are_apart_by_category() -> None:
    allocator = Allocator()
    allocator.alloc(1000, of_line(1), "weights")
    allocator.alloc(500, of_line(1))
    rows = device(allocator.snapshot()).peak.holders
    assert [(row.category, row.size_bytes, row.blocks) for row in rows] == [("weights", 1000, 1), ("", 500, 1)]


def test_an_allocation_that_failed_is_told_with_what_was_live() -> None:
    allocator = Allocator()
    allocator.free(allocator.alloc(2000, of_line(1)))
    allocator.empty_cache()
    allocator.alloc(1000, of_line(2))
    for size in range(5):
        allocator.fail((1 << 40) + size, 12345, of_line(3))
    allocator.alloc(10, of_line(4))
    found = device(allocator.snapshot())
    assert (found.failed, [one.asked_bytes - (1 << 40) for one in found.failures]) == (5, [2, 3, 4])
    last = found.failures[-1]
    assert (last.free_bytes, last.allocated_bytes, last.reserved_bytes, by_line(last)) == (
        12345,
        1000,
        2 << 20,
        {2: 1000},
    )
    assert by_line(found.peak) == {1: 2000}


def test_fragments_are_what_is_reserved_and_free() -> None:
    allocator = Allocator()
    first, second, third = (allocator.alloc(size, of_line(1)) for size in (1000, 4096, 512))
    other = allocator.alloc(30 << 20, of_line(2))
    allocator.free(second)
    allocator.free(other)
    found = device(allocator.snapshot()).fragmentation
    assert (first.size, third.size) == (1024, 512)
    assert found.reserved_bytes == (2 << 20) + (30 << 20)
    assert found.live_bytes == 1024 + 512
    assert found.rounding_bytes == 24
    assert found.split_bytes == (2 << 20) - 1024 - 512
    assert (found.largest_free_bytes, found.segments) == (30 << 20, 2)


def test_without_a_history_what_is_live_is_told_and_no_peak() -> None:
    allocator = Allocator()
    allocator.alloc(1000, of_line(1))
    allocator.alloc(500, [])
    found = device({"segments": allocator.snapshot()["segments"]})
    assert (found.has_peak, by_line(found.peak), found.peak.reserved_bytes) == (
        False,
        {1: 1000, "before": 500},
        2 << 20,
    )
    assert found.growth is None


def test_entries_of_segments_that_are_missing_leave_the_reserved_bytes_unknown() -> None:
    allocator = Allocator()
    allocator.alloc(1000, of_line(1))
    snapshot = allocator.snapshot()
    snapshot["segments"] = []
    snapshot["device_traces"][0] = [one for one in allocator.entries if one["action"] == "alloc"]
    assert device(snapshot).peak.reserved_bytes == -1


def test_devices_stand_by_their_peaks() -> None:
    small, large = Allocator(), Allocator(device=2)
    small.alloc(1000, of_line(1))
    large.alloc(5000, of_line(1))
    one, other = small.snapshot(), large.snapshot()
    both = {
        "segments": one["segments"] + other["segments"],
        "device_traces": [one["device_traces"][0], [], other["device_traces"][2]],
    }
    report = snapshot_report(snapshot_of(both, "a"), "a")
    assert [(one.device, one.peak.allocated_bytes) for one in report.devices] == [(2, 5000), (0, 1000)]


def train(allocator: Allocator, steps: int, *, annotates: str = "", leaks: bool = True) -> None:
    """Steps with activations, gradients and a loss that is kept; and a first one that makes optimizer state."""
    for step in range(steps):
        if annotates:
            allocator.annotate(annotates.format(step), "START")
        activations = [allocator.alloc(100_000, of_line(10 + layer)) for layer in range(4)]
        loss = allocator.alloc(400, of_line(20))
        gradients = [allocator.alloc(50_000, BACKWARD) for _ in range(4)]
        for piece in (*activations, *gradients):
            allocator.free(piece)
        if step == 0:
            allocator.alloc(50_000, of_line(30))
        if not leaks:
            allocator.free(loss)
        if annotates:
            allocator.annotate(annotates.format(step), "END")


@pytest.mark.parametrize("name", ["ProfilerStep#{}", "Optimizer.step#AdamW.step"])
def test_what_each_step_leaves_grows(name: str) -> None:
    allocator = Allocator()
    train(allocator, 8, annotates=name)
    growth = device(allocator.snapshot()).growth
    assert growth is not None
    assert (growth.source, growth.name, growth.steps) == ("annotations", name.removesuffix("#{}"), 5)
    (row,) = growth.holders  # neither the first step, which may be cut, nor the last
    assert (row.line, row.per_step_bytes, row.size_bytes, row.steps) == (20, 400, 2000, 5)


def test_without_annotations_equal_allocations_tell_steps() -> None:
    allocator = Allocator()
    train(allocator, 8)
    growth = device(allocator.snapshot()).growth
    assert growth is not None
    assert (growth.source, growth.steps, growth.equal_steps) == ("allocations", 6, 5)
    assert [(row.line, row.per_step_bytes) for row in growth.holders] == [(20, 400)]


@pytest.mark.parametrize("name", ["", "ProfilerStep#{}"])
def test_nothing_grows_where_nothing_is_left(name: str) -> None:
    allocator = Allocator()
    train(allocator, 8, annotates=name, leaks=False)
    growth = device(allocator.snapshot()).growth
    assert growth is not None
    assert growth.holders == []


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_of_few_steps_nothing_is_said(steps: int) -> None:
    allocator = Allocator()
    train(allocator, steps, annotates="ProfilerStep#{}")
    assert device(allocator.snapshot()).growth is None


CALL = ("/lib/python3.12/site-packages/torch/nn/modules/module.py", 1751, "_call_impl")


def generate(allocator: Allocator, *around: tuple[str, int, str]) -> None:
    """Rounds without backward, each of which leaves a block, such as a cache's."""
    for _ in range(20):
        first = allocator.alloc(
            100_000, frames(("/home/me/net.py", 5, "forward"), CALL, ("/home/me/net.py", 9, "run"), *around)
        )
        allocator.alloc(1_000, frames(("/home/me/net.py", 6, "keep"), ("/home/me/net.py", 9, "run"), *around))
        allocator.free(first)


def test_rounds_without_backward_are_steps_outside_a_modules_call_alone() -> None:
    loop, layers = Allocator(), Allocator()
    generate(loop, ("/home/me/serve.py", 3, "<module>"))
    generate(layers, CALL, ("/home/me/serve.py", 3, "<module>"))
    found = device(loop.snapshot()).growth
    assert found is not None
    assert [(row.line, row.per_step_bytes) for row in found.holders] == [(6, 1_000)]
    assert device(layers.snapshot()).growth is None


def test_the_layers_of_a_model_are_no_steps() -> None:
    """Its parameters, a forward pass that keeps activations, and a backward pass that leaves gradients."""
    allocator = Allocator()
    for _ in range(20):
        allocator.alloc(100_000, of_line(1))
    assert device(allocator.snapshot()).growth is None
    kept = []
    for _ in range(20):
        kept.append(allocator.alloc(100_000, of_line(2)))
        allocator.free(allocator.alloc(100_000, of_line(3)))
    assert device(allocator.snapshot()).growth is None
    for piece in reversed(kept):
        allocator.alloc(30_000, BACKWARD)
        allocator.free(piece)
    assert device(allocator.snapshot()).growth is None
