"""A library that is closed while it reads: nothing that it began goes on, and nothing new begins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deepscope.dashboard import library as module
from deepscope.dashboard.background import NotYetError
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from deepscope.errors import DeepScopeError
from deepscope.store.worker_process import CancelledLoadError
from recorded_traces import OWN_TRACES

MOST_SECONDS = 60


class Endless:
    """A loader that loads until it is cancelled."""

    def __init__(self, request: Any) -> None:
        self.begun, self.cancelled = threading.Event(), threading.Event()

    def load(self, told: Any) -> Any:
        self.begun.set()
        assert self.cancelled.wait(MOST_SECONDS)
        raise CancelledLoadError("cancelled")

    def cancel(self) -> None:
        self.cancelled.set()


@pytest.fixture
def library() -> Iterator[Library]:
    library = Library([str(OWN_TRACES / "grafted-device.json.gz")])
    yield library
    library.close()


@pytest.fixture
def readers_end() -> Iterator[Callable[[], None]]:
    """Fails where a thread that reads goes on."""
    before = set(threading.enumerate())

    def end() -> None:
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith("deepscope-read"):
                thread.join(MOST_SECONDS)
                assert not thread.is_alive(), thread.name

    yield end
    end()


def test_a_load_that_runs_is_ended(library: Library, readers_end: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Endless] = []
    monkeypatch.setattr(module, "Loader", lambda request: made.append(Endless(request)) or made[-1])
    with pytest.raises(NotYetError):
        library.profile(Choice())
    assert made[0].begun.wait(MOST_SECONDS)
    library.close()
    readers_end()
    assert made[0].cancelled.is_set()


def test_a_load_that_begins_as_the_library_closes_is_ended(
    library: Library, readers_end: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Endless] = []

    class LateLoader(Endless):
        def __init__(self, request: Any) -> None:
            super().__init__(request)
            made.append(self)
            library.close()

    monkeypatch.setattr(module, "Loader", LateLoader)
    with pytest.raises((NotYetError, CancelledLoadError)):
        library.profile(Choice())
    assert made[0].cancelled.wait(MOST_SECONDS / 4)
    readers_end()


@pytest.mark.parametrize("kind", ["moments", "timeline"])
def test_what_tells_how_far_it_is_ends_when_it_next_does(
    library: Library, readers_end: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    ended = threading.Event()

    def read(*_: Any, progress: Any = None, **__: Any) -> Any:
        told = progress or _[-1]
        try:
            end = time.monotonic() + MOST_SECONDS / 2
            while time.monotonic() < end:
                told(1, 10**6)
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(module, "read_moments", read)
    monkeypatch.setattr("deepscope.dashboard.timeline.index.open_timeline", read)
    with pytest.raises(NotYetError):
        getattr(library, kind)(Choice())
    assert not ended.is_set()
    library.close()
    assert ended.wait(MOST_SECONDS / 4)
    readers_end()


def test_a_question_after_it_is_refused(library: Library, tmp_path: Path) -> None:
    library.close()
    with pytest.raises(DeepScopeError, match="closed"):
        library.profile(Choice())
