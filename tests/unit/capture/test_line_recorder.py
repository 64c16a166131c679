"""The line recorder's own failures: told, never raised into the run."""

from pathlib import Path

import pytest

from deepscope.capture.lines import LineRecorder, UserCode
from deepscope.capture.lines import recorder as module
from deepscope.capture.notices import RecordingWarning
from deepscope.trace.format.header import LineAccount

HERE = Path(__file__).parent


def test_a_window_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no more hooks")

    monkeypatch.setattr(module, "make_hooks", refuse)
    recorder = LineRecorder(UserCode.find(root=HERE))
    with pytest.warns(RecordingWarning, match="lines are not recorded: OSError: no more hooks"):
        recorder.start()
    assert recorder.stop().account.warnings == ["lines are not recorded: OSError: no more hooks"]
    assert recorder.stop().account == LineAccount()
