"""Every number of every line against `tests/oracle.py`, on random traces of everything at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.records import Profile
from oracle import Oracle
from random_traces import random_trace

CHECKED = (
    "self_device_ns", "total_device_ns", "backward_device_ns", "self_cpu_ns", "total_cpu_ns", "python_ns", "wait_ns",
    "idle_ns", "launches", "calls", "operators", "bytes_allocated", "bytes_freed", "h2d_ns", "h2d_bytes", "d2h_ns",
    "d2h_bytes", "d2d_ns", "d2d_bytes", "collective_ns", "collective_exposed_ns",
)  # fmt: skip


def numbers(profile: Profile) -> dict[Any, dict[str, int]]:
    rows: dict[Any, Any] = {(line.file, line.line): line for line in profile.lines}
    rows[None] = profile.no_line
    found = {place: {name: getattr(row, name) for name in CHECKED} for place, row in rows.items()}
    return {place: {k: v for k, v in row.items() if v} for place, row in found.items()}


def differences(found: dict[Any, dict[str, int]], expected: dict[Any, dict[str, int]]) -> list[str]:
    return [
        f"{place} {name}: {found.get(place, {}).get(name, 0)}, not {expected.get(place, {}).get(name, 0)}"
        for place in {*found, *expected}
        for name in CHECKED
        if found.get(place, {}).get(name, 0) != expected.get(place, {}).get(name, 0)
    ]


quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("step", [None, 2, 3])
@quick
@given(st.integers(0, 100_000))
def test_every_number_is_that_of_the_definition(profile_of, step, seed):
    builder = random_trace(seed)
    expected = Oracle(builder.document(), step).numbers()
    assert differences(numbers(profile_of(builder, step=step)), expected) == []
