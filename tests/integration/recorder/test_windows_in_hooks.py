"""Windows that end and begin as an optimizer tells of its step, with torch's span of that step still open."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.capture.process_hooks import optimizer_steps
from deepscope.capture.window import Window
from recorded_traces import profile_of


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ({"wait": 0, "warmup": 1, "active": 2, "repeat": 1}, 2),  # the first step is in reserve
        ({"wait": 0, "warmup": 0, "active": 2, "repeat": 3}, 6),  # one window behind the other
    ],
)
def test_no_window_begins_within_a_step_that_another_one_ended_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, int], recorded: int
) -> None:
    """Torch writes the end of its span into the window that it began in, whose memory is another one's by then."""
    moves: dict[int, list[str]] = {}
    ended: list[None] = []
    step = 0

    def note(name: str) -> None:
        method = getattr(Window, name)

        def noted(self: Window, *args: object) -> object:
            if optimizer_steps.is_within_step():
                moves.setdefault(step, []).append(name)
            return method(self, *args)

        monkeypatch.setattr(Window, name, noted)

    note("begin")
    note("end")
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with deepscope.profile(tmp_path, **options) as recording:
        leave = optimizer_steps.listen(lambda *_: ended.append(recording.step()))
        for step in range(14):  # noqa: B007 - `note` reads it
            layer(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        leave()
    if not ended and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3):
        pytest.skip(f"torch {torch.__version__} cannot call the hooks of a step that it has compiled")
    assert any("end" in one for one in moves.values())
    assert all(len(one) == 1 for one in moves.values())
    assert not optimizer_steps.is_within_step()
    assert sum(profile_of(trace).totals.steps for trace in recording.traces) == recorded
