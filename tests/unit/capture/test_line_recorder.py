"""The line recorder's own failures: told, never raised into the run."""

import gc
import itertools
import sys
from pathlib import Path
from types import ModuleType

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


def test_modules_that_are_imported_meanwhile_are_no_trouble() -> None:
    """A collection of garbage runs anybody's finalizers, wherever something is made."""
    numbers = itertools.count()
    recorder = LineRecorder(UserCode.find(root=HERE))
    known, threshold = set(sys.modules), gc.get_threshold()

    def import_one(_phase: str, _info: object) -> None:
        name = f"imported_meanwhile_{next(numbers)}"
        sys.modules[name] = ModuleType(name)

    gc.callbacks.append(import_one)
    gc.set_threshold(1)
    try:
        recorder.prepare()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(import_one)
        for name in set(sys.modules) - known:
            if name.startswith("imported_meanwhile_"):
                del sys.modules[name]
    assert next(numbers) > 0
    assert recorder._prepared is not None
