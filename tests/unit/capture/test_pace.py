"""How long steps take, recorded and not."""

from __future__ import annotations

import pytest

from deepscope.capture import pace as module
from deepscope.capture.pace import Pace
from deepscope.trace.format.header import StepLengths


def test_the_medians_of_recorded_and_other_steps_stand_apart_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000
    monkeypatch.setattr(module, "perf_counter_ns", lambda: now)  # a clock that the test sets
    pace = Pace()
    assert pace.account() == StepLengths()
    for length, is_recorded in ((900, False), (10, False), (12, False), (30, True), (40, True), (35, True)):
        pace.begin_step(is_recorded=is_recorded)
        now += length
        pace.end_step()
        now += 500  # the recorder's own time between two steps
    assert pace.account() == StepLengths(other_steps=2, other_ns=11, recorded_steps=3, recorded_ns=35)
