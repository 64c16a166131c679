"""Results that threads make while several questions wait for them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from deepscope.dashboard import background as module
from deepscope.dashboard.background import Background, NotYetError
from deepscope.processes import Progress


def test_a_question_that_learns_late_of_a_failure_does_not_end_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    results: Background[str, int] = Background(2)
    wait, end, tries = module.wait, threading.Event(), []

    def fail(progress: Progress) -> int:
        raise ValueError("it cannot be read")

    def make(progress: Progress) -> int:
        tries.append(progress)
        end.wait()
        return 7

    def others_ask_meanwhile(futures: Any, timeout: float) -> Any:
        monkeypatch.setattr(module, "wait", wait)
        found = wait(futures)
        with pytest.raises(ValueError, match="cannot be read"):
            results.get("trace", fail, 1)
        with pytest.raises(NotYetError):
            results.get("trace", make, 1)
        return found

    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(module, "wait", others_ask_meanwhile)
    with pytest.raises(ValueError, match="cannot be read"):
        results.get("trace", fail, 1)
    with pytest.raises(NotYetError):
        results.get("trace", make, 1)
    end.set()
    results._threads.shutdown()
    assert len(tries) == 1
