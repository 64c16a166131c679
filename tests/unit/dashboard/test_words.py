"""Times, shares and places are worded as the pages' own code words them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepscope.dashboard.pages.words import in_page_words, place_words, share_words, time_words

CASES = json.loads((Path(__file__).parents[3] / "vscode-extension" / "test" / "durations.json").read_text("utf-8"))


@pytest.mark.parametrize(("duration_ns", "words"), CASES["durations"])
def test_times(duration_ns: float, words: str) -> None:
    assert time_words(duration_ns) == words


@pytest.mark.parametrize(("ratio", "words"), CASES["shares"])
def test_shares(ratio: float, words: str) -> None:
    assert share_words(ratio) == words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", ""),
        ("/home/me/project/net.py", "net.py:7"),
        ("/home/me/project/models/net.py", "models/net.py:7"),
        ("/app/xDiT/xfuser/model_executor/pipelines/base_pipeline.py", "…/pipelines/base_pipeline.py:7"),
        ("C:\\users\\somebody\\documents\\projects\\net\\train.py", "…/net/train.py:7"),
        (f"/elsewhere/{'a' * 30}/{'b' * 30}.py", f"…/{'b' * 30}.py:7"),
        (f"/{'c' * 5000}", f"…{'c' * 72}:7"),
    ],
)
def test_places_keep_their_ends(path: str, words: str) -> None:
    assert place_words(path, 7, "/home/me/project") == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("26.1ms on rank 2 (140µs), 3s at most.", "26.1 ms on rank 2 (140 µs), 3 s at most."),
        ("+38%, -4%, 1.5e+03MiB", "+38 %, -4 %, 1.5e+03 MiB"),
        ("12.0MiB/s, 0B/s; 3.20/s", "12.0 MiB/s, 0 B/s; 3.20/s"),
        ("it is 38ms later, in llama-70B/train_2s.py:14", "it is 38 ms later, in llama-70B/train_2s.py:14"),
        ("in 7B/net.py:3, runs/7B-chat/net.py:3, 8B.py:1", "in 7B/net.py:3, runs/7B-chat/net.py:3, 8B.py:1"),
    ],
)
def test_sentences_have_a_blank_before_units_and_names_stay_as_they_are(text: str, words: str) -> None:
    assert in_page_words(text) == words
