"""Windows by wall time."""

import pytest

from deepscope.capture.schedule import StepAction, TimeWindow


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_a_window_by_time_follows_the_clock_and_ends_once(warmup: int):
    now = [0.0]
    window = TimeWindow(10, 5, warmup, clock=lambda: now[0], agree=lambda _key, step: 0)
    actions = []
    for step in range(40):
        actions.append(window.action(step))
        now[0] += 1
    assert [step for step, action in enumerate(actions) if action is StepAction.WARM_UP] == [11, 12, 13][:warmup]
    first = 11 + warmup
    assert [step for step, action in enumerate(actions) if action is StepAction.RECORD] == list(range(first, first + 5))
    assert window.is_over


def test_windows_by_time_agree_on_their_steps_over_ranks():
    agreed = {}
    ends = []
    for late in (0.0, 0.15):  # the second rank's first step ended later
        now = [late]
        window = TimeWindow(
            10, 5, clock=lambda now=now: now[0], agree=lambda key, step: agreed.setdefault(key.rsplit("/", 1)[1], step)
        )
        recorded = []
        for step in range(200):
            if window.action(step) is StepAction.RECORD:
                recorded.append(step)
            now[0] += 0.1 if step else 0.1 + late
        ends.append((recorded[0], recorded[-1]))
    assert ends[0] == ends[1]
