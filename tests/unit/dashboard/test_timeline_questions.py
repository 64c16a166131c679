"""The timeline's questions as the pages ask them: through the application, in words."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deepscope.dashboard.application import Application
from deepscope.dashboard.library import Library
from recorded_traces import OWN_TRACES, each_own_trace


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(params=each_own_trace())
def application(request: pytest.FixtureRequest) -> Iterator[Application]:
    library = Library([str(request.param)])
    yield Application(library)
    library.close()


def asked(application: Application, name: str, /, **words: object) -> tuple[int, Any]:
    """The status and what it is answered with, once the trace is read."""
    end = time.monotonic() + 120
    while True:
        reply = application.answer(name, {key: str(value) for key, value in words.items()})
        if reply.status != 202 or time.monotonic() > end:
            return reply.status, json.loads(reply.body)


def test_all_questions_are_answered_of_one_timeline(application: Application) -> None:
    status, head = asked(application, "timeline")
    assert status == 200
    whole = {"begin": 0, "end": max(head["endNs"], 1)}
    tracks = [track["id"] for track in head["tracks"]]

    status, window = asked(application, "timeline_window", **whole, pixels=400)
    assert status == 200
    assert [one["id"] for one in window["tracks"]] == tracks
    counts = {one["id"]: sum(one["count"]) for one in window["tracks"]}
    assert counts == {track["id"]: track["slices"] for track in head["tracks"]}

    some = tracks[-2:]
    words = ",".join(map(str, some))
    status, window = asked(application, "timeline_window", **whole, pixels=400, tracks=words)
    assert (status, [one["id"] for one in window["tracks"]]) == (200, some)
    status, window = asked(application, "timeline_window", **whole, pixels=400, tracks="none")
    assert (status, window["tracks"]) == (200, [])
    assert len(window["counters"]) == len(head["counters"])

    status, sums = asked(application, "timeline_selection", **whole)
    assert status == 200
    assert [one["track"] for one in sums["busy"]] == tracks

    last = head["slices"] - 1
    status, details = asked(application, "timeline_slice", slice=last)
    assert (status, details["slice"]) == (200, last)
    status, matches = asked(application, "timeline_search", text=details["name"], kinds=details["kind"], limit=1000)
    assert status == 200
    assert matches["count"] >= 1
    status, like = asked(application, "timeline_durations", name=details["name"], kind=details["kind"])
    assert (status, like["count"] >= 1, sum(like["counts"]) == like["count"]) == (200, True, True)
    for place in head["places"][:3]:
        status, found = asked(application, "timeline_line", file=place["file"], line=place["line"], limit=5)
        assert status == 200
        assert len(found["found"]) <= 5


def test_what_cannot_be_answered_is_said(application: Application) -> None:
    refused = [
        ("timeline_window", {"begin": 0, "end": 10, "pixels": 10, "tracks": "a,b"}),
        ("timeline_window", {"begin": 0, "end": 10, "pixels": 10, "tracks": "999999"}),
        *(("timeline_window", {"begin": word, "end": 10, "pixels": 10}) for word in ("x", "nan", "inf", "1.5", "true")),
        ("timeline_window", {"begin": 0, "end": 10, "pixels": 1.5}),
        ("timeline_search", {"text": "a", "from_ns": "nan"}),
        ("timeline_window", {"begin": 0, "end": 10}),
        ("timeline_slice", {"slice": -1}),
        ("timeline_slice", {"slice": 10**12}),
        ("timeline_search", {"text": "a", "kinds": "nothing"}),
        ("timeline_search", {"text": "a", "limit": 0}),
        ("timeline_durations", {"name": "a", "kind": "nothing"}),
        ("timeline", {"unknown": 1}),
    ]
    for name, words in refused:
        status, answer = asked(application, name, **words)
        assert status in {400, 404}, (name, words, answer)
        assert answer["error"]


def test_a_timeline_is_read_once_and_told_while_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from deepscope.dashboard.timeline import index

    opened, may_end = [], Event()
    real = index.open_timeline

    def slowly(file: Any, progress: Any, **options: Any) -> Any:
        opened.append(file)
        progress(7, 100)
        assert may_end.wait(60)
        return real(file, progress, **options)

    monkeypatch.setattr(index, "open_timeline", slowly)
    library = Library([str(OWN_TRACES / "grafted-device.json.gz")])
    application = Application(library)
    reply = application.answer("timeline", {})
    assert (reply.status, json.loads(reply.body)) == (202, {"progress": {"done": 7, "total": 100}})
    may_end.set()
    assert asked(application, "timeline")[0] == 200
    assert asked(application, "timeline_search", text="a")[0] == 200
    assert len(opened) == 1
    library.close()
