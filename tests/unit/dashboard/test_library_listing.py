"""A listing that takes long, as that of a remote store, holds up nobody who can do without it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from deepscope.dashboard import library as module
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from recorded_traces import OWN_TRACES

MOST_SECONDS = 60


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A library whose next listing waits for `may_end`, in a thread that has begun it."""
    library = Library([str(OWN_TRACES / "grafted-device.json.gz")])
    library.runs()
    begun, may_end = threading.Event(), threading.Event()
    real = module.find_traces

    def slowly(*words: Any) -> Any:
        begun.set()
        assert may_end.wait(MOST_SECONDS)
        return real(*words)

    monkeypatch.setattr(module, "find_traces", slowly)
    monkeypatch.setattr(module, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(library, "_look_seconds", -1.0)
    looking = threading.Thread(target=library.runs, daemon=True)
    looking.start()
    assert begun.wait(MOST_SECONDS)
    yield library
    may_end.set()
    looking.join(MOST_SECONDS)
    assert not looking.is_alive()


def ends(work: Any) -> bool:
    """Whether it ends while the listing waits."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(MOST_SECONDS / 4)
    return not thread.is_alive()


def test_it_can_be_closed(held: Library) -> None:
    assert ends(held.close)


def test_questions_are_answered_by_what_was_seen_before(held: Library) -> None:
    found: list[Any] = []
    assert ends(lambda: found.append(held.selection(Choice())))
    assert len(found[0].files) == 1


def test_other_paths_can_be_shown(held: Library) -> None:
    assert ends(lambda: held.show([str(OWN_TRACES)]))
